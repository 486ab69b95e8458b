//! Datagrams in flight over loopback: never more than the receive buffer holds, so
//! that none is dropped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Reads in a row, each of which waited for [`super::socket::PATIENCE`] and found nothing,
/// after which what is in flight is lost. Not a time: a thread that did not run for a
/// while has not looked.
pub(super) const LOST: u64 = 25;

/// What the two threads of a UDP flow know of each other.
#[derive(Debug)]
pub(super) struct Window {
    /// Datagrams that may be in flight.
    limit: u64,
    received: AtomicU64,
    /// Reads of the receiver that waited and found nothing.
    empty: AtomicU64,
    waiting: AtomicBool,
    /// Datagrams in all, once the sender sends no more.
    sent: OnceLock<u64>,
    lock: Mutex<()>,
    moved: Condvar,
}

impl Window {
    /// For datagrams of `size` bytes into a receive buffer that `SO_RCVBUF` says is of
    /// `buffer` bytes. A datagram is charged for its memory, up to twice its payload and
    /// some; and the kernel gives back what was read only a quarter at a time.
    pub(super) fn new(buffer: usize, size: usize) -> Self {
        Self {
            limit: (buffer / 2 / (2 * size + 4096)).max(1) as u64,
            received: AtomicU64::new(0),
            empty: AtomicU64::new(0),
            waiting: AtomicBool::new(false),
            sent: OnceLock::new(),
            lock: Mutex::new(()),
            moved: Condvar::new(),
        }
    }

    /// Datagrams received so far.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::SeqCst)
    }

    /// Whether `more` datagrams fit after `sent`. A send of more than fits at all goes
    /// alone.
    pub(super) fn fits(&self, sent: u64, more: u64) -> bool {
        let flying = sent.saturating_sub(self.received());
        flying == 0 || flying + more <= self.limit
    }

    /// Waits until the receiver has taken something since it had `seen`, or for a while.
    pub(super) fn wait(&self, seen: u64, time: Duration) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.store(true, Ordering::SeqCst);
        let waited = self
            .moved
            .wait_timeout_while(guard, time, |()| self.received() == seen);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.waiting.store(false, Ordering::SeqCst);
    }

    /// The receiver took a datagram.
    pub(super) fn take(&self) {
        self.received.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.moved.notify_one();
        }
    }

    /// The receiver waited and found nothing.
    pub(super) fn nothing(&self) {
        self.empty.fetch_add(1, Ordering::SeqCst);
    }

    /// How often it did so far.
    pub(super) fn empty(&self) -> u64 {
        self.empty.load(Ordering::SeqCst)
    }

    /// The sender will send no more than these.
    pub(super) fn finish(&self, sent: u64) {
        self.sent.get_or_init(|| sent);
    }

    /// How many datagrams are still to come, once the sender has finished.
    pub(super) fn missing(&self) -> Option<u64> {
        let sent = self.sent.get()?;
        Some(sent.saturating_sub(self.received()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_the_buffer_holds() {
        let window = Window::new(8 << 20, 65_507);
        assert!(window.fits(0, 40));
        assert!(window.fits(30, 1));
        assert!(!window.fits(31, 1));
        window.take();
        assert!(window.fits(31, 1));
    }

    #[test]
    fn only_reads_that_found_nothing_count_as_such() {
        let window = Window::new(8 << 20, 1400);
        window.take();
        assert_eq!((window.received(), window.empty()), (1, 0));
        window.nothing();
        window.take();
        assert_eq!((window.received(), window.empty()), (2, 1));
        assert_eq!(window.missing(), None);
        window.finish(3);
        assert_eq!(window.missing(), Some(1));
        window.finish(9);
        assert_eq!(window.missing(), Some(1));
    }

    #[test]
    fn one_datagram_always_fits_alone() {
        let window = Window::new(2048, 65_507);
        assert!(window.fits(0, 1));
        assert!(!window.fits(1, 1));
        assert_eq!(window.received(), 0);
        window.take();
        assert!(window.fits(1, 1));
    }
}
