//! The sending thread of a flow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use socket2::Socket;

use super::completions::Completions;
use super::counters::{Counters, add};
use super::error::GenerateError;
use super::pace::Pace;
use super::payload::Payload;
use super::retransmits;
use super::send::{NAP, Refusals, Try};
use super::spec::{Spec, Transport};
use super::window::{LOST, Window};

/// How long the last notifications may take without any coming in.
const DRAIN: Duration = Duration::from_secs(5);
/// The same in all once the run was stopped or has failed.
const DRAIN_STOPPED: Duration = Duration::from_millis(180);

/// What ends a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop<'run> {
    /// Whoever called for the run.
    pub(super) user: &'run AtomicBool,
    /// Another thread of the run failed.
    pub(super) failed: &'run AtomicBool,
    /// Its time is up.
    pub(super) deadline: Option<Instant>,
}

impl Stop<'_> {
    /// Whether to end without waiting for anything.
    pub(super) fn soon(self) -> bool {
        self.user.load(Ordering::Acquire) || self.failed.load(Ordering::Acquire)
    }

    /// Whether to send no more.
    pub(super) fn now(self) -> bool {
        self.soon() || self.deadline.is_some_and(|at| Instant::now() >= at)
    }
}

/// A flow's sender.
#[derive(Debug)]
pub(super) struct Sender<'run> {
    pub(super) spec: &'run Spec,
    pub(super) socket: Socket,
    pub(super) payload: Payload,
    pub(super) counters: &'run Counters,
    pub(super) completions: Completions<'run>,
    pub(super) stop: Stop<'run>,
    /// The socket of a receiver of ours that waits for more than one segment.
    pub(super) patient: Option<&'run Socket>,
    /// Sends since the error queue was read.
    pub(super) unreaped: u64,
    window: Option<&'run Window>,
    /// Datagrams sent and not given up.
    datagrams: u64,
    /// Bytes of the stream sent.
    position: u64,
}

impl<'run> Sender<'run> {
    pub(super) fn new(
        spec: &'run Spec,
        socket: Socket,
        counters: &'run Counters,
        stop: Stop<'run>,
        window: Option<&'run Window>,
    ) -> Result<Self, GenerateError> {
        let payload = Payload::new(spec.size, spec.gso)
            .map_err(GenerateError::io("map memory for the payload"))?;
        Ok(Self {
            spec,
            socket,
            payload,
            counters,
            completions: Completions::new(counters),
            stop,
            patient: None,
            unreaped: 0,
            window,
            datagrams: 0,
            position: 0,
        })
    }

    /// Names the socket at which a receiver of ours takes this stream.
    pub(super) fn to(self, receiver: Option<&'run Socket>) -> Self {
        let stream = self.spec.transport == Transport::Tcp;
        Self {
            patient: receiver.filter(|_| stream),
            ..self
        }
    }

    /// Sends until the count is reached or the run is stopped, then waits for what is
    /// outstanding.
    pub(super) fn run(mut self, count: u64, rate: Option<u64>) -> Result<(), GenerateError> {
        let sent = self.send_all(count, rate);
        if let Some(window) = self.window {
            window.finish(self.datagrams);
        }
        let sent = if self.spec.transport == Transport::Tcp {
            let shut = self.socket.shutdown(std::net::Shutdown::Write);
            // After an error of the connection this fails too; the first one counts.
            sent.and(shut.map_err(GenerateError::io("shut the connection down")))
        } else {
            sent
        };
        // A send that failed takes nothing back from those before it.
        let drained = self.drain(sent.is_err());
        sent.and(drained)?;
        if self.spec.transport == Transport::Tcp {
            let again = retransmits::bytes(&self.socket)
                .map_err(GenerateError::io("read TCP_INFO of the connection"))?;
            add(&self.counters.retransmitted_bytes, again);
        }
        Ok(())
    }

    fn send_all(&mut self, count: u64, rate: Option<u64>) -> Result<(), GenerateError> {
        let mut pace = Pace::new(rate, Instant::now());
        let mut messages = 0;
        while messages < count && !self.stop.now() {
            let now = Instant::now();
            if let Some(time) = pace.wait(now) {
                self.wait(time.min(NAP))?;
                continue;
            }
            pace.sent(self.spec.size as u64, now);
            match self.spec.transport {
                Transport::Tcp => self.message()?,
                Transport::Udp => self.datagram()?,
            }
            messages += 1;
        }
        Ok(())
    }

    /// Sends a message over TCP; the kernel may take it in parts.
    fn message(&mut self) -> Result<(), GenerateError> {
        let mut left = self.spec.size;
        while left > 0 {
            let Some(sent) = self.one(self.position, left, 0)? else {
                break;
            };
            self.position += sent as u64;
            left -= sent;
        }
        Ok(())
    }

    /// Sends a message over UDP: one datagram, or one per segment.
    fn datagram(&mut self) -> Result<(), GenerateError> {
        let size = self.spec.size;
        let datagrams = self
            .spec
            .gso
            .map_or(1, |segment| size.div_ceil(usize::from(segment)) as u64);
        if !self.wait_for_window(datagrams)? {
            return Ok(());
        }
        let sent = if self.spec.cork && size > 1 {
            self.halves(size)?
        } else {
            self.one(0, size, 0)?.is_some()
        };
        if sent {
            self.datagrams += datagrams;
        }
        Ok(())
    }

    /// Sends one datagram in two sends. If the second is refused, the kernel has dropped
    /// the first with it.
    fn halves(&mut self, size: usize) -> Result<bool, GenerateError> {
        let half = size / 2;
        let mut refusals = Refusals::default();
        while let Some(first) = self.one(0, half, libc::MSG_MORE)? {
            if let Try::Sent(_) = self.attempt(half as u64, size - half, 0, &mut refusals)? {
                return Ok(true);
            }
            self.counters.unsent(first as u64);
            self.part_refused(&[half, size - half], &refusals)?;
        }
        Ok(false)
    }

    /// Waits until so many datagrams fit in the receive buffer; false if the run was
    /// stopped first.
    fn wait_for_window(&mut self, datagrams: u64) -> Result<bool, GenerateError> {
        let Some(window) = self.window else {
            return Ok(true);
        };
        let mut empty = window.empty();
        let mut seen = window.received();
        while !window.fits(self.datagrams, datagrams) {
            if self.stop.now() {
                return Ok(false);
            }
            window.wait(seen, NAP);
            self.reap()?;
            let now = window.received();
            if now != seen {
                (seen, empty) = (now, window.empty());
            } else if window.empty() - empty >= LOST {
                tracing::warn!("{} datagrams did not arrive", self.datagrams - now);
                self.datagrams = now;
            }
        }
        Ok(true)
    }

    /// Reads the notifications that are still to come; after a failure without much
    /// patience.
    fn drain(&mut self, failed: bool) -> Result<(), GenerateError> {
        let mut moved = Instant::now();
        let mut stopped = failed.then_some(moved);
        while self.completions.outstanding() > 0 {
            if self.wait(NAP)? > 0 {
                moved = Instant::now();
            }
            if stopped.is_some() || self.stop.soon() {
                let since = *stopped.get_or_insert_with(Instant::now);
                if since.elapsed() >= DRAIN_STOPPED {
                    break;
                }
            }
            if moved.elapsed() >= DRAIN {
                break;
            }
        }
        Ok(())
    }
}
