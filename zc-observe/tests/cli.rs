//! The command line: exit codes and what is said.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test's helpers fail as tests do"
)]

use std::process::Output;

#[expect(dead_code, reason = "each test program uses its part")]
mod common;

use common::{run, zc_observe};

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn version_and_help_are_no_errors() {
    let output = run(&["--version"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        stdout(&output),
        concat!("zc-observe ", env!("CARGO_PKG_VERSION"), "\n")
    );

    let output = run(&["daemon", "--help"]);
    assert_eq!(output.status.code(), Some(0));
    for part in [
        "Examples:",
        "Exit codes:",
        "--web.listen-address",
        "ZC_OBSERVE_PROBES",
    ] {
        assert!(stdout(&output).contains(part), "{part}");
    }
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    for arguments in [
        &["daemon", "--no-such-flag"][..],
        &["daemon", "--probes", "best"],
        &["daemon", "--web.listen-address", "localhost"],
        &["daemon", "--web.telemetry-path", "/-/metrics"],
        &["daemon", "--interval", "0s"],
        &["daemon", "--check", "--ready-file", "x"],
        &["daemon", "--web.config.file", "x"],
        &["no-such-command"],
        &[],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stdout(&output).is_empty(), "{arguments:?}");
        assert!(!stderr(&output).contains("panicked"), "{arguments:?}");
    }
}

#[test]
fn the_tier_can_come_from_the_environment() {
    let output = zc_observe(&["daemon", "--check"])
        .env("ZC_OBSERVE_PROBES", "best")
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("tracepoint"),
        "{}",
        stderr(&output)
    );

    let output = zc_observe(&["daemon", "--check"])
        .env("ZC_OBSERVE_PROBES", "off")
        .output();
    assert_eq!(output.unwrap().status.code(), Some(0));
}

#[test]
fn check_prints_a_table_and_ends() {
    let output = run(&["daemon", "--probes", "off", "--check"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("PROBE"), "{}", stdout(&output));
}

#[test]
fn colours_are_off_when_nobody_sees_them() {
    let output = run(&["daemon", "--probes", "off", "--check", "--color", "never"]);
    assert!(!output.stdout.contains(&0x1b));
    assert_eq!(
        run(&["--color", "sometimes", "daemon"]).status.code(),
        Some(2)
    );
}
