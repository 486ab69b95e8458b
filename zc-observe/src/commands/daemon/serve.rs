//! A run of the daemon: bind, attach, serve, stop.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::MissedTickBehavior;

use super::canary::{self, Running, Traffic};
use super::output::Output;
use super::ready::ReadyFile;
use super::source::Source;
use super::{attach, probes};
use crate::cli::daemon::DaemonArgs;
use crate::commands::signals::Signals;
use crate::error::{Exit, Failure};
use crate::kernel::host::Host;
use crate::metrics::{self, Exporter, Limits};
use crate::probes::Observer;
use crate::report::{Line, Names, Report, Summary};
use crate::web::{self, ScrapeFailure, Server, State};

// The end is promised within a second of the signal. These add up to less.
const FLOWS_GRACE: Duration = Duration::from_millis(400);
const READ_GRACE: Duration = Duration::from_millis(150);
const SERVER_GRACE: Duration = Duration::from_millis(100);
const DETACH_GRACE: Duration = Duration::from_millis(150);
const OUTPUT_GRACE: Duration = Duration::from_millis(100);

/// Everything that has to end with the daemon.
#[derive(Debug)]
struct Live {
    source: Arc<Source>,
    state: Arc<State>,
    server: Server,
    running: Running,
    output: Output,
    ready: Option<ReadyFile>,
}

/// Runs until a signal.
pub(super) async fn run(arguments: &DaemonArgs, traffic: Vec<Traffic>) -> Result<Exit, Failure> {
    let failed = |what: &'static str| {
        move |error: std::io::Error| Failure::failed(format!("{what}: {error}"))
    };
    let mut signals = Signals::catch().map_err(failed("cannot catch signals"))?;
    let (listeners, addresses) = listen(arguments).await?;
    if let Some(path) = &arguments.ready_file {
        ReadyFile::clear(path).map_err(|error| ready_failure(arguments, &error))?;
    }
    let (waiting, counts) = canary::prepare(traffic);
    let source = Arc::new(Source::new(counts));
    let state = Arc::new(state(arguments, &source));
    let server = Server::start(listeners, &web::router(state.clone()));

    let mode = arguments.probes;
    let attaching = tokio::task::spawn_blocking(move || attach(mode));
    let observer = tokio::select! {
        attached = attaching => attached.map_err(Failure::failed)??,
        exit = signals.next() => return Ok(exit),
    };
    if arguments.strict {
        probes::require_all(&observer.probes())?;
    }
    let host = Host::read();
    let names = Names::new(&host);
    let kernel = metrics::Host::read().map_err(failed("cannot read the kernel's name"))?;
    let output =
        Output::to(anstream::stdout()).map_err(failed("cannot start the output's thread"))?;
    introduce(&output, arguments, &addresses, &observer);
    source.put(observer, Exporter::new(kernel, Limits::default()), names);
    let first = read(&source).await;
    let running = waiting
        .start()
        .map_err(failed("cannot start a flow's thread"))?;
    state.ready.store(true, Ordering::Release);
    let ready = match &arguments.ready_file {
        Some(path) => Some(
            ReadyFile::write(path, &addresses, &arguments.telemetry_path)
                .map_err(|error| ready_failure(arguments, &error))?,
        ),
        None => None,
    };
    let live = Live {
        source,
        state,
        server,
        running,
        output,
        ready,
    };
    let exit = tokio::select! {
        exit = signals.next() => exit,
        never = live.lines(arguments.interval, first), if !arguments.quiet => match never {},
    };
    // A second signal does not wait.
    tokio::select! {
        () = live.stop() => Ok(exit),
        exit = signals.next() => Ok(exit),
    }
}

async fn listen(arguments: &DaemonArgs) -> Result<(Vec<TcpListener>, Vec<SocketAddr>), Failure> {
    let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
    for address in &arguments.listen {
        let listener = web::bind(address).await.map_err(|error| {
            let exit = if error.exit_not_permitted() {
                Exit::NotPermitted
            } else {
                Exit::Failed
            };
            Failure::new(exit, error)
        })?;
        let bound = listener.local_addr().map_err(|error| {
            Failure::failed(format!(
                "cannot read back the address of {address}: {error}"
            ))
        })?;
        listeners.push(listener);
        addresses.push(bound);
    }
    Ok((listeners, addresses))
}

fn ready_failure(arguments: &DaemonArgs, error: &std::io::Error) -> Failure {
    let path = arguments
        .ready_file
        .as_deref()
        .unwrap_or_else(|| std::path::Path::new(""));
    Failure::failed(format!(
        "cannot write the ready-file {}: {error}; name a file in a folder that is writable",
        path.display()
    ))
}

fn state(arguments: &DaemonArgs, source: &Arc<Source>) -> State {
    let source = source.clone();
    State {
        telemetry_path: arguments.telemetry_path.clone(),
        ready: AtomicBool::new(false),
        scrape: Box::new(move || source.scrape()),
    }
}

/// The first lines: where the metrics are, what is attached, what is refused.
fn introduce(
    output: &Output,
    arguments: &DaemonArgs,
    addresses: &[SocketAddr],
    observer: &Observer,
) {
    for address in addresses {
        tracing::info!(%address, "serving");
        output.line(format!("http://{address}{}", arguments.telemetry_path));
    }
    output.line(probes::tier_line(&observer.probes()));
    if let Some(refusal) = observer.refusal() {
        output.line(refusal);
    }
}

async fn read(source: &Arc<Source>) -> Option<Report> {
    let source = source.clone();
    match tokio::task::spawn_blocking(move || source.report()).await {
        Ok(Ok(report)) => Some(report),
        Ok(Err(ScrapeFailure::NotReady)) => None,
        Ok(Err(ScrapeFailure::Failed(why))) => {
            tracing::warn!("no line: {why}");
            None
        }
        Err(error) => {
            tracing::error!("no line: {error}");
            None
        }
    }
}

impl Live {
    /// A line every interval, forever.
    async fn lines(&self, interval: Duration, first: Option<Report>) -> Infallible {
        let mut before = first;
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        // The first tick is now.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            if let Some(now) = read(&self.source).await {
                self.output.line(
                    Line {
                        before: before.as_ref(),
                        now: &now,
                    }
                    .to_string(),
                );
                before = Some(now);
            }
        }
    }

    /// Ends everything in order: traffic, the last reading, connections, probes.
    async fn stop(self) {
        let Self {
            source,
            state,
            server,
            running,
            output,
            ready,
        } = self;
        state.ready.store(false, Ordering::Release);
        let flows = tokio::task::spawn_blocking(move || running.stop(FLOWS_GRACE));
        if let Err(error) = flows.await {
            tracing::error!("the flows were not stopped: {error}");
        }
        match tokio::time::timeout(READ_GRACE, read(&source)).await {
            Ok(Some(report)) => output.line(Summary(&report).to_string()),
            Ok(None) => {}
            Err(_) => tracing::warn!("no summary: reading the maps took too long"),
        }
        server.stop(SERVER_GRACE).await;
        let detaching = tokio::task::spawn_blocking(move || source.detach());
        if tokio::time::timeout(DETACH_GRACE, detaching).await.is_err() {
            tracing::info!("the kernel detaches the rest as the process ends");
        }
        output.finish(OUTPUT_GRACE);
        drop(ready);
    }
}
