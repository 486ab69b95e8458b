//! What is counted, readable while it is counted.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use zc_observe_ebpf::{BUCKETS, bucket};

use crate::snapshot::Histogram;

/// Counts of one run, over all its flows.
#[derive(Debug, Default)]
pub struct Counters {
    began: OnceLock<Instant>,
    ended: OnceLock<Duration>,
    pub(super) sends: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) asked_bytes: AtomicU64,
    pub(super) completions_zerocopy: AtomicU64,
    pub(super) completions_copied: AtomicU64,
    pub(super) notifications: AtomicU64,
    pub(super) unexpected: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) delivered: AtomicU64,
    pub(super) delivered_bytes: AtomicU64,
    pub(super) retransmitted_bytes: AtomicU64,
    pub(super) verify_failures: AtomicU64,
    pub(super) sender_cpu: AtomicU64,
    pub(super) receiver_cpu: AtomicU64,
    release_nanos: AtomicU64,
    release: [AtomicU64; BUCKETS],
}

/// What a run counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Sends that the kernel accepted; with the zero-copy engine, notification ids.
    pub sends: u64,
    /// Payload bytes of those sends.
    pub bytes: u64,
    /// Payload bytes that those sends asked for: more where TCP took a part of a message
    /// and was asked again for the rest.
    pub asked_bytes: u64,
    /// Sends that completed as zero-copy.
    pub completions_zerocopy: u64,
    /// Sends that completed as copied (`SO_EE_CODE_ZEROCOPY_COPIED`).
    pub completions_copied: u64,
    /// Notifications read, each for a range of sends.
    pub notifications: u64,
    /// Ids in notifications that belong to no accepted send: sends that failed after
    /// the kernel had numbered them. In none of the other counts.
    pub unexpected: u64,
    /// Sends refused with `ENOBUFS`; each is repeated.
    pub refused: u64,
    /// Reads at the receivers: over UDP, datagrams.
    pub delivered: u64,
    /// Payload bytes that reached our receivers; 0 with `connect`.
    pub delivered_bytes: u64,
    /// Payload bytes that TCP sent again; each such byte is received twice.
    pub retransmitted_bytes: u64,
    /// Messages that arrived changed, where they are verified.
    pub verify_failures: u64,
    /// CPU time of the sending threads that have ended, in user and kernel mode.
    pub sender_cpu: Duration,
    /// CPU time of the receiving threads that have ended.
    pub receiver_cpu: Duration,
    /// Time since the first flow began, or of the whole run if it has ended.
    pub elapsed: Duration,
    /// Times from send to the reading of its notification.
    pub release: Histogram,
}

impl Totals {
    /// Sends whose outcome is known.
    #[must_use]
    pub const fn completions(&self) -> u64 {
        self.completions_zerocopy + self.completions_copied
    }
}

pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Counters {
    /// What was counted so far. No completion is seen before its send.
    #[must_use]
    pub fn read(&self) -> Totals {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let nanos = |counter: &AtomicU64| Duration::from_nanos(get(counter));
        let buckets: [u64; BUCKETS] = std::array::from_fn(|index| get(&self.release[index]));
        let release = Histogram {
            count: buckets.iter().sum(),
            sum: nanos(&self.release_nanos),
            buckets,
        };
        let completions_zerocopy = self.completions_zerocopy.load(Ordering::Acquire);
        let completions_copied = self.completions_copied.load(Ordering::Acquire);
        let delivered_bytes = self.delivered_bytes.load(Ordering::Acquire);
        Totals {
            completions_zerocopy,
            completions_copied,
            delivered_bytes,
            release,
            sends: get(&self.sends),
            bytes: get(&self.bytes),
            asked_bytes: get(&self.asked_bytes),
            notifications: get(&self.notifications),
            unexpected: get(&self.unexpected),
            refused: get(&self.refused),
            delivered: get(&self.delivered),
            retransmitted_bytes: get(&self.retransmitted_bytes),
            verify_failures: get(&self.verify_failures),
            sender_cpu: nanos(&self.sender_cpu),
            receiver_cpu: nanos(&self.receiver_cpu),
            elapsed: match (self.ended.get(), self.began.get()) {
                (Some(ended), _) => *ended,
                (None, Some(began)) => began.elapsed(),
                (None, None) => Duration::ZERO,
            },
        }
    }

    pub(super) fn begin(&self) {
        self.began.get_or_init(Instant::now);
    }

    pub(super) fn end(&self) {
        if let Some(began) = self.began.get() {
            self.ended.get_or_init(|| began.elapsed());
        }
    }

    pub(super) fn sent(&self, bytes: u64) {
        add(&self.bytes, bytes);
        add(&self.sends, 1);
    }

    /// Zero-copy sends of all flows whose notification is not read.
    pub(super) fn outstanding(&self) -> u64 {
        let zerocopy = self.completions_zerocopy.load(Ordering::Acquire);
        let copied = self.completions_copied.load(Ordering::Acquire);
        let sends = self.sends.load(Ordering::Relaxed);
        sends.saturating_sub(zerocopy + copied)
    }

    /// Bytes that were accepted and then dropped before they became a datagram.
    pub(super) fn unsent(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The completion of sends that were counted before.
    pub(super) fn completed(&self, sends: u64, copied: bool) {
        let counter = if copied {
            &self.completions_copied
        } else {
            &self.completions_zerocopy
        };
        counter.fetch_add(sends, Ordering::Release);
    }

    pub(super) fn released(&self, time: Duration) {
        let time = nanos(time);
        add(&self.release_nanos, time);
        add(&self.release[bucket(time)], 1);
    }

    pub(super) fn cpu(counter: &AtomicU64, time: Duration) {
        add(counter, nanos(time));
    }
}
