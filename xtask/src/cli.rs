//! What was typed, and which command it means.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{build_ebpf, run, test, vm};

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
    /// Test everything, on this kernel and in guests.
    Test(test::Args),
    /// Do the main job: observe, and send a little zero-copy traffic.
    Run(run::Args),
}

pub(crate) fn run() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::BuildEbpf(args) => build_ebpf::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Vm(args) => vm::run(args),
        Command::Test(args) => test::run(&args),
        Command::Run(args) => run::run(args),
    }
}
