//! A run: sockets, threads, and their end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use socket2::{SockAddr, Socket};

use super::counters::{Counters, Totals};
use super::error::GenerateError;
use super::receive::Receiver;
use super::sender::{Sender, Stop};
use super::socket;
use super::spec::{Spec, Transport};
use super::thread::{cpu_time, pin};
use super::window::Window;

type Done = Result<(), GenerateError>;

/// A flow whose sockets are ready.
#[derive(Debug)]
struct Flow {
    sender: Socket,
    /// None if the other side receives.
    receiver: Option<Socket>,
    window: Option<Window>,
}

/// Sends what the spec says and counts it, until its end or `stop`. Every accepted send
/// has its notification counted when this returns, except for what is late: 5 s after
/// the last one that came, or 0.2 s after `stop`.
///
/// # Errors
/// The first that any flow met; the others are stopped. What was counted until then is
/// in the counters.
pub fn run(spec: &Spec, counters: &Counters, stop: &AtomicBool) -> Result<Totals, GenerateError> {
    spec.check()?;
    let failed = AtomicBool::new(false);
    let mut stop = Stop {
        user: stop,
        failed: &failed,
        deadline: None,
    };
    let done = if spec.listen.is_some() {
        stop.deadline = spec.duration.map(|time| Instant::now() + time);
        listen(spec, counters, stop)
    } else {
        let flows = (0..spec.flows)
            .map(|_| connect(spec, stop))
            .collect::<Result<Option<Vec<_>>, _>>()?;
        let Some(flows) = flows else {
            return Ok(counters.read());
        };
        counters.begin();
        stop.deadline = spec.duration.map(|time| Instant::now() + time);
        send(spec, &flows, counters, stop)
    };
    counters.end();
    done.map(|()| counters.read())
}

/// Opens a flow's sockets and connects them; `None` if the run was stopped first.
fn connect(spec: &Spec, stop: Stop<'_>) -> Result<Option<Flow>, GenerateError> {
    if let Some(to) = spec.connect {
        let flow = |sender| Flow {
            sender,
            receiver: None,
            window: None,
        };
        return Ok(socket::sender(spec, to, stop)?.map(flow));
    }
    let (receiver, address) = socket::receiver(spec, spec.loopback())?;
    let Some(sender) = socket::sender(spec, address, stop)? else {
        return Ok(None);
    };
    // Nobody else's connections and datagrams count.
    let from = sender
        .local_addr()
        .map_err(GenerateError::io("read the socket's address"))?;
    if spec.transport == Transport::Tcp {
        return Ok(Some(Flow {
            sender,
            receiver: Some(accept(&receiver, &from)?),
            window: None,
        }));
    }
    receiver
        .connect(&from)
        .map_err(GenerateError::io("connect the receiver"))?;
    let buffer = receiver
        .recv_buffer_size()
        .map_err(GenerateError::io("read SO_RCVBUF"))?;
    let size = spec.gso.map_or(spec.size, usize::from);
    Ok(Some(Flow {
        sender,
        receiver: Some(receiver),
        window: Some(Window::new(buffer, size)),
    }))
}

/// Takes the connection that comes from there.
fn accept(listener: &Socket, from: &SockAddr) -> Result<Socket, GenerateError> {
    let began = Instant::now();
    loop {
        match listener.accept() {
            Ok((socket, peer)) if peer.as_socket() == from.as_socket() => return Ok(socket),
            Ok(_) => tracing::debug!("somebody else connected to the receiver; closed"),
            Err(error) if socket::is_timeout(&error) && began.elapsed() < socket::CONNECT => {}
            Err(error) => return Err(GenerateError::io("accept our own connection")(error)),
        }
    }
}

/// Runs all flows to their end.
fn send(spec: &Spec, flows: &[Flow], counters: &Counters, stop: Stop<'_>) -> Done {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, flow) in flows.iter().enumerate() {
            let window = flow.window.as_ref();
            if let Some(socket) = &flow.receiver {
                let receiver =
                    clone(socket).and_then(|socket| Receiver::new(spec, socket, counters, stop));
                threads.push(spawn(scope, stop, move || {
                    costs(&counters.receiver_cpu, spec.receiver_cpu, || {
                        let receiver = receiver?;
                        match spec.transport {
                            Transport::Tcp => receiver.stream(false),
                            Transport::Udp => receiver.datagrams(window),
                        }
                    })
                })?);
            }
            let sender = clone(&flow.sender)
                .and_then(|socket| Sender::new(spec, socket, counters, stop, window))
                .map(|sender| sender.to(flow.receiver.as_ref()));
            let count = spec
                .count
                .map_or(u64::MAX, |count| spec.share(count, number));
            let rate = spec.rate.map(|rate| spec.share(rate, number).max(1));
            threads.push(spawn(scope, stop, move || {
                let done = costs(&counters.sender_cpu, spec.sender_cpu, || {
                    sender?.run(count, rate)
                });
                if let Some(window) = window {
                    // Where the sender failed before it could say so itself.
                    window.finish(0);
                }
                if done.is_err() && spec.transport == Transport::Tcp {
                    // The receiver's end of stream; the connection may be gone already.
                    let _ = flow.sender.shutdown(std::net::Shutdown::Write);
                }
                done
            })?);
        }
        join(threads)
    })
}

/// Receives only: over TCP as many connections as there are flows.
fn listen(spec: &Spec, counters: &Counters, stop: Stop<'_>) -> Done {
    let at = spec.listen.unwrap_or_else(|| spec.loopback());
    let (listener, address) = socket::receiver(spec, at)?;
    tracing::info!(%address, "receiving");
    thread::scope(|scope| {
        let mut threads = Vec::new();
        if spec.transport == Transport::Udp {
            threads.push(spawn(scope, stop, move || {
                costs(&counters.receiver_cpu, spec.receiver_cpu, || {
                    Receiver::new(spec, listener, counters, stop)?.datagrams(None)
                })
            })?);
            return join(threads);
        }
        while threads.len() < spec.flows && !stop.now() {
            let socket = match listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if socket::is_timeout(&error) => continue,
                Err(error) => {
                    stop.failed.store(true, Ordering::Release);
                    return join(threads).and(Err(GenerateError::io("accept a connection")(error)));
                }
            };
            counters.begin();
            threads.push(spawn(scope, stop, move || {
                costs(&counters.receiver_cpu, spec.receiver_cpu, || {
                    Receiver::new(spec, socket, counters, stop)?.stream(true)
                })
            })?);
        }
        join(threads)
    })
}

fn clone(socket: &Socket) -> Result<Socket, GenerateError> {
    socket
        .try_clone()
        .map_err(GenerateError::io("duplicate a socket"))
}

/// Runs on a CPU and adds up what that cost.
fn costs(
    counter: &std::sync::atomic::AtomicU64,
    cpu: Option<usize>,
    work: impl FnOnce() -> Done,
) -> Done {
    pin(cpu)?;
    let before = cpu_time();
    let done = work();
    let spent: Duration = cpu_time().saturating_sub(before);
    Counters::cpu(counter, spent);
    done
}

/// Starts a thread whose failure ends the others.
fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    stop: Stop<'scope>,
    work: impl FnOnce() -> Done + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Done>, GenerateError> {
    let run = move || {
        let done = work();
        if done.is_err() {
            stop.failed.store(true, Ordering::Release);
        }
        done
    };
    thread::Builder::new()
        .spawn_scoped(scope, run)
        .map_err(|error| {
            // Those that run already must not wait for the one that never came.
            stop.failed.store(true, Ordering::Release);
            GenerateError::io("start a thread")(error)
        })
}

/// Waits for all and returns the first failure.
fn join(threads: Vec<ScopedJoinHandle<'_, Done>>) -> Done {
    let mut all = Ok(());
    for thread in threads {
        let done = thread.join().unwrap_or(Err(GenerateError::Thread));
        all = all.and(done);
    }
    all
}
