//! Nothing stays attached, however the daemon ends.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use aya::programs::loaded_programs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use zc_observe::probes::points::POINTS;

/// The ids of such programs of ours that the kernel holds; it keeps 15 bytes of a name.
fn ours() -> BTreeSet<u32> {
    let names: Vec<&str> = POINTS
        .iter()
        .flat_map(|point| point.programs)
        .map(|program| &program.name[..program.name.len().min(15)])
        .collect();
    loaded_programs()
        .filter_map(Result::ok)
        .filter(|program| {
            program
                .name_as_str()
                .is_some_and(|name| names.contains(&name))
        })
        .map(|program| program.id())
        .collect()
}

fn daemon(ready: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_zc-observe"))
        .args(["daemon", "--quiet", "--web.listen-address", "127.0.0.1:0"])
        .args(["--generate", "udp4", "--ready-file"])
        .arg(ready)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_for(what: &str, time: Duration, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < time, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn ends_with(signal: Signal, code: Option<i32>) {
    // Another daemon may run on this host.
    let others = ours();
    let added = || ours().difference(&others).count();
    let dir = tempfile::tempdir().unwrap();
    let ready = dir.path().join("ready");
    let mut child = daemon(&ready);
    wait_for("not ready", Duration::from_secs(60), || {
        assert_eq!(child.try_wait().unwrap(), None, "it ended");
        ready.exists()
    });
    assert_ne!(added(), 0, "nothing is attached");
    let start = Instant::now();
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let status = child.wait().unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "it took {:?} to end",
        start.elapsed()
    );
    assert_eq!(status.code(), code);
    // The kernel frees programs a grace period later.
    wait_for("programs stay loaded", Duration::from_secs(10), || {
        added() == 0
    });
    if signal != Signal::SIGKILL {
        assert!(!ready.exists(), "the ready file stays");
    }
}

#[test]
fn nothing_stays_attached() {
    ends_with(Signal::SIGTERM, Some(0));
    ends_with(Signal::SIGINT, Some(130));
    ends_with(Signal::SIGKILL, None);
}
