//! One send that is repeated until the kernel accepts it.

use std::io;
use std::time::{Duration, Instant};

use super::counters::add;
use super::error::GenerateError;
use super::sender::Sender;
use super::socket::{self, set};
use super::spec::{Engine, Transport};

/// How long sends may be refused while no flow of this run has one outstanding. Locked
/// memory is counted per user, so that others may give some back.
const REFUSED: Duration = Duration::from_secs(1);
/// How long the second part of a datagram may be refused, each time with the first part
/// dropped. Longer, as other flows may be in the way.
const REFUSED_PART: Duration = Duration::from_secs(5);
/// The longest single wait for notifications.
pub(super) const NAP: Duration = Duration::from_millis(20);

/// When a send has to be given up.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Since when and how often in a row, with none outstanding in any flow.
    alone: Option<(Instant, u64)>,
    /// Since when and how often in all.
    all: Option<(Instant, u64)>,
}

/// How a try came out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Try {
    /// Accepted so many bytes.
    Sent(usize),
    /// Not accepted; what stands in the way was waited for.
    Again,
}

impl Sender<'_> {
    /// Sends until accepted; `None` if the run was stopped first.
    pub(super) fn one(
        &mut self,
        position: u64,
        length: usize,
        flags: libc::c_int,
    ) -> Result<Option<usize>, GenerateError> {
        let mut refusals = Refusals::default();
        while !self.stop.now() {
            if let Try::Sent(sent) = self.attempt(position, length, flags, &mut refusals)? {
                return Ok(Some(sent));
            }
        }
        Ok(None)
    }

    /// Sends once. If the kernel does not accept, waits for what may change that.
    pub(super) fn attempt(
        &mut self,
        position: u64,
        length: usize,
        flags: libc::c_int,
        refusals: &mut Refusals,
    ) -> Result<Try, GenerateError> {
        let zerocopy = self.spec.engine == Engine::Zerocopy;
        let flags = flags | if zerocopy { libc::MSG_ZEROCOPY } else { 0 };
        let when = Instant::now();
        match socket::send(&self.socket, self.payload.at(position, length), flags) {
            Ok(sent) => {
                add(&self.counters.asked_bytes, length as u64);
                self.counters.sent(sent as u64);
                if zerocopy {
                    self.completions.sent(when);
                    self.unreaped += 1;
                    if self.unreaped >= self.spec.reap_every {
                        self.reap()?;
                    }
                }
                Ok(Try::Sent(sent))
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                add(&self.counters.refused, 1);
                self.refused(length, refusals)?;
                Ok(Try::Again)
            }
            Err(error) if socket::is_timeout(&error) => {
                self.reap()?;
                Ok(Try::Again)
            }
            // An ICMP error about an earlier datagram; this one was not sent.
            Err(error) if self.is_unreachable(&error) => {
                std::thread::sleep(Duration::from_millis(1));
                Ok(Try::Again)
            }
            Err(source) => Err(GenerateError::Io {
                what: format!("send {length} bytes"),
                source,
            }),
        }
    }

    fn is_unreachable(&self, error: &io::Error) -> bool {
        self.spec.transport == Transport::Udp
            && self.spec.connect.is_some()
            && error.kind() == io::ErrorKind::ConnectionRefused
    }

    /// Makes room by waiting for the notifications of earlier sends.
    fn refused(&mut self, size: usize, refusals: &mut Refusals) -> Result<(), GenerateError> {
        refusals.all.get_or_insert((Instant::now(), 0)).1 += 1;
        if let Some(receiver) = self.patient.take() {
            // So little may be outstanding that it might never amount to what the receiver
            // waits for.
            set(receiver, libc::SOL_SOCKET, libc::SO_RCVLOWAT, 1)
                .map_err(GenerateError::io("set SO_RCVLOWAT"))?;
        }
        if self.completions.outstanding() > 0 {
            refusals.alone = None;
            self.wait(NAP)?;
            return Ok(());
        }
        if self.spec.engine == Engine::Zerocopy && self.counters.outstanding() > 0 {
            // Other flows hold what this one needs, and will give it back.
            refusals.alone = None;
            std::thread::sleep(Duration::from_millis(1));
            return Ok(());
        }
        let (since, times) = refusals.alone.get_or_insert((Instant::now(), 0));
        *times += 1;
        if since.elapsed() >= REFUSED {
            return Err(GenerateError::Refused {
                size,
                refused: *times,
                limit: super::limits::explain(&[size]),
            });
        }
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    }

    /// After the second part of a datagram was not accepted: gives up if it never is.
    /// The first part, dropped and released, is always outstanding until it is read, so
    /// that the rule of `refused` does not end this.
    pub(super) fn part_refused(
        &self,
        parts: &[usize],
        refusals: &Refusals,
    ) -> Result<(), GenerateError> {
        let Some((since, times)) = refusals.all else {
            return Ok(());
        };
        if since.elapsed() >= REFUSED_PART {
            return Err(GenerateError::Refused {
                size: parts.iter().sum(),
                refused: times,
                limit: super::limits::explain(parts),
            });
        }
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }

    /// Reads the error queue.
    pub(super) fn reap(&mut self) -> Result<u64, GenerateError> {
        self.unreaped = 0;
        self.completions
            .reap(&self.socket)
            .map_err(GenerateError::io("read notifications"))
    }

    /// Waits for notifications, or only for the time to pass if none can come.
    pub(super) fn wait(&mut self, time: Duration) -> Result<u64, GenerateError> {
        if self.completions.outstanding() == 0 {
            std::thread::sleep(time);
            return Ok(0);
        }
        self.unreaped = 0;
        self.completions
            .wait(&self.socket, time)
            .map_err(GenerateError::io("wait for notifications"))
    }
}
