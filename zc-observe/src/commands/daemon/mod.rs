//! `zc-observe daemon`: attaches, counts, serves.

mod canary;
mod output;
mod probes;
mod ready;
mod serve;
mod source;
mod traffic;

use std::io::Write;
use std::time::Duration;

use crate::cli::daemon::DaemonArgs;
use crate::error::{Exit, Failure};
use crate::probes::{AttachError, Mode, Observer, Options};

/// How long threads that hang may hold up the end.
const LAST_GRACE: Duration = Duration::from_millis(50);

/// Runs the daemon until a signal ends it.
///
/// # Errors
/// When the host or the command line does not permit it.
pub fn run(arguments: &DaemonArgs) -> Result<Exit, Failure> {
    if arguments.check {
        return check(arguments);
    }
    let traffic = arguments
        .generate
        .iter()
        .map(|spec| traffic::parse(spec))
        .collect::<Result<_, _>>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(8)
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the daemon's threads: {error}")))?;
    let exit = runtime.block_on(serve::run(arguments, traffic));
    runtime.shutdown_timeout(LAST_GRACE);
    exit
}

/// Loads and attaches, shows what became of each probe, and ends.
fn check(arguments: &DaemonArgs) -> Result<Exit, Failure> {
    let observer = attach(arguments.probes)?;
    let probes = observer.probes();
    let mut text = probes::table(&probes);
    if let Some(refusal) = observer.refusal() {
        text.push_str("\n\n");
        text.push_str(&refusal);
    }
    // A reader that is gone does not change what was found.
    let _ = writeln!(anstream::stdout(), "{text}");
    if arguments.strict {
        probes::require_all(&probes)?;
    }
    Ok(Exit::Done)
}

fn attach(mode: Mode) -> Result<Observer, Failure> {
    Observer::attach(&Options { mode }).map_err(|error| attach_failure(&error))
}

fn attach_failure(error: &AttachError) -> Failure {
    let exit = if error.exit_not_permitted() {
        Exit::NotPermitted
    } else {
        Exit::Failed
    };
    Failure::new(exit, error)
}
