//! `zc-observe generate`: sends, and tells what became of every send.

mod output;

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::signals::Signals;
use crate::cli::generate::{Format, GenerateArgs};
use crate::cli::listen::ListenAddress;
use crate::error::{Exit, Failure};
use crate::generator::{self, Counters, Family, GenerateError, Spec, Totals, syntax};
use output::Output;

/// How long a run sends if nothing says when to end.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);

/// Runs the generator to its end or a signal.
///
/// # Errors
/// When the host or the command line does not permit it, or not every send is accounted
/// for.
pub fn run(arguments: &GenerateArgs) -> Result<Exit, Failure> {
    let spec = spec(arguments)?;
    let format = if arguments.json {
        Format::Json
    } else {
        arguments.format
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the runtime: {error}")))?;
    let output = Output { spec, format };
    let counters = Arc::new(Counters::default());
    let (ran, signal) = runtime.block_on(drive(&output, &counters, arguments.interval))?;
    let totals = counters.read();
    if let Err(error) = &ran
        && totals.sends == 0
        && totals.delivered == 0
    {
        return Err(failure(error));
    }
    print(&output.last(&totals));
    match (ran, signal) {
        (Err(error), _) => Err(failure(&error)),
        (Ok(_), Some(exit)) => Ok(exit),
        (Ok(totals), None) => verdict(&output.spec, &totals),
    }
}

type Ran = Result<Totals, GenerateError>;

/// Runs on a thread of its own, prints lines meanwhile, and stops it at a signal.
async fn drive(
    output: &Output,
    counters: &Arc<Counters>,
    interval: Option<Duration>,
) -> Result<(Ran, Option<Exit>), Failure> {
    let mut signals = Signals::catch()
        .map_err(|error| Failure::failed(format!("cannot catch signals: {error}")))?;
    let stop = Arc::new(AtomicBool::new(false));
    let (spec, counted, stopped) = (output.spec.clone(), counters.clone(), stop.clone());
    let mut running =
        tokio::task::spawn_blocking(move || generator::run(&spec, &counted, &stopped));
    let mut ticks = tokio::time::interval(interval.unwrap_or(Duration::from_secs(3600)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    // The first tick is now.
    ticks.tick().await;
    let mut before = Totals::default();
    let mut signal = None;
    loop {
        tokio::select! {
            ran = &mut running => return Ok((ran.map_err(Failure::failed)?, signal)),
            exit = signals.next() => {
                stop.store(true, Ordering::Release);
                signal.get_or_insert(exit);
            }
            _ = ticks.tick(), if interval.is_some() => {
                let now = counters.read();
                print(&output.line(&before, &now));
                before = now;
            }
        }
    }
}

/// What was typed, as a spec.
fn spec(arguments: &GenerateArgs) -> Result<Spec, Failure> {
    let (transport, family) = (arguments.transport, arguments.family);
    let usage = |flag: &'static str, text: String| {
        move |why: String| Failure::usage(format!("{flag} {text}: {why}"))
    };
    let connect = match &arguments.connect {
        Some(text) => {
            Some(syntax::address(text, family).map_err(usage("--connect", text.clone()))?)
        }
        None => None,
    };
    let listen = match &arguments.listen {
        Some(at) => Some(resolve(at, family).map_err(usage("--listen", at.to_string()))?),
        None => None,
    };
    let endless = arguments.count.is_some() || listen.is_some();
    let spec = Spec {
        engine: arguments.engine,
        size: arguments
            .size
            .unwrap_or_else(|| Spec::default_size(transport, family, arguments.gso)),
        count: arguments.count,
        duration: arguments
            .duration
            .or((!endless).then_some(DEFAULT_DURATION)),
        flows: arguments.flows,
        rate: arguments.rate,
        reap_every: arguments.reap_every,
        gso: arguments.gso,
        nodelay: arguments.nodelay,
        cork: arguments.cork,
        device: arguments.device.clone(),
        sender_cpu: arguments.sender_cpu,
        receiver_cpu: arguments.receiver_cpu,
        verify: arguments.verify,
        connect,
        listen,
        ..Spec::new(transport, family)
    };
    spec.check()
        .map_err(|error| Failure::usage(format!("--{error}")))?;
    Ok(spec)
}

fn resolve(at: &ListenAddress, family: Family) -> Result<SocketAddr, String> {
    if at.host.is_empty() {
        return Ok(match family {
            Family::V4 => (Ipv4Addr::UNSPECIFIED, at.port).into(),
            Family::V6 => (Ipv6Addr::UNSPECIFIED, at.port).into(),
        });
    }
    (at.host.as_str(), at.port)
        .to_socket_addrs()
        .map_err(|error| error.to_string())?
        .find(|address| address.is_ipv4() == (family == Family::V4))
        .ok_or_else(|| format!("no address of IPv{family}"))
}

fn failure(error: &GenerateError) -> Failure {
    let exit = match error {
        GenerateError::Spec(_) => Exit::Usage,
        error if error.exit_not_permitted() => Exit::NotPermitted,
        _ => Exit::Failed,
    };
    Failure::new(exit, error)
}

/// Whether every send and byte is accounted for.
fn verdict(spec: &Spec, totals: &Totals) -> Result<Exit, Failure> {
    let pending = output::pending(spec, totals);
    if pending > 0 {
        return Err(Failure::failed(format!(
            "{pending} of {} sends have no notification: the kernel still holds their payload, for example because the other side does not take it",
            totals.sends
        )));
    }
    if totals.verify_failures > 0 {
        return Err(Failure::failed(format!(
            "{} messages arrived changed",
            totals.verify_failures
        )));
    }
    let own_receiver = spec.connect.is_none() && spec.listen.is_none();
    if own_receiver && totals.delivered_bytes != totals.bytes {
        return Err(Failure::failed(format!(
            "{} bytes were sent and {} arrived: the receiver's socket dropped datagrams, or the run was cut short",
            totals.bytes, totals.delivered_bytes
        )));
    }
    Ok(Exit::Done)
}

fn print(text: &str) {
    // A reader that is gone does not change what is counted.
    let _ = writeln!(anstream::stdout(), "{text}");
}
