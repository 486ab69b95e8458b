//! The command line of zc-observe.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use zc_observe::cli::Cli;
use zc_observe::{commands, log};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing is left to tell anybody if this stream is closed.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    cli.global.color.apply();
    log::start(&cli.global);
    match commands::run(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let _ = writeln!(anstream::stderr(), "zc-observe: {failure}");
            failure.exit.into()
        }
    }
}
