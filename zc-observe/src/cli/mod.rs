//! What was typed, nothing else.

pub mod daemon;
pub mod generate;
pub mod global;
pub mod listen;

use clap::{Parser, Subcommand};

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "zc-observe",
    version,
    about = "Shows when Linux zero-copy transmit falls back to copying: what, where, who, why",
    after_help = EXIT_CODES,
    max_term_width = 100,
    propagate_version = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: global::Global,

    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Attach the probes, count, and serve /metrics
    Daemon(daemon::DaemonArgs),
    /// Send zero-copy traffic and tell what became of every send
    Generate(generate::GenerateArgs),
}

/// What every help ends with.
pub const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 failed; 2 wrong command line; 3 the host does not permit it (what is
missing is named); 4 findings, with --exit-code; 130 interrupted (Ctrl-C).";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
