//! What this host permits: versions, capabilities, lockdown, sysctls, namespaces.

use std::fmt;
use std::path::Path;

use super::btf;
use super::capabilities::Capabilities;

/// The host as far as observing depends on it. `None` where it could not be read.
#[derive(Clone, Debug)]
pub struct Host {
    /// Kernel release, as `uname -r` shows it.
    pub release: String,
    /// Its version.
    pub version: Version,
    /// Architecture.
    pub arch: &'static str,
    /// Kernel lockdown.
    pub lockdown: Lockdown,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Option<i64>,
    /// `kernel.unprivileged_bpf_disabled`.
    pub unprivileged_bpf_disabled: Option<i64>,
    /// `kernel.perf_event_paranoid`.
    pub perf_event_paranoid: Option<i64>,
    /// `kernel.ftrace_enabled`: probes on function entries need 1.
    pub ftrace_enabled: Option<i64>,
    /// Whether the kernel shows its BTF.
    pub btf: bool,
    /// Whether the kernel has kprobes.
    pub kprobes: bool,
    /// Our effective capabilities.
    pub capabilities: Capabilities,
    /// Whether we are under a seccomp filter, as container runtimes set one.
    pub seccomp: bool,
    /// Our soft limit of locked memory in bytes, `None` if there is none.
    pub memlock: Option<u64>,
    /// Whether process ids here are the kernel's own.
    pub initial_pid_namespace: bool,
    /// Whether our capabilities count for the whole host.
    pub initial_user_namespace: bool,
    /// Whether control groups have the paths here that they have on the host.
    pub initial_cgroup_namespace: bool,
}

/// Major and minor version of a kernel.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Version(pub u16, pub u16);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Version {
    /// Reads a release such as `6.12.117+deb13-amd64`.
    #[must_use]
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some(Self(numbers.next()?.ok()?, numbers.next()?.ok()?))
    }
}

/// Kernel lockdown. Upstream, `confidentiality` keeps all programs from reading kernel
/// memory, and `integrity` does not touch us.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lockdown {
    /// The kernel was built without it.
    NotBuilt,
    /// Off.
    None,
    /// The kernel protects itself from being changed.
    Integrity,
    /// The kernel also keeps its memory to itself.
    Confidentiality,
    /// It does not say: securityfs is not mounted or not readable.
    Unknown,
}

impl Lockdown {
    /// Reads the text of `/sys/kernel/security/lockdown`, where the mode is in brackets.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
        {
            Some(("none", _)) => Self::None,
            Some(("integrity", _)) => Self::Integrity,
            Some(("confidentiality", _)) => Self::Confidentiality,
            _ => Self::Unknown,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotBuilt => "not built in",
            Self::None => "none",
            Self::Integrity => "integrity",
            Self::Confidentiality => "confidentiality",
            Self::Unknown => "unknown",
        }
    }

    fn read() -> Self {
        const SECURITYFS: &str = "/sys/kernel/security";
        if let Ok(text) = std::fs::read_to_string(format!("{SECURITYFS}/lockdown")) {
            return Self::parse(&text);
        }
        // The list of security modules is there whenever securityfs is mounted.
        match std::fs::read_to_string(format!("{SECURITYFS}/lsm")) {
            Ok(_) => Self::NotBuilt,
            Err(_) => Self::asked_for(&text("/proc/cmdline")),
        }
    }

    /// The mode that the kernel's command line asks for, the last one counting.
    fn asked_for(cmdline: &str) -> Self {
        match cmdline
            .split_ascii_whitespace()
            .rev()
            .find_map(|word| word.strip_prefix("lockdown="))
        {
            Some("integrity") => Self::Integrity,
            Some("confidentiality") => Self::Confidentiality,
            _ => Self::Unknown,
        }
    }
}

/// Inodes of the initial namespaces (`PROC_*_INIT_INO`), the same in all kernels.
mod initial {
    pub(super) const CGROUP: u64 = 0xEFFF_FFFB;
    pub(super) const PID: u64 = 0xEFFF_FFFC;
    pub(super) const USER: u64 = 0xEFFF_FFFD;
}

impl Host {
    /// Reads the host. What can't be read is left open; nothing here fails.
    #[must_use]
    pub fn read() -> Self {
        let release = text("/proc/sys/kernel/osrelease").trim().to_owned();
        let status = text("/proc/self/status");
        Self {
            version: Version::parse(&release).unwrap_or_default(),
            release,
            arch: std::env::consts::ARCH,
            lockdown: Lockdown::read(),
            kptr_restrict: sysctl("kptr_restrict"),
            unprivileged_bpf_disabled: sysctl("unprivileged_bpf_disabled"),
            perf_event_paranoid: sysctl("perf_event_paranoid"),
            ftrace_enabled: sysctl("ftrace_enabled"),
            btf: Path::new(btf::VMLINUX).exists(),
            kprobes: [
                "/sys/bus/event_source/devices/kprobe/type",
                "/sys/kernel/debug/kprobes/enabled",
            ]
            .iter()
            .any(|path| Path::new(path).exists()),
            capabilities: Capabilities::parse(&status),
            seccomp: field(&status, "Seccomp:").is_some_and(|mode| mode == "2"),
            memlock: memlock(),
            initial_pid_namespace: namespace("pid") == Some(initial::PID),
            initial_user_namespace: namespace("user") == Some(initial::USER),
            initial_cgroup_namespace: namespace("cgroup") == Some(initial::CGROUP),
        }
    }
}

/// One value of the text of `/proc/PID/status`.
pub(super) fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn sysctl(name: &str) -> Option<i64> {
    text(&format!("/proc/sys/kernel/{name}"))
        .trim()
        .parse()
        .ok()
}

/// Inode of one of our namespaces, from a link such as `pid:[4026531836]`.
fn namespace(kind: &str) -> Option<u64> {
    let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    link.to_str()?
        .strip_prefix(kind)?
        .strip_prefix(":[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

fn memlock() -> Option<u64> {
    let limit = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_MEMLOCK)
        .ok()?
        .0;
    (limit != nix::sys::resource::RLIM_INFINITY).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read() {
        assert_eq!(Version::parse("6.12.117+deb13-amd64"), Some(Version(6, 12)));
        assert_eq!(Version::parse("7.3.4"), Some(Version(7, 3)));
        assert_eq!(Version::parse("5.10.0-32-amd64"), Some(Version(5, 10)));
        assert_eq!(Version::parse("6.17-rc1"), Some(Version(6, 17)));
        assert_eq!(Version::parse(""), None);
        assert!(Version(6, 9) < Version(6, 10));
    }

    #[test]
    fn the_mode_in_brackets_counts() {
        assert_eq!(
            Lockdown::parse("[none] integrity confidentiality\n"),
            Lockdown::None
        );
        assert_eq!(
            Lockdown::parse("none [integrity] confidentiality\n"),
            Lockdown::Integrity
        );
        assert_eq!(
            Lockdown::parse("none integrity [confidentiality]\n"),
            Lockdown::Confidentiality
        );
        assert_eq!(Lockdown::parse(""), Lockdown::Unknown);
        let asked = Lockdown::asked_for("quiet lockdown=integrity lockdown=confidentiality x=1");
        assert_eq!(asked, Lockdown::Confidentiality);
        assert_eq!(
            Lockdown::asked_for("quiet nolockdown=integrity"),
            Lockdown::Unknown
        );
    }

    #[test]
    fn this_host_can_be_read() {
        let host = Host::read();
        assert!(host.version >= Version(5, 10), "{}", host.release);
        assert!(
            namespace("pid").is_some()
                && namespace("user").is_some()
                && namespace("cgroup").is_some()
        );
        assert_eq!(field("Name:\tx\nSeccomp:\t2\n", "Seccomp:"), Some("2"));
    }
}
