//! Sends whose notification is not read yet, by notification id.

use std::collections::VecDeque;
use std::time::Instant;

/// What a notification said: the ids from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Range {
    /// `ee_info`.
    pub(super) first: u32,
    /// `ee_data`; below `first` where the numbers wrap.
    pub(super) last: u32,
    /// `ee_code` says `SO_EE_CODE_ZEROCOPY_COPIED`.
    pub(super) copied: bool,
}

impl Range {
    /// Number of ids: 1 to 2^32.
    pub(super) fn len(self) -> u64 {
        u64::from(self.last.wrapping_sub(self.first)) + 1
    }
}

/// Sends without a notification. Ids count up from 0 per socket and wrap at 2^32.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// Id of the front of `sent`.
    front: u32,
    /// When each was sent; `None` once it has completed.
    sent: VecDeque<Option<Instant>>,
    open: u64,
}

impl Outstanding {
    /// The kernel accepted a send and gave it the next id.
    pub(super) fn push(&mut self, when: Instant) {
        self.sent.push_back(Some(when));
        self.open += 1;
    }

    /// Number of sends without a notification.
    pub(super) const fn len(&self) -> u64 {
        self.open
    }

    /// Takes what a range completes and calls back with each send's time. Returns how
    /// many of its ids belong to no open send.
    pub(super) fn complete(&mut self, range: Range, mut each: impl FnMut(Instant)) -> u64 {
        let offset = range.first.wrapping_sub(self.front) as usize;
        let mut found = 0;
        let length = usize::try_from(range.len()).unwrap_or(usize::MAX);
        for slot in self.sent.iter_mut().skip(offset).take(length) {
            if let Some(when) = slot.take() {
                each(when);
                found += 1;
            }
        }
        self.open -= found;
        while self.sent.front().is_some_and(Option::is_none) {
            self.sent.pop_front();
            self.front = self.front.wrapping_add(1);
        }
        range.len() - found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u32, last: u32) -> Range {
        Range {
            first,
            last,
            copied: false,
        }
    }

    fn outstanding(front: u32, count: usize) -> Outstanding {
        let mut sends = Outstanding {
            front,
            ..Outstanding::default()
        };
        for _ in 0..count {
            sends.push(Instant::now());
        }
        sends
    }

    #[test]
    fn a_range_counts_both_ends_and_wraps() {
        assert_eq!(range(7, 7).len(), 1);
        assert_eq!(range(0, 9).len(), 10);
        assert_eq!(range(u32::MAX, 1).len(), 3);
        assert_eq!(range(0, u32::MAX).len(), 1 << 32);
    }

    #[test]
    fn ranges_may_come_in_any_order() {
        let mut sends = outstanding(0, 10);
        let mut count = 0;
        assert_eq!(sends.complete(range(5, 7), |_| count += 1), 0);
        assert_eq!((count, sends.len()), (3, 7));
        assert_eq!(sends.complete(range(0, 4), |_| count += 1), 0);
        assert_eq!((count, sends.len(), sends.front), (8, 2, 8));
        assert_eq!(sends.complete(range(8, 9), |_| count += 1), 0);
        assert_eq!((count, sends.len(), sends.front), (10, 0, 10));
    }

    #[test]
    fn ids_wrap() {
        let mut sends = outstanding(u32::MAX - 1, 5);
        let mut count = 0;
        assert_eq!(sends.complete(range(u32::MAX, 1), |_| count += 1), 0);
        assert_eq!((count, sends.len()), (3, 2));
        assert_eq!(
            sends.complete(range(u32::MAX - 1, u32::MAX - 1), |_| count += 1),
            0
        );
        assert_eq!(sends.complete(range(2, 2), |_| count += 1), 0);
        assert_eq!((count, sends.len(), sends.front), (5, 0, 3));
    }

    #[test]
    fn what_was_never_sent_or_is_done_is_told_apart() {
        let mut sends = outstanding(0, 2);
        assert_eq!(sends.complete(range(0, 2), |_| {}), 1);
        assert_eq!(sends.complete(range(0, 1), |_| {}), 2);
        assert_eq!(sends.len(), 0);
    }
}
