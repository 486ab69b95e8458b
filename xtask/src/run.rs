//! `run`: the main job, here or in a guest.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::guest::Sinks;
use crate::init::Job;
use crate::process::run as run_program;
use crate::qemu::{Forward, Machine};
use crate::vm::{self, Spec};
use crate::{kernels, packages, signals, workspace};

/// Port of the metrics, here and in the guest.
const PORT: u16 = 9814;
/// The daemon's own traffic.
const GENERATE: &[&str] = &["tcp4", "udp4", "tcp6", "udp6"];
/// A guest runs until it is interrupted.
const FOREVER: Duration = Duration::from_hours(24 * 365);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// In a guest with this kernel, where all kinds of probes work.
    #[arg(long, value_name = "KERNEL", num_args = 0..=1, default_missing_value = "6.12")]
    vm: Option<String>,
    /// Further arguments for the daemon.
    #[arg(last = true)]
    daemon: Vec<String>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let mut daemon = vec!["daemon".to_owned()];
    for spec in GENERATE {
        daemon.extend(["--generate".to_owned(), (*spec).to_owned()]);
    }
    match args.vm {
        None => {
            daemon.extend(args.daemon);
            here(&daemon)
        }
        Some(kernel) => {
            // Only QEMU's network reaches it, which this host's loopback leads to.
            daemon.extend(["--web.listen-address".to_owned(), format!("0.0.0.0:{PORT}")]);
            daemon.extend(args.daemon);
            in_guest(kernel, daemon)
        }
    }
}

/// Builds the daemon and becomes it, so that signals and its status are its own.
fn here(daemon: &[String]) -> Result<ExitCode> {
    let mut build = Command::new("cargo");
    build.current_dir(workspace::root()?).args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "zc-observe",
    ]);
    run_program(&mut build, "build zc-observe")?;
    let program = workspace::target("release")?.join("zc-observe");
    let error = Command::new(&program).args(daemon).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

fn in_guest(kernel: String, daemon: Vec<String>) -> Result<ExitCode> {
    packages::ensure(packages::GUEST)?;
    let mut command = vec!["zc-observe".to_owned()];
    command.extend(daemon);
    let files = vm::program_file("zc-observe")?.into_iter().collect();
    let found = kernels::ensure(&Cache::open()?, &kernel, false)?;
    let spec = Spec {
        kernel,
        machine: Machine {
            memory: "1G".to_owned(),
            cpus: 2,
            forwards: vec![Forward {
                host: PORT,
                guest: PORT,
            }],
        },
        modules: Vec::new(),
        files,
        jobs: vec![Job {
            title: None,
            env: Vec::new(),
            command,
        }],
        timeout: FOREVER,
    };
    let sinks = Sinks {
        stdout: Box::new(io::stdout()),
        stderr: Box::new(io::stderr()),
        console: Box::new(io::sink()),
    };
    eprintln!(
        "booting {}; metrics will be at http://127.0.0.1:{PORT}/metrics; Ctrl-C ends it",
        found.release
    );
    let (sender, receiver) = channel();
    signals::forward(sender.clone())?;
    let outcome = vm::boot(&spec, &found, sinks, (sender, receiver))?;
    Ok(ExitCode::from(vm::verdict(&spec, &outcome, false)))
}
