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
mod console;
mod counts;
mod guest;
mod guest_tests;
mod image;
mod init;
mod initramfs;
mod kernels;
mod matrix;
mod modules;
mod packages;
mod process;
mod qemu;
mod run;
mod rust_src;
mod signals;
mod static_build;
mod stream;
mod strip;
mod tee;
mod test;
mod vm;
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
