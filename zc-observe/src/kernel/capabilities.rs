//! Capabilities by name.

use super::host::field;

/// A capability that something here needs.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Capability {
    /// Devices, namespaces and XDP of the network.
    NetAdmin = 12,
    /// Locks memory without limit: zero-copy sends then never meet `RLIMIT_MEMLOCK`.
    IpcLock = 14,
    /// Reads other users' `/proc/PID/fd`.
    SysPtrace = 19,
    /// Everything; before 5.8 needed for all of BPF.
    SysAdmin = 21,
    /// Raises limits.
    SysResource = 24,
    /// Shows the addresses of kernel symbols.
    Syslog = 34,
    /// Probes and reading kernel memory, since 5.8.
    Perfmon = 38,
    /// Maps and programs, since 5.8.
    Bpf = 39,
}

impl Capability {
    /// All that matter here.
    pub const ALL: [Self; 8] = [
        Self::Bpf,
        Self::Perfmon,
        Self::NetAdmin,
        Self::Syslog,
        Self::SysPtrace,
        Self::SysAdmin,
        Self::IpcLock,
        Self::SysResource,
    ];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysPtrace => "CAP_SYS_PTRACE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::SysResource => "CAP_SYS_RESOURCE",
            Self::Syslog => "CAP_SYSLOG",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        }
    }
}

/// A set of capabilities.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// The effective set, from the text of `/proc/PID/status`.
    #[must_use]
    pub fn parse(status: &str) -> Self {
        Self(
            field(status, "CapEff:")
                .and_then(|hex| u64::from_str_radix(hex, 16).ok())
                .unwrap_or(0),
        )
    }

    /// Whether one is in the set.
    #[must_use]
    pub const fn has(self, capability: Capability) -> bool {
        self.0 >> capability as u8 & 1 == 1
    }

    /// Those that BPF programs of our kinds need and the set lacks. `CAP_SYS_ADMIN` stands
    /// for the two that were split off it.
    #[must_use]
    pub fn missing_for_probes(self) -> Vec<Capability> {
        if self.has(Capability::SysAdmin) {
            return Vec::new();
        }
        [Capability::Bpf, Capability::Perfmon]
            .into_iter()
            .filter(|&capability| !self.has(capability))
            .collect()
    }

    /// Names of those of [`Capability::ALL`] in the set.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        Capability::ALL
            .into_iter()
            .filter(|&capability| self.has(capability))
            .map(Capability::as_str)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_is_read() {
        let status = "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t000001fffeffffff\n";
        let set = Capabilities::parse(status);
        assert!(!set.has(Capability::SysResource));
        assert_eq!(set.names().len(), Capability::ALL.len() - 1);
        assert_eq!(Capabilities::parse("Name:\tx\n"), Capabilities(0));
    }

    #[test]
    fn sys_admin_stands_for_the_newer_ones() {
        let only = |capabilities: &[Capability]| {
            Capabilities(
                capabilities
                    .iter()
                    .map(|&capability| 1 << capability as u8)
                    .sum(),
            )
        };
        assert_eq!(only(&[Capability::SysAdmin]).missing_for_probes(), []);
        assert_eq!(
            only(&[Capability::Bpf]).missing_for_probes(),
            [Capability::Perfmon]
        );
        assert_eq!(
            only(&[]).missing_for_probes(),
            [Capability::Bpf, Capability::Perfmon]
        );
    }
}
