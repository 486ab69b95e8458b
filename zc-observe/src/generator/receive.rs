//! The receiving thread of a flow.

use socket2::Socket;
use std::io::{self, Read};
use std::sync::atomic::Ordering;

use super::counters::{Counters, add};
use super::error::GenerateError;
use super::payload::Payload;
use super::sender::Stop;
use super::socket::{PATIENCE, discard, is_timeout, set};
use super::spec::{Spec, Transport};
use super::window::{LOST, Window};

/// Bytes of a stream taken at once.
const CHUNK: usize = 1 << 20;
/// Bytes that must be there before a stream's reader is woken, where no rate is set.
const LOW_WATER: libc::c_int = 256 << 10;
/// Smaller messages than this are read as they come: where limits let few be outstanding,
/// they may never amount to `LOW_WATER`.
const LARGE: usize = 32 << 10;
/// The same as `LOST` once the run was stopped.
const LOST_STOPPED: u64 = 4;

/// A flow's receiver.
#[derive(Debug)]
pub(super) struct Receiver<'run> {
    spec: &'run Spec,
    socket: Socket,
    counters: &'run Counters,
    stop: Stop<'run>,
    /// What is compared, and the memory to receive in, if payload is verified.
    verify: Option<(Payload, Vec<u8>)>,
}

impl<'run> Receiver<'run> {
    pub(super) fn new(
        spec: &'run Spec,
        socket: Socket,
        counters: &'run Counters,
        stop: Stop<'run>,
    ) -> Result<Self, GenerateError> {
        let verify = if spec.verify {
            let payload = Payload::new(spec.size, None)
                .map_err(GenerateError::io("map memory for the payload"))?;
            let length = match spec.transport {
                Transport::Tcp => CHUNK,
                Transport::Udp => 1 << 16,
            };
            Some((payload, vec![0; length]))
        } else {
            None
        };
        socket
            .set_read_timeout(Some(PATIENCE))
            .map_err(GenerateError::io("set SO_RCVTIMEO"))?;
        let waits = spec.rate.is_none() && spec.size >= LARGE;
        if spec.transport == Transport::Tcp && waits {
            set(&socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, LOW_WATER)
                .map_err(GenerateError::io("set SO_RCVLOWAT"))?;
        }
        Ok(Self {
            spec,
            socket,
            counters,
            stop,
            verify,
        })
    }

    fn receive(&mut self) -> io::Result<usize> {
        match (&mut self.verify, self.spec.transport) {
            (Some((_, buffer)), _) => self.socket.read(buffer),
            (None, Transport::Tcp) => discard(&self.socket, CHUNK),
            (None, Transport::Udp) => discard(&self.socket, 0),
        }
    }

    fn count(&self, bytes: usize) {
        add(&self.counters.delivered, 1);
        self.counters
            .delivered_bytes
            .fetch_add(bytes as u64, Ordering::Release);
    }

    /// Has the kernel acknowledge what was read now, not up to 40 ms later: until then the
    /// sender's notifications are held back, and with them what its limits allow.
    fn acknowledge(&self) {
        let asked = set(&self.socket, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
        if let Err(error) = asked {
            tracing::debug!("cannot set TCP_QUICKACK: {error}");
        }
    }

    /// Takes a stream to its end; without a sender of ours, or until the run is stopped.
    pub(super) fn stream(mut self, alone: bool) -> Result<(), GenerateError> {
        let (mut position, mut wrong) = (0_u64, None);
        loop {
            match self.receive() {
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    self.check_stream(position, bytes, &mut wrong);
                    position += bytes as u64;
                    self.count(bytes);
                    self.acknowledge();
                }
                Err(error) if is_timeout(&error) => {}
                Err(source) => {
                    return Err(GenerateError::Io {
                        what: "receive from the connection".to_owned(),
                        source,
                    });
                }
            }
            if alone && self.stop.now() {
                return Ok(());
            }
        }
    }

    /// Compares a part of the stream, message by message; `wrong` is the last message
    /// that was counted.
    fn check_stream(&self, position: u64, bytes: usize, wrong: &mut Option<u64>) {
        let Some((payload, buffer)) = &self.verify else {
            return;
        };
        let size = self.spec.size as u64;
        let mut rest = &buffer[..bytes];
        let mut position = position;
        while !rest.is_empty() {
            let left = usize::try_from(size - position % size).unwrap_or(rest.len());
            let (part, after) = rest.split_at(left.min(rest.len()));
            let message = position / size;
            if !payload.matches(position, part) && *wrong != Some(message) {
                add(&self.counters.verify_failures, 1);
                *wrong = Some(message);
            }
            position += part.len() as u64;
            rest = after;
        }
    }

    /// Takes datagrams until the sender has finished and all have arrived. Without a
    /// window, until the run is stopped or the count of the spec is reached.
    pub(super) fn datagrams(mut self, window: Option<&Window>) -> Result<(), GenerateError> {
        // Reads in a row that found nothing and began when all had been sent.
        let mut late = 0;
        let mut received = 0;
        loop {
            let finished = window.is_some_and(|window| window.missing().is_some());
            match self.receive() {
                Ok(bytes) => {
                    self.counters.begin();
                    self.check_datagram(bytes, window.is_some());
                    self.count(bytes);
                    received += 1;
                    late = 0;
                    if let Some(window) = window {
                        window.take();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    late += u64::from(finished);
                    if let Some(window) = window {
                        window.nothing();
                    }
                }
                Err(error) if is_timeout(&error) => {}
                // The sender's socket is closed; said again by its notification.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(source) => {
                    return Err(GenerateError::Io {
                        what: "receive a datagram".to_owned(),
                        source,
                    });
                }
            }
            let ended = match window.map(Window::missing) {
                Some(Some(0)) => true,
                Some(Some(_)) => late >= if self.stop.soon() { LOST_STOPPED } else { LOST },
                Some(None) => false,
                None => self.stop.now() || self.spec.count.is_some_and(|count| received >= count),
            };
            if ended {
                return Ok(());
            }
        }
    }

    fn check_datagram(&self, bytes: usize, ours: bool) {
        let Some((payload, buffer)) = &self.verify else {
            return;
        };
        let size = self.spec.size;
        let whole = match self.spec.gso.map(usize::from) {
            _ if !ours => true,
            None => bytes == size,
            Some(segment) => bytes == segment.min(size) || bytes == size % segment,
        };
        if !whole || !payload.matches(0, &buffer[..bytes]) {
            add(&self.counters.verify_failures, 1);
        }
    }
}
