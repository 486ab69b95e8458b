//! What the command prints and how it ends, and the daemon that sends.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::{Daemon, run, zc_observe};

#[test]
fn an_interrupted_run_still_counts_everything() {
    let mut child = zc_observe(&["generate", "--duration", "60s", "--json"])
        .args(["--interval", "50ms"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It sends once a line says so; the signal is caught by then.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| serde_json::from_str::<Value>(line).unwrap()["sends"].as_u64() > Some(0))
        .unwrap();
    assert!(first.contains(r#""kind":"interval""#), "{first}");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let last = lines.map(Result::unwrap).last().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let totals: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(totals["schema"], 1);
    assert_eq!(totals["kind"], "total");
    assert!(totals["sends"].as_u64() > Some(0));
    assert_eq!(totals["completions_copied"], totals["sends"]);
    assert_eq!(totals["delivered_bytes"], totals["bytes"]);
}

#[test]
fn results_have_three_forms() {
    let form = |format: &str| {
        let output = run(&["generate", "--count", "160", "--format", format]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(form("table").contains("completed copied"));
    let classic = form("classic");
    assert!(classic.starts_with("tx=16"), "{classic}");
    assert!(classic.contains("(10 MB)") && classic.contains(" zc=n\nrx="));
    let json: Value = serde_json::from_str(&form("json")).unwrap();
    assert_eq!(json["copied_share"], 1.0);
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    for arguments in [
        &["--transport", "raw"][..],
        &["--engine", "uring"],
        &["--family", "5"],
        &["--size", "0"],
        &["--size", "many"],
        &["--transport", "udp", "--size", "65508"],
        &["--gso", "100"],
        &["--rate", "0"],
        &["--duration", "0s"],
        &["--flows", "0"],
        &["--connect", "127.0.0.1"],
        &["--connect", "[::1]:9"],
        &["--listen", ":9", "--connect", "127.0.0.1:9"],
        &["--device", "eth0"],
        &["--json", "--format", "table"],
    ] {
        let output = zc_observe(&["generate"]).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_daemon_sends_until_it_ends() {
    let mut daemon = Daemon::start(&["--generate", "tcp4", "--generate", "udp6:size=700,verify"]);
    let sends = |text: &str, flow: &str| -> f64 {
        let name = format!("zc_generator_sends_total{{flow=\"{flow}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name));
        line.map_or(0.0, |value| value.parse().unwrap())
    };
    let began = Instant::now();
    loop {
        let text = daemon.get("/metrics").body;
        if sends(&text, "tcp4") >= 5.0 && sends(&text, "udp6:size=700,verify") >= 100.0 {
            let failures = "zc_generator_verify_failures_total{flow=\"udp6:size=700,verify\"} 0";
            assert!(text.contains(failures), "{text}");
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (status, _) = daemon.end(Signal::SIGTERM);
    assert_eq!(status.code(), Some(0));
    let printed = daemon.printed();
    for flow in ["tcp4", "udp6:size=700,verify"] {
        let line = printed
            .lines()
            .find(|line| line.contains(&format!("{flow}: ")));
        // NAME: 46 sends, 3.0 MB; 46 copied, 0 zero-copy; …
        let line = line.unwrap().split_once(": ").unwrap().1;
        let (sends, rest) = line.split_once(" sends").unwrap();
        assert!(
            rest.contains(&format!("; {sends} copied, 0 zero-copy")),
            "{line}"
        );
    }
}

#[test]
fn the_daemon_refuses_a_wrong_flow() {
    let output = run(&["daemon", "--probes", "off", "--generate", "tcp4:speed=1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("'speed'"));
}
