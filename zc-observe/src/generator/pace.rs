//! A rate in bytes a second.

use std::time::{Duration, Instant};

/// A sender that fell behind by more than this does not catch up.
const LAG: Duration = Duration::from_millis(100);

/// When the next message is due.
#[derive(Debug)]
pub(super) struct Pace {
    rate: Option<u64>,
    due: Instant,
}

impl Pace {
    pub(super) fn new(rate: Option<u64>, now: Instant) -> Self {
        Self { rate, due: now }
    }

    /// Time until the next message is due; `None` if it is due now.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        self.rate?;
        let wait = self.due.saturating_duration_since(now);
        (!wait.is_zero()).then_some(wait)
    }

    /// A message of so many bytes goes out now.
    pub(super) fn sent(&mut self, bytes: u64, now: Instant) {
        let Some(rate) = self.rate else { return };
        let oldest = now.checked_sub(LAG).unwrap_or(now);
        let time = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        self.due = self.due.max(oldest) + time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_due_one_after_the_other() {
        let now = Instant::now();
        let mut pace = Pace::new(Some(1000), now);
        assert_eq!(pace.wait(now), None);
        pace.sent(500, now);
        assert_eq!(pace.wait(now), Some(Duration::from_millis(500)));
        assert_eq!(pace.wait(now + Duration::from_millis(500)), None);
        let late = now + Duration::from_secs(60);
        for _ in 0..10 {
            pace.sent(10, late);
        }
        assert_eq!(pace.wait(late), None);
        pace.sent(10, late);
        assert!(pace.wait(late).is_some());
    }

    #[test]
    fn no_rate_never_waits() {
        let now = Instant::now();
        let mut pace = Pace::new(None, now);
        pace.sent(u64::MAX, now);
        assert_eq!(pace.wait(now), None);
    }
}
