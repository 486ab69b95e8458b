//! Under small limits: refused and repeated, never lost.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::{json, script};

#[test]
fn little_option_memory_loses_nothing() {
    // The limit is the network namespace's own.
    let output = script(
        &["unshare", "-n"],
        "ip link set lo up
         echo 1000 > /proc/sys/net/core/optmem_max
         for flow in 'tcp --size 64KiB' 'udp --size 1000' 'udp --size 1000 --cork'; do
             $Z generate --transport $flow --count 2000 --reap-every 100000 --verify --json
         done",
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 3);
    for line in text.lines() {
        let totals: Value = serde_json::from_str(line).unwrap();
        assert!(totals["refused"].as_u64() > Some(0), "{line}");
        assert_eq!(totals["completions_copied"], totals["sends"]);
        let bytes = 2000 * totals["size"].as_u64().unwrap();
        assert_eq!(totals["bytes"], bytes, "{line}");
        assert_eq!(totals["delivered_bytes"], bytes, "{line}");
    }
}

/// Without the capability that lifts the limit of locked memory.
const UNPRIVILEGED: [&str; 5] = [
    "setpriv",
    "--bounding-set",
    "-ipc_lock",
    "--inh-caps",
    "-ipc_lock",
];

/// Locked memory is counted per user: tests that exhaust it go one after the other.
static LOCKED_MEMORY: Mutex<()> = Mutex::new(());

#[test]
fn flows_that_share_little_locked_memory_wait_for_each_other() {
    let _turn = LOCKED_MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    // One send at a time fits; each flow finds the memory taken by another one.
    let output = script(
        &UNPRIVILEGED,
        "ulimit -l 64; $Z generate --size 40KiB --count 800 --flows 8 --json",
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let totals = json(&output);
    assert!(totals["refused"].as_u64() > Some(0), "{totals}");
    assert_eq!(totals["bytes"], 800 * 40_960);
    assert_eq!(totals["delivered_bytes"], 800 * 40_960);
    assert_eq!(totals["completions_copied"], totals["sends"]);
}

#[test]
fn little_locked_memory_loses_nothing() {
    let _turn = LOCKED_MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let output = script(
        &UNPRIVILEGED,
        "ulimit -l 64; $Z generate --size 16KiB --count 2000 --reap-every 100000 --json",
    );
    let totals = json(&output);
    assert_eq!(output.status.code(), Some(0), "{totals}");
    assert!(totals["refused"].as_u64() > Some(0), "{totals}");
    assert_eq!(totals["bytes"], 2000 * 16_384);
    assert_eq!(totals["completions_copied"], totals["sends"]);
}

#[test]
fn a_send_above_the_limit_ends_with_its_name() {
    let _turn = LOCKED_MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    // Of the corked datagram each part fits, and both together do not.
    for transport in ["tcp", "udp", "udp --cork"] {
        let output = script(
            &UNPRIVILEGED,
            &format!("ulimit -l 64; $Z generate --transport {transport} --size 65000 --count 9"),
        );
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("refused (ENOBUFS)"), "{said}");
        assert!(said.contains("RLIMIT_MEMLOCK (65536 bytes)"), "{said}");
        // Totals are printed once anything was sent: here, first parts.
        assert_eq!(output.stdout.is_empty(), !transport.contains("cork"));
    }
}
