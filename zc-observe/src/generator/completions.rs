//! Notifications from a socket's error queue.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use socket2::Socket;

use super::counters::{Counters, add};
use super::outstanding::{Outstanding, Range};

/// `ee_origin` of a zero-copy notification.
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
/// Flag in `ee_code`: the kernel copied.
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;

/// Sends of one socket and what became of them.
#[derive(Debug)]
pub(super) struct Completions<'run> {
    counters: &'run Counters,
    outstanding: Outstanding,
    control: Vec<u8>,
}

/// The range that an entry of the error queue is about, if it is a notification.
fn range(error: &libc::sock_extended_err) -> Option<Range> {
    (error.ee_errno == 0 && error.ee_origin == SO_EE_ORIGIN_ZEROCOPY).then_some(Range {
        first: error.ee_info,
        last: error.ee_data,
        copied: error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED != 0,
    })
}

impl<'run> Completions<'run> {
    pub(super) fn new(counters: &'run Counters) -> Self {
        Self {
            counters,
            outstanding: Outstanding::default(),
            control: nix::cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6),
        }
    }

    /// Sends without a notification.
    pub(super) const fn outstanding(&self) -> u64 {
        self.outstanding.len()
    }

    /// The kernel accepted a zero-copy send.
    pub(super) fn sent(&mut self, when: Instant) {
        self.outstanding.push(when);
    }

    /// Reads the error queue until it is empty; how many sends that completed.
    pub(super) fn reap(&mut self, socket: &Socket) -> io::Result<u64> {
        let before = self.outstanding.len();
        while let Some(entry) = next(socket, &mut self.control)? {
            if let Some(range) = range(&entry) {
                self.take(range);
            }
        }
        Ok(before - self.outstanding.len())
    }

    fn take(&mut self, range: Range) {
        let counters = self.counters;
        add(&counters.notifications, 1);
        let now = Instant::now();
        let unexpected = self.outstanding.complete(range, |when| {
            counters.released(now.saturating_duration_since(when));
        });
        counters.completed(range.len() - unexpected, range.copied);
        add(&counters.unexpected, unexpected);
    }

    /// Waits for notifications, for `time` at most, and reads them.
    pub(super) fn wait(&mut self, socket: &Socket, time: Duration) -> io::Result<u64> {
        let began = Instant::now();
        // Whole milliseconds, rounded up: 0 would not wait at all.
        let millis = u16::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
        // POLLERR and POLLHUP need not be asked for.
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::empty())];
        match poll(&mut polled, PollTimeout::from(millis)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let reaped = self.reap(socket)?;
        if reaped == 0 && began.elapsed() < time {
            // A connection that is closed is always ready, without a notification.
            std::thread::sleep(Duration::from_millis(1).min(time));
        }
        Ok(reaped)
    }
}

/// The next entry of the error queue; `None` if it is empty.
fn next(socket: &Socket, control: &mut [u8]) -> io::Result<Option<libc::sock_extended_err>> {
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = loop {
        match recvmsg::<()>(socket.as_raw_fd(), &mut [], Some(&mut *control), flags) {
            Ok(message) => break message,
            Err(Errno::EAGAIN) => return Ok(None),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    };
    for part in message.cmsgs()? {
        if let ControlMessageOwned::Ipv4RecvErr(error, _)
        | ControlMessageOwned::Ipv6RecvErr(error, _) = part
        {
            return Ok(Some(error));
        }
    }
    Err(io::Error::other(
        "an entry of the error queue came without its extended error",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(ee_errno: u32, ee_origin: u8, ee_code: u8) -> libc::sock_extended_err {
        libc::sock_extended_err {
            ee_errno,
            ee_origin,
            ee_type: 0,
            ee_code,
            ee_pad: 0,
            ee_info: 3,
            ee_data: 9,
        }
    }

    #[test]
    fn only_zerocopy_notifications_are_ranges() {
        let copied = |copied| {
            Some(Range {
                first: 3,
                last: 9,
                copied,
            })
        };
        assert_eq!(range(&entry(0, 5, 0)), copied(false));
        assert_eq!(range(&entry(0, 5, 1)), copied(true));
        assert_eq!(range(&entry(111, 2, 3)), None);
        assert_eq!(range(&entry(0, 4, 0)), None);
        assert_eq!(range(&entry(12, 5, 0)), None);
    }
}
