//! `test`: everything that must hold, with true numbers at the end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::counts::Counts;
use crate::guest_tests::KERNELS;
use crate::process::run as run_program;
use crate::tee::{Kept, Tee};
use crate::{build_ebpf, matrix, packages, workspace};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this part.
    #[arg(long)]
    only: Option<Part>,
    /// Only these kernels.
    #[arg(long)]
    kernel: Vec<String>,
}

/// A part of the tests.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Part {
    /// Formatting and lints.
    Lint,
    /// The object in the tree against its source.
    Ebpf,
    /// Tests of pure logic (a part of `host`).
    Unit,
    /// All tests that run on this kernel.
    Host,
    /// Tests on other kernels.
    Guest,
}

/// A step and how it went.
#[derive(Debug)]
pub(crate) struct Step {
    name: String,
    time: Duration,
    result: Result<Counts>,
}

impl Step {
    /// A step that began at `start` and ends now.
    pub(crate) fn new(name: String, start: Instant, result: Result<Counts>) -> Self {
        Self {
            name,
            time: start.elapsed(),
            result,
        }
    }

    /// Does a step that counts no tests: it is one itself.
    fn plain(name: &str, step: impl FnOnce() -> Result<()>) -> Self {
        Self::counted(name, || {
            step().map(|()| Counts {
                passed: 1,
                failed: 0,
                programs: 0,
            })
        })
    }

    fn counted(name: &str, step: impl FnOnce() -> Result<Counts>) -> Self {
        println!("==> {name}");
        let start = Instant::now();
        let step = Self::new(name.to_owned(), start, step());
        if let Err(error) = &step.result {
            println!("{name}: {error:#}");
        }
        step
    }

    /// Tests passed and failed; a step that broke off is one failure.
    fn numbers(&self) -> (u64, u64) {
        match &self.result {
            Ok(counts) => (counts.passed, counts.failed),
            Err(_) => (0, 1),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let start = Instant::now();
    let wants = |part| match args.only {
        None => part != Part::Unit,
        Some(only) => only == part,
    };
    let mut steps = vec![Step::plain("packages", || {
        packages::ensure(packages::GUEST)?;
        packages::ensure(packages::TEST)
    })];
    if wants(Part::Lint) {
        steps.push(Step::plain("cargo fmt", || {
            cargo(&["fmt", "--all", "--check"])
        }));
        steps.push(Step::plain("cargo clippy", || {
            cargo(&[
                "clippy",
                "--quiet",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ])
        }));
    }
    if wants(Part::Ebpf) {
        steps.push(Step::plain("build-ebpf --check", build_ebpf::check));
    }
    if wants(Part::Unit) {
        steps.push(Step::counted("cargo test, units", || {
            tests(&["--lib", "--bins"])
        }));
    }
    if wants(Part::Host) {
        steps.push(Step::counted("cargo test, this kernel", || tests(&[])));
    }
    if wants(Part::Guest) {
        let mut kernels = args.kernel.clone();
        if kernels.is_empty() {
            kernels = KERNELS.iter().map(|&name| name.to_owned()).collect();
        }
        println!("==> guests: {}", kernels.join(", "));
        let start = Instant::now();
        match matrix::run(&kernels) {
            Ok(guests) => steps.extend(guests),
            Err(error) => steps.push(Step::new("guests".to_owned(), start, Err(error))),
        }
    }
    Ok(summary(&steps, start.elapsed()))
}

/// One line per step, then the sum as the very last line.
fn summary(steps: &[Step], time: Duration) -> ExitCode {
    println!("\nin {} s:", time.as_secs());
    let (mut passed, mut failed) = (0, 0);
    for step in steps {
        let (good, bad) = step.numbers();
        passed += good;
        failed += bad;
        let word = if bad == 0 { "ok" } else { "FAILED" };
        println!(
            "{word:6} {:6.1} s  {good:5} passed {bad:3} failed  {}",
            step.time.as_secs_f64(),
            step.name
        );
        if let Err(error) = &step.result {
            println!("       {error:#}");
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn cargo(args: &[&str]) -> Result<()> {
    let mut command = Command::new("cargo");
    command.current_dir(workspace::root()?).args(args);
    run_program(&mut command, &format!("do `cargo {}`", args.join(" ")))
}

/// Runs cargo's tests, all of them even if some fail, and counts.
fn tests(args: &[&str]) -> Result<Counts> {
    let mut child = Command::new("cargo")
        .current_dir(workspace::root()?)
        .args(["test", "--quiet", "--workspace", "--no-fail-fast"])
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let kept = Kept::default();
    let mut tee = Tee::new("", &kept);
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let mut line = line.context("cannot read what cargo says")?;
            line.push(b'\n');
            tee.write_all(&line)
                .context("cannot show what cargo says")?;
        }
    }
    let status = child.wait().context("cannot wait for cargo")?;
    let counts = Counts::read(&kept.text());
    if counts.passed + counts.failed == 0 {
        bail!("no test ran: cargo ended with {status}");
    }
    if !status.success() && counts.failed == 0 {
        bail!(
            "cargo ended with {status} although {} tests passed and none failed",
            counts.passed
        );
    }
    Ok(counts)
}
