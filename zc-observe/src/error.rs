//! How a command ends: the exit code and, where it failed, one sentence.

use std::fmt;
use std::process::ExitCode;

/// Exit codes of every command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// It did what was asked.
    Done = 0,
    /// It failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The host does not permit it; the message names what is missing.
    NotPermitted = 3,
    /// There are findings, and `--exit-code` asked for this.
    Findings = 4,
    /// Ended by SIGINT.
    Interrupted = 130,
}

impl Exit {
    /// The number that the process exits with.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command failed: what standard error shows, and the exit code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// Exit code.
    pub exit: Exit,
    /// One sentence: what was tried, what the kernel said, what to do next.
    pub message: String,
}

impl Failure {
    /// A failure with its exit code.
    pub fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
        }
    }

    /// Exit code 1.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Exit code 2.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Exit code 3.
    pub fn not_permitted(message: impl fmt::Display) -> Self {
        Self::new(Exit::NotPermitted, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<anyhow::Error> for Failure {
    /// The chain of causes becomes one line. An error of the kernel that says "not
    /// permitted" anywhere in it decides the exit code.
    fn from(error: anyhow::Error) -> Self {
        let refused = error.chain().any(|cause| {
            cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|io| io.kind() == std::io::ErrorKind::PermissionDenied)
        });
        let exit = if refused {
            Exit::NotPermitted
        } else {
            Exit::Failed
        };
        Self {
            exit,
            message: format!("{error:#}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_chain_becomes_one_line_and_keeps_its_reason() {
        let kernel = std::io::Error::from_raw_os_error(libc::EPERM);
        let error: Result<(), _> = Err(kernel).context("cannot load the programs");
        let failure = Failure::from(error.unwrap_err());
        assert_eq!(failure.exit, Exit::NotPermitted);
        assert_eq!(
            failure.message,
            "cannot load the programs: Operation not permitted (os error 1)"
        );
    }

    #[test]
    fn codes_are_the_documented_ones() {
        let codes = [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::NotPermitted,
            Exit::Findings,
            Exit::Interrupted,
        ]
        .map(Exit::code);
        assert_eq!(codes, [0, 1, 2, 3, 4, 130]);
    }
}
