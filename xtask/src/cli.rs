//! What was typed, and which command it means.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{build_ebpf, vm};

/// Everything that is done to zc-observe.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the programs that run in the kernel; the object is kept in the tree.
    BuildEbpf(build_ebpf::Args),
    /// Run a command in a guest on a real kernel; a broken kernel fails it.
    Vm(vm::Args),
}

pub(crate) fn run() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::BuildEbpf(args) => build_ebpf::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Vm(args) => vm::run(args),
    }
}
