//! `vm`: runs a command on a real kernel, as a test.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::guest::{End, Event, Guest, Outcome, Sinks};
use crate::init::{self, Job};
use crate::initramfs::{self, Initramfs};
use crate::kernels::Kernel;
use crate::qemu::{Forward, Machine};
use crate::{console, guest, kernels, modules, packages, signals, static_build};

/// Status of a run whose time was over, as timeout(1) has it.
const TIMED_OUT: u8 = 124;
/// Always loaded: the ports that init talks over.
const PORTS: &[&str] = &["virtio_pci", "virtio_console"];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// 5.10, 6.1, 6.12, 7.3, or a Debian package such as linux-image-6.1.0-50-amd64.
    #[arg(long, default_value = "6.12")]
    kernel: String,
    /// Look for a newer package of that series.
    #[arg(long)]
    refresh: bool,
    /// Probes for programs under test: sets ZC_OBSERVE_PROBES.
    #[arg(long, default_value = "auto", value_parser = ["auto", "fentry", "kprobe", "tracepoint"])]
    probes: String,
    /// Kill the guest after this time.
    #[arg(long, default_value = "120s", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Memory of the guest.
    #[arg(long, default_value = "1G")]
    memory: String,
    /// Processors of the guest.
    #[arg(long, default_value_t = 2)]
    cpus: u32,
    /// Forward a port of this host's loopback to a port of the guest.
    #[arg(long, value_name = "HOST:GUEST", value_parser = parse_forward)]
    forward: Vec<Forward>,
    /// Load a module, with what it needs.
    #[arg(long, value_name = "NAME")]
    module: Vec<String>,
    /// Put a file of this host into the guest, with the libraries that it needs.
    #[arg(long, value_name = "HOST_PATH[:GUEST_PATH]")]
    file: Vec<String>,
    /// Show the kernel's console on standard error.
    #[arg(long, short)]
    verbose: bool,
    /// A program in the guest (`zc-observe` is built if needed) or a static one of this
    /// host, by its path, and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// What to run where.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) kernel: String,
    pub(crate) machine: Machine,
    pub(crate) modules: Vec<String>,
    /// Files of the host and their paths in the guest.
    pub(crate) files: Vec<(PathBuf, PathBuf)>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) timeout: Duration,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let (sender, receiver) = channel::<Event>();
    packages::ensure(packages::GUEST)?;
    let mut files = args
        .file
        .iter()
        .map(|file| parse_file(file))
        .collect::<Vec<_>>();
    let mut command = args.command;
    if let Some(program) = command.first_mut()
        && let Some((host, guest)) = program_file(program)?
    {
        *program = guest.to_string_lossy().into_owned();
        files.push((host, guest));
    }
    let spec = Spec {
        kernel: args.kernel,
        machine: Machine {
            memory: args.memory,
            cpus: args.cpus,
            forwards: args.forward,
        },
        modules: args.module,
        files,
        jobs: vec![Job {
            title: None,
            env: vec![("ZC_OBSERVE_PROBES".to_owned(), args.probes)],
            command,
        }],
        timeout: args.timeout,
    };
    let sinks = Sinks {
        stdout: Box::new(io::stdout()),
        stderr: Box::new(io::stderr()),
        console: if args.verbose {
            Box::new(io::stderr())
        } else {
            Box::new(io::sink())
        },
    };
    let kernel = kernels::ensure(&Cache::open()?, &spec.kernel, args.refresh)?;
    signals::forward(sender.clone())?;
    let outcome = boot(&spec, &kernel, sinks, (sender, receiver))?;
    Ok(ExitCode::from(verdict(&spec, &outcome, args.verbose)))
}

/// Makes the guest's file system, boots it, runs the jobs.
pub(crate) fn boot(
    spec: &Spec,
    kernel: &Kernel,
    sinks: Sinks,
    events: (Sender<Event>, Receiver<Event>),
) -> Result<Outcome> {
    let network = !spec.machine.forwards.is_empty();
    let mut wanted: Vec<String> = PORTS.iter().map(|&name| name.to_owned()).collect();
    if network {
        wanted.push("virtio_net".to_owned());
    }
    wanted.extend_from_slice(&spec.modules);
    let modules = modules::read(kernel, &wanted)?;

    let marker = format!("\u{1}end of output {}\u{1}", std::process::id());
    let names: Vec<String> = modules.iter().map(|module| module.file.clone()).collect();
    let mut fs = Initramfs::new(&init::script(&names, network, &spec.jobs, &marker))?;
    for module in &modules {
        fs.module(module)?;
    }
    for (host, guest) in &spec.files {
        fs.host_file(host, guest)?;
        fs.libraries_of(host)?;
    }
    let guest = Guest {
        machine: &spec.machine,
        vmlinux: &kernel.vmlinux,
        initramfs: &fs.finish()?,
        marker: &marker,
        timeout: spec.timeout,
    };
    guest::run(&guest, sinks, events)
}

/// Why a run failed although its commands may have succeeded; `None` if it did not.
pub(crate) fn fault(spec: &Spec, outcome: &Outcome) -> Option<(u8, String)> {
    if let Some(report) = console::splat(&outcome.log) {
        return Some((1, format!("the guest's kernel broke:\n{report}")));
    }
    let log = || console::tail(&outcome.log, 40);
    match &outcome.end {
        End::Done if outcome.statuses.len() == spec.jobs.len() => None,
        End::Done => Some((
            1,
            format!(
                "{} of {} commands ran",
                outcome.statuses.len(),
                spec.jobs.len()
            ),
        )),
        End::TimedOut => Some((
            TIMED_OUT,
            format!(
                "killed the guest: not done after {} (see --timeout). Its kernel's last words:\n{}",
                humantime::format_duration(spec.timeout),
                log()
            ),
        )),
        End::Died(status) => Some((
            1,
            format!(
                "the guest ended before its commands did (QEMU: {status}). Its kernel's last words:\n{}",
                log()
            ),
        )),
        End::Interrupted => Some((130, "interrupted".to_owned())),
    }
}

/// The status to exit with; says why if it is our own.
pub(crate) fn verdict(spec: &Spec, outcome: &Outcome, console_shown: bool) -> u8 {
    if let Some((status, why)) = fault(spec, outcome) {
        let first = why.lines().next().unwrap_or_default();
        eprintln!(
            "xtask: {}: {}",
            spec.kernel,
            if console_shown { first } else { &why }
        );
        return status;
    }
    outcome
        .statuses
        .iter()
        .copied()
        .find(|status| *status != 0)
        .unwrap_or(0)
}

/// The host's file for a command's first word, if it means one, and its place in the guest.
pub(crate) fn program_file(program: &str) -> Result<Option<(PathBuf, PathBuf)>> {
    let host = if program == "zc-observe" {
        static_build::program()?
    } else if program.contains('/') && Path::new(program).is_file() {
        PathBuf::from(program)
    } else {
        return Ok(None);
    };
    initramfs::check_static(&host)?;
    let name = host
        .file_name()
        .with_context(|| format!("{program} has no file name"))?;
    let guest = Path::new("/bin").join(name);
    Ok(Some((host, guest)))
}

fn parse_file(text: &str) -> (PathBuf, PathBuf) {
    match text.split_once(':') {
        Some((host, guest)) => (host.into(), guest.into()),
        None => {
            let host = PathBuf::from(text);
            let guest = std::path::absolute(&host).unwrap_or_else(|_| host.clone());
            (host, guest)
        }
    }
}

fn parse_forward(text: &str) -> Result<Forward> {
    let Some((host, guest)) = text.split_once(':') else {
        bail!("give HOST_PORT:GUEST_PORT");
    };
    let port = |text: &str| text.parse().with_context(|| format!("`{text}` is no port"));
    Ok(Forward {
        host: port(host)?,
        guest: port(guest)?,
    })
}
