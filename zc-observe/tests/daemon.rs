//! The daemon as its users meet it: HTTP, signals, exit codes, files.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test's helpers fail as tests do"
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

mod common;

use common::{Daemon, http, run};
use nix::sys::signal::Signal;

/// The documented bound between SIGTERM and the end.
const END: Duration = Duration::from_secs(1);

/// The sentence that a failure prints: one line, one sentence.
fn sentence(stderr: &[u8]) -> String {
    let text = String::from_utf8(stderr.to_vec()).unwrap();
    let line = text
        .strip_prefix("zc-observe: ")
        .unwrap_or_else(|| panic!("{text}"));
    assert_eq!(line.matches('\n').count(), 1, "{text}");
    line.trim_end().to_owned()
}

#[test]
fn it_serves_what_it_says() {
    let daemon = Daemon::start(&[]);
    for path in ["/-/healthy", "/-/ready", "/metrics", "/"] {
        assert_eq!(daemon.get(path).status, 200, "{path}");
    }
    let metrics = daemon.get("/metrics");
    assert!(
        metrics
            .head
            .contains("content-type: text/plain; version=0.0.4"),
        "{}",
        metrics.head
    );
    assert!(
        metrics.body.contains("\nzc_observe_scrape_seconds "),
        "{}",
        metrics.body
    );
    assert!(
        metrics.body.contains("zc_observe_kernel_info{release="),
        "{}",
        metrics.body
    );
    assert!(daemon.get("/").body.contains("href=\"/metrics\""));
    for path in ["/nothing", "/metrics/", "/-/", "/-/quit"] {
        assert_eq!(daemon.get(path).status, 404, "{path}");
    }
}

#[test]
fn head_has_no_body_and_other_methods_are_refused() {
    let daemon = Daemon::start(&["--web.telemetry-path", "/numbers"]);
    let address = daemon.addresses[0];
    for path in ["/", "/-/healthy", "/-/ready", "/numbers"] {
        let head = http(address, "HEAD", path);
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            let refused = http(address, method, path);
            assert_eq!(refused.status, 405, "{method} {path}");
            assert!(refused.head.contains("allow: get,head"), "{}", refused.head);
        }
    }
    assert_eq!(daemon.get("/metrics").status, 404);
}

#[test]
fn it_serves_on_every_address() {
    let arguments = ["127.0.0.1:0", "127.0.0.2:0"];
    let daemon = Daemon::start(&[
        "--web.listen-address",
        arguments[0],
        "--web.listen-address",
        arguments[1],
    ]);
    assert_eq!(daemon.addresses.len(), 2);
    for address in &daemon.addresses {
        assert_eq!(http(*address, "GET", "/-/ready").status, 200, "{address}");
    }
}

#[test]
fn concurrent_scrapes_are_all_answered() {
    let daemon = Daemon::start(&["--quiet"]);
    let address = daemon.addresses[0];
    let scrapes: Vec<_> = (0..32)
        .map(|_| std::thread::spawn(move || http(address, "GET", "/metrics").status))
        .collect();
    for scrape in scrapes {
        assert_eq!(scrape.join().unwrap(), 200);
    }
}

#[test]
fn sigterm_ends_it_with_a_summary_and_nothing_stays() {
    let mut daemon = Daemon::start(&["--interval", "100ms"]);
    let address = daemon.addresses[0];
    let (status, time) = daemon.end(Signal::SIGTERM);
    assert_eq!(status.code(), Some(0));
    assert!(time < END, "it took {time:?}");
    assert!(!daemon.ready.exists());
    assert_eq!(
        fs::read_dir(daemon.ready.parent().unwrap())
            .unwrap()
            .count(),
        0
    );
    assert!(TcpStream::connect(address).is_err());
    let printed = daemon.printed();
    assert!(
        printed.starts_with(&format!("http://{address}/metrics\nprobes: ")),
        "{printed}"
    );
    assert!(printed.contains("\nsummary of "), "{printed}");
}

#[test]
fn sigint_is_exit_code_130() {
    let mut daemon = Daemon::start(&[]);
    let (status, _) = daemon.end(Signal::SIGINT);
    assert_eq!(status.code(), Some(130));
    assert!(daemon.printed().contains("\nsummary of "));
}

#[test]
fn a_slow_client_does_not_hold_up_the_end() {
    let mut daemon = Daemon::start(&["--quiet"]);
    let mut partial = TcpStream::connect(daemon.addresses[0]).unwrap();
    partial
        .write_all(b"GET /metrics HTTP/1.1\r\nHost:")
        .unwrap();
    let idle = TcpStream::connect(daemon.addresses[0]).unwrap();
    assert_eq!(daemon.get("/-/ready").status, 200);
    let (status, time) = daemon.end(Signal::SIGTERM);
    assert_eq!(status.code(), Some(0));
    assert!(time < END, "it took {time:?}");
    drop((partial, idle));
}

#[test]
fn a_line_every_interval_unless_it_is_quiet() {
    let mut daemon = Daemon::start(&["--interval", "100ms"]);
    let lines = BufReader::new(daemon.child.stdout.take().unwrap()).lines();
    let (send, seen) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        lines
            .map(Result::unwrap)
            .filter(|line| line.contains("Z  "))
            .for_each(|line| {
                // The test has seen enough.
                send.send(line).ok();
            });
    });
    for _ in 0..2 {
        seen.recv_timeout(Duration::from_secs(30)).unwrap();
    }
    daemon.end(Signal::SIGTERM);
    reader.join().unwrap();

    let mut quiet = Daemon::start(&["--interval", "100ms", "--quiet"]);
    std::thread::sleep(Duration::from_millis(350));
    quiet.end(Signal::SIGTERM);
    let printed = quiet.printed();
    assert!(!printed.contains("Z  "), "{printed}");
}

#[test]
fn a_closed_standard_output_stops_nothing() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut daemon = Daemon::spawn(
        &["--interval", "100ms"],
        Stdio::from(writer),
        Stdio::inherit(),
    );
    drop(reader);
    std::thread::sleep(Duration::from_millis(350));
    assert_eq!(daemon.get("/metrics").status, 200);
    let (status, time) = daemon.end(Signal::SIGTERM);
    assert_eq!(status.code(), Some(0));
    assert!(time < END, "it took {time:?}");
}

#[test]
fn a_reader_that_does_not_read_stops_nothing() {
    let (reader, writer) = std::io::pipe().unwrap();
    // Full, so that the first line blocks.
    nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    (&writer).write_all(&[b'.'; 4096]).unwrap();
    let mut daemon = Daemon::spawn(
        &["--interval", "100ms"],
        Stdio::from(writer),
        Stdio::inherit(),
    );
    let (status, time) = daemon.end(Signal::SIGTERM);
    assert_eq!(status.code(), Some(0));
    assert!(time < END, "it took {time:?}");
    drop(reader);
}

#[test]
fn a_port_in_use_is_one_sentence_and_exit_code_1() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = taken.local_addr().unwrap();
    let typed = address.to_string();
    let output = run(&["daemon", "--probes", "off", "--web.listen-address", &typed]);
    assert_eq!(output.status.code(), Some(1));
    let said = sentence(&output.stderr);
    assert!(
        said.starts_with(&format!("cannot listen on {typed}: the port is in use")),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn a_ready_file_that_cannot_be_written_is_exit_code_1() {
    let output = run(&[
        "daemon",
        "--probes",
        "off",
        "--web.listen-address",
        "127.0.0.1:0",
        "--ready-file",
        "/proc/no/such/folder",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let said = sentence(&output.stderr);
    assert!(
        said.starts_with("cannot write the ready-file /proc/no/such/folder: "),
        "{said}"
    );
}

#[test]
fn without_privilege_it_is_one_sentence_and_exit_code_3() {
    // A copy, since others may not be able to reach the build folder.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("zc-observe");
    fs::copy(env!("CARGO_BIN_EXE_zc-observe"), &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["daemon", "--web.listen-address", "127.0.0.1:0"]);
    command.env_remove("ZC_OBSERVE_PROBES").stdin(Stdio::null());
    if nix::unistd::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(3),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = sentence(&output.stderr);
    assert!(said.contains("CAP_BPF"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn nobody_asks_and_nothing_is_done() {
    let daemon = Daemon::start(&["--quiet"]);
    assert_eq!(daemon.get("/metrics").status, 200);
    std::thread::sleep(Duration::from_millis(300));
    let before = wakeups(daemon.child.id());
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(wakeups(daemon.child.id()), before);
}

/// How often each thread of a process has gone to sleep so far.
fn wakeups(pid: u32) -> Vec<(String, String)> {
    let mut threads: Vec<_> = fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path().join("status");
            let status = fs::read_to_string(&path).unwrap();
            let line = status
                .lines()
                .find(|line| line.starts_with("voluntary_ctxt"))
                .unwrap();
            (path.display().to_string(), line.to_owned())
        })
        .collect();
    threads.sort();
    threads
}

#[test]
fn the_log_can_be_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = fs::File::create(&path).unwrap();
    let arguments = ["--log.level", "info", "--log.format", "json"];
    let mut daemon = Daemon::spawn(&arguments, Stdio::piped(), Stdio::from(log));
    daemon.end(Signal::SIGTERM);
    let text = fs::read_to_string(&path).unwrap();
    let events: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let serving = events
        .iter()
        .find(|event| event["message"] == "serving")
        .unwrap();
    assert_eq!(serving["address"], daemon.addresses[0].to_string());
}
