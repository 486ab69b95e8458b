//! Running other programs, with errors that say what was run and why.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Runs a program to its end with our standard streams.
pub(crate) fn run(command: &mut Command, purpose: &str) -> Result<()> {
    let status = command
        .status()
        .with_context(|| cannot_start(command, purpose))?;
    if !status.success() {
        bail!(
            "could not {purpose}: `{}` ended with {status}",
            shown(command)
        );
    }
    Ok(())
}

/// Runs a program to its end and returns what it wrote to its standard output.
pub(crate) fn output(command: &mut Command, purpose: &str) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| cannot_start(command, purpose))?;
    if !output.status.success() {
        bail!(
            "could not {purpose}: `{}` ended with {}: {}",
            shown(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` wrote text that is not UTF-8", shown(command)))
}

/// Tries `attempt` up to `times`, with a pause that grows, because mirrors are
/// inconsistent for moments.
pub(crate) fn retry<T>(times: u32, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let mut tried = 1;
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) if tried < times => {
                let pause = Duration::from_secs(u64::from(3 * tried));
                eprintln!(
                    "{error:#}\ntrying again in {} s ({tried} of {times})",
                    pause.as_secs()
                );
                thread::sleep(pause);
                tried += 1;
            }
            Err(error) => return Err(error.context(format!("tried {times} times"))),
        }
    }
}

fn cannot_start(command: &Command, purpose: &str) -> String {
    format!("could not {purpose}: cannot start `{}`", shown(command))
}

/// The command line as one would type it, without its environment.
fn shown(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    line
}
