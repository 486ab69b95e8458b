//! The commands: each does what its command line says and returns how it ended.

pub mod daemon;
pub mod generate;
mod signals;

use crate::cli::{Cli, Command};
use crate::error::{Exit, Failure};

/// Runs the command.
///
/// # Errors
/// With the exit code and one sentence.
pub fn run(cli: Cli) -> Result<Exit, Failure> {
    match cli.command {
        Command::Daemon(arguments) => daemon::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
    }
}
