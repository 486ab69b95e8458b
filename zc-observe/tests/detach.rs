//! Nothing stays attached, however the daemon ends.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use aya::programs::loaded_programs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use zc_observe::probes::points::POINTS;

/// The names of our programs that the kernel holds; it keeps 15 bytes of a name.
fn ours() -> Vec<String> {
    let names: Vec<&str> = POINTS
        .iter()
        .flat_map(|point| point.programs)
        .map(|program| &program.name[..program.name.len().min(15)])
        .collect();
    loaded_programs()
        .filter_map(Result::ok)
        .filter_map(|program| program.name_as_str().map(str::to_owned))
        .filter(|name| names.contains(&name.as_str()))
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
    assert_eq!(ours(), [""; 0], "another daemon runs");
    let dir = tempfile::tempdir().unwrap();
    let ready = dir.path().join("ready");
    let mut child = daemon(&ready);
    wait_for("not ready", Duration::from_secs(60), || {
        assert_eq!(child.try_wait().unwrap(), None, "it ended");
        ready.exists()
    });
    assert!(!ours().is_empty(), "nothing is attached");
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
        ours().is_empty()
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
