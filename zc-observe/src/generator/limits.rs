//! Which limit refuses a send when nothing else is outstanding.

use std::fs;

use nix::sys::resource::{Resource, getrlimit};

/// `CAP_IPC_LOCK`: locked memory has no limit.
const CAP_IPC_LOCK: u32 = 14;
const PAGE: u64 = 4096;

/// What `mm_account_pinned_pages` charges for a send of so many bytes.
fn locked(size: usize) -> u64 {
    (size as u64 / PAGE + 2) * PAGE
}

/// Names the limit of this process that refuses a message of zero-copy sends of so many
/// bytes.
pub(super) fn explain(sends: &[usize]) -> String {
    let needed = sends.iter().copied().map(locked).sum();
    let memlock = getrlimit(Resource::RLIMIT_MEMLOCK).map_or(u64::MAX, |(soft, _)| soft);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let optmem = fs::read_to_string("/proc/sys/net/core/optmem_max").unwrap_or_default();
    name(needed, memlock, may_lock(&status), optmem.trim())
}

/// Whether the effective set of capabilities holds `CAP_IPC_LOCK`.
fn may_lock(status: &str) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .is_some_and(|set| set >> CAP_IPC_LOCK & 1 == 1)
}

fn name(needed: u64, memlock: u64, may_lock: bool, optmem: &str) -> String {
    if may_lock {
        return format!(
            "the limit is net.core.optmem_max ({optmem} bytes), as CAP_IPC_LOCK lifts RLIMIT_MEMLOCK; raise it with sysctl"
        );
    }
    if needed > memlock {
        return format!(
            "the limit is RLIMIT_MEMLOCK ({memlock} bytes): this send locks {needed}; raise it (ulimit -l, LimitMEMLOCK=), grant CAP_IPC_LOCK, or send less at once"
        );
    }
    format!(
        "the limit is RLIMIT_MEMLOCK ({memlock} bytes, shared with all zero-copy senders of this user; one such send locks {needed}) or net.core.optmem_max ({optmem} bytes); raise them, or grant CAP_IPC_LOCK"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_named() {
        assert!(
            name(locked(65_536), 65_536, false, "131072")
                .starts_with("the limit is RLIMIT_MEMLOCK")
        );
        assert!(name(locked(65_536), 65_536, true, "131072").contains("optmem_max (131072 bytes)"));
        let either = name(locked(1000), 65_536, false, "20480");
        assert!(either.contains("RLIMIT_MEMLOCK") && either.contains("optmem_max"));
    }

    #[test]
    fn the_capability_is_read() {
        assert!(may_lock("CapPrm:\t0\nCapEff:\t0000000000004000\n"));
        assert!(!may_lock("CapEff:\t000001ffffffbfff\n"));
        assert!(!may_lock(""));
    }
}
