//! The guest tests: one boot per kernel, every test with every kind of probe in it.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::counts::Counts;
use crate::guest::{Outcome, Sinks};
use crate::guest_tests::{ARGS, PROBES, TESTS};
use crate::init::Job;
use crate::kernels::{self, Kernel};
use crate::qemu::Machine;
use crate::tee::{Kept, Tee};
use crate::test::Step;
use crate::vm::{self, Spec};
use crate::{initramfs, static_build};

/// Guests that run at the same time.
const PARALLEL: usize = 2;
const TIMEOUT: Duration = Duration::from_secs(900);

/// Runs everything on every kernel. One step per kernel, whatever happens.
pub(crate) fn run(wanted: &[String]) -> Result<Vec<Step>> {
    let cache = Cache::open()?;
    let mut programs = Vec::new();
    for test in TESTS {
        let program = static_build::test(test.name)?;
        initramfs::check_static(&program)?;
        programs.push(program);
    }
    let programs = programs.as_slice();
    let mut waiting = VecDeque::new();
    for (index, name) in wanted.iter().enumerate() {
        waiting.push_back((index, name, kernels::ensure(&cache, name, false)?));
    }
    let waiting = Mutex::new(waiting);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                while let Some((index, name, kernel)) = waiting
                    .lock()
                    .ok()
                    .and_then(|mut waiting| waiting.pop_front())
                {
                    let step = boot(name, &kernel, programs);
                    if let Ok(mut done) = done.lock() {
                        done.push((index, step));
                    }
                }
            });
        }
    });
    let mut done = done
        .into_inner()
        .ok()
        .context("a thread that runs a guest died")?;
    if done.len() != wanted.len() {
        bail!("{} of {} kernels were tested", done.len(), wanted.len());
    }
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, step)| step).collect())
}

/// Tests one kernel.
fn boot(name: &str, kernel: &Kernel, programs: &[PathBuf]) -> Step {
    let start = Instant::now();
    let kept = Kept::default();
    let spec = spec(name, programs);
    let prefix = format!("[{name}] ");
    let result = (|| {
        let sinks = Sinks {
            stdout: Box::new(Tee::new(&prefix, &kept)),
            stderr: Box::new(Tee::new(&prefix, &Kept::default())),
            console: Box::new(io::sink()),
        };
        let outcome = vm::boot(&spec, kernel, sinks, channel())?;
        judge(&spec, &outcome, &kept.text())
    })();
    Step::new(format!("guest {name} ({})", kernel.release), start, result)
}

fn spec(name: &str, programs: &[PathBuf]) -> Spec {
    let mut files = Vec::new();
    // Even without tests a kernel must boot and run a program.
    let mut jobs = vec![Job {
        title: Some("kernel".to_owned()),
        env: Vec::new(),
        command: vec!["uname".to_owned(), "-r".to_owned()],
    }];
    for (test, program) in TESTS.iter().zip(programs) {
        files.push((program.clone(), Path::new("/bin").join(test.name)));
        for probes in PROBES {
            let mut command = vec![test.name.to_owned()];
            command.extend(ARGS.iter().map(|&arg| arg.to_owned()));
            jobs.push(Job {
                title: Some(format!("=== {} with {probes}", test.name)),
                env: vec![
                    ("ZC_OBSERVE_PROBES".to_owned(), (*probes).to_owned()),
                    ("RUST_BACKTRACE".to_owned(), "1".to_owned()),
                ],
                command,
            });
        }
    }
    let mut modules: Vec<String> = TESTS
        .iter()
        .flat_map(|test| test.modules)
        .map(|&module| module.to_owned())
        .collect();
    modules.sort();
    modules.dedup();
    Spec {
        kernel: name.to_owned(),
        machine: Machine {
            memory: "1G".to_owned(),
            cpus: 2,
            forwards: Vec::new(),
        },
        modules,
        files,
        jobs,
        timeout: TIMEOUT,
    }
}

/// Counts the tests of a run; every job must have ended and said its result.
fn judge(spec: &Spec, outcome: &Outcome, output: &str) -> Result<Counts> {
    if let Some((_, why)) = vm::fault(spec, outcome) {
        bail!("{why}");
    }
    let mut counts = Counts::default();
    for (index, (job, status)) in spec.jobs.iter().zip(&outcome.statuses).enumerate() {
        let title = job.title.as_deref().unwrap_or_default();
        let next = spec
            .jobs
            .get(index + 1)
            .and_then(|job| job.title.as_deref());
        let mut of_job = Counts::read(section(output, title, next));
        if index == 0 {
            // The kernel itself counts as one.
            of_job = Counts {
                passed: 1,
                failed: 0,
                programs: 1,
            };
        }
        if (*status != 0 || of_job.programs != 1) && of_job.failed == 0 {
            println!(
                "{}: {title}: ended with {status} and {} results",
                spec.kernel, of_job.programs
            );
            of_job.failed = 1;
        }
        counts += of_job;
    }
    Ok(counts)
}

/// The part of an output between two lines.
fn section<'a>(output: &'a str, title: &str, next: Option<&str>) -> &'a str {
    let line = |text: &str, from: &str| {
        text.match_indices(from)
            .map(|(at, _)| at)
            .find(|&at| at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n'))
    };
    let from = line(output, &format!("{title}\n")).map_or("", |at| output.get(at..).unwrap_or(""));
    match next.and_then(|next| line(from, &format!("{next}\n"))) {
        Some(end) => from.get(..end).unwrap_or(from),
        None => from,
    }
}

#[cfg(test)]
mod tests {
    use super::{judge, section};
    use crate::counts::Counts;
    use crate::guest::{End, Outcome};
    use crate::init::Job;
    use crate::vm::Spec;

    const OK: &str = "test result: ok. 2 passed; 0 failed; 0 ignored\n";

    fn run(statuses: &[u8], output: &str) -> anyhow::Result<Counts> {
        let mut spec: Spec = super::spec("6.12", &[]);
        for title in ["=== a with kprobe", "=== a with fentry"] {
            spec.jobs.push(Job {
                title: Some(title.to_owned()),
                ..Job::default()
            });
        }
        // Only these two follow the kernel's own job, whatever the table has.
        spec.jobs.drain(1..spec.jobs.len() - 2);
        let outcome = Outcome {
            statuses: statuses.to_vec(),
            end: End::Done,
            log: String::new(),
        };
        judge(&spec, &outcome, output)
    }

    #[test]
    fn sections_are_told_apart() {
        let output = "kernel\n6.12\n=== a\none\n=== b\ntwo\n";
        assert_eq!(section(output, "=== a", Some("=== b")), "=== a\none\n");
        assert_eq!(section(output, "=== b", None), "=== b\ntwo\n");
        assert_eq!(section(output, "=== c", None), "");
    }

    #[test]
    fn every_job_must_say_its_result() {
        let both = format!("kernel\n6\n=== a with kprobe\n{OK}=== a with fentry\n{OK}");
        let counts = run(&[0, 0, 0], &both).unwrap();
        assert_eq!((counts.passed, counts.failed), (5, 0));
        let one = format!("kernel\n6\n=== a with kprobe\n{OK}=== a with fentry\n");
        let counts = run(&[0, 0, 0], &one).unwrap();
        assert_eq!((counts.passed, counts.failed), (3, 1));
        assert_eq!(run(&[0, 0, 101], &both).unwrap().failed, 1);
        assert!(run(&[0, 0], &both).is_err());
    }
}
