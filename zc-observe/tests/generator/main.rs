//! The generator on this kernel: every send and byte accounted for.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test's helpers fail as tests do"
)]

use std::process::{Command, Output, Stdio};

use serde_json::Value;

#[expect(dead_code, reason = "each test program uses its part")]
#[path = "../common/mod.rs"]
mod common;

mod command;
mod exact;
mod hosts;
mod limits;

const PROGRAM: &str = env!("CARGO_BIN_EXE_zc-observe");

fn json(output: &Output) -> Value {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let line = text.lines().last();
    let line = line.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(line).unwrap()
}

/// Runs a shell script as a process of its own with this program as `$Z`.
fn script(wrapper: &[&str], text: &str) -> Output {
    let mut command = Command::new("timeout");
    command
        .arg("60")
        .args(wrapper)
        .args(["sh", "-ec", text])
        .env("Z", PROGRAM)
        .stdin(Stdio::null());
    command.output().unwrap()
}
