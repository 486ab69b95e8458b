//! `cargo xtask`: everything that is done to zc-observe.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool; nothing else reads its standard streams"
)]

mod apt;
mod bpf_linker;
mod build_ebpf;
mod cache;
mod cli;
mod process;
mod rust_src;
mod strip;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
