//! Sums over a whole report, and their growth between two of them.

use std::collections::BTreeMap;

use super::Report;
use super::labels::DeviceLabel;
use super::rows::CopyRow;
use crate::snapshot::Outcome;

/// Sums over a report. Sends, skbs and bytes are different units.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// Sends accepted.
    pub attempts: u64,
    /// Sends refused; `None` where this tier cannot see them.
    pub refused: Option<u64>,
    /// Sends completed, flagged copied.
    pub copied: u64,
    /// Sends completed, flagged zero-copy.
    pub zerocopy: u64,
    /// Deep copies in skbs; `None` where this tier cannot see them.
    pub deep_copies: Option<u64>,
    /// Their payload bytes.
    pub deep_copy_bytes: Option<u64>,
    /// Deep copies that failed.
    pub deep_copy_errors: Option<u64>,
    /// Second copies in skbs.
    pub second_copies: Option<u64>,
    /// Their payload bytes.
    pub second_copy_bytes: Option<u64>,
}

/// Bytes per cause and device.
type ByCause<'a> = BTreeMap<(&'static str, &'a DeviceLabel), u64>;

impl Totals {
    /// Sums over a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let seen = report.sees_deep_copies();
        let completed = |outcome| {
            let rows = report
                .completions
                .iter()
                .filter(|row| row.outcome == outcome);
            rows.map(|row| row.sends).sum()
        };
        let sum =
            |rows: &[CopyRow], part: fn(&CopyRow) -> u64| seen.then(|| rows.iter().map(part).sum());
        let (deep, second) = (&report.deep_copies, &report.second_copies);
        Self {
            attempts: report.attempts.iter().map(|row| row.accepted).sum(),
            refused: refused(report),
            copied: completed(Outcome::Copied),
            zerocopy: completed(Outcome::Zerocopy),
            deep_copies: sum(deep, |row| row.copies),
            deep_copy_bytes: sum(deep, |row| row.bytes),
            deep_copy_errors: sum(deep, |row| row.errors),
            second_copies: sum(second, |row| row.copies),
            second_copy_bytes: sum(second, |row| row.bytes),
        }
    }

    /// What was added since an earlier moment.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let more = |now: Option<u64>, then: Option<u64>| {
            now.map(|now| now.saturating_sub(then.unwrap_or(0)))
        };
        Self {
            attempts: self.attempts.saturating_sub(before.attempts),
            refused: more(self.refused, before.refused),
            copied: self.copied.saturating_sub(before.copied),
            zerocopy: self.zerocopy.saturating_sub(before.zerocopy),
            deep_copies: more(self.deep_copies, before.deep_copies),
            deep_copy_bytes: more(self.deep_copy_bytes, before.deep_copy_bytes),
            deep_copy_errors: more(self.deep_copy_errors, before.deep_copy_errors),
            second_copies: more(self.second_copies, before.second_copies),
            second_copy_bytes: more(self.second_copy_bytes, before.second_copy_bytes),
        }
    }
}

/// Sends refused. Without any attempt, the tracepoint tier does not know of refusals.
fn refused(report: &Report) -> Option<u64> {
    if report.attempts.is_empty() && !report.sees_deep_copies() {
        return None;
    }
    report.attempts.iter().map(|row| row.refused).sum()
}

/// Cause and device with the most deep-copied bytes between two reports, and those bytes.
pub(super) fn top_cause<'a>(
    before: Option<&Report>,
    now: &'a Report,
) -> Option<(&'static str, &'a DeviceLabel, u64)> {
    let earlier = before
        .map(|report| by_cause(&report.deep_copies))
        .unwrap_or_default();
    by_cause(&now.deep_copies)
        .into_iter()
        .map(|(key, bytes)| {
            let (cause, device) = key;
            (
                cause,
                device,
                bytes.saturating_sub(earlier.get(&key).copied().unwrap_or(0)),
            )
        })
        .filter(|(_, _, bytes)| *bytes > 0)
        .max_by_key(|(_, _, bytes)| *bytes)
}

fn by_cause(rows: &[CopyRow]) -> ByCause<'_> {
    let mut sums = ByCause::new();
    for row in rows {
        *sums.entry((row.cause, &row.device)).or_default() += row.bytes;
    }
    sums
}

/// Devices that received zero-copy payload between two reports, most first.
pub(super) fn received<'a>(
    before: Option<&Report>,
    now: &'a Report,
) -> Vec<(&'a DeviceLabel, u64)> {
    let earlier = |device: &DeviceLabel| {
        before
            .and_then(|report| report.devices.iter().find(|row| row.device == *device))
            .map_or(0, |row| row.received.1)
    };
    let mut devices: Vec<_> = now
        .devices
        .iter()
        .map(|row| {
            (
                &row.device,
                row.received.1.saturating_sub(earlier(&row.device)),
            )
        })
        .filter(|(_, bytes)| *bytes > 0)
        .collect();
    devices.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    devices
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{Names, deep_copies, snapshot};
    use super::*;
    use crate::snapshot::Method;

    #[test]
    fn what_the_tier_cannot_see_is_not_zero() {
        let report = Report::new(snapshot(), Some(Method::Tracepoint), &Names, Vec::new());
        assert_eq!(Totals::of(&report).deep_copies, None);
        let report = Report::new(snapshot(), Some(Method::Fentry), &Names, Vec::new());
        assert_eq!(Totals::of(&report).deep_copies, Some(180));
    }

    #[test]
    fn growth_of_a_count_that_went_back_is_zero() {
        let now = Totals {
            attempts: 4,
            ..Totals::default()
        };
        let before = Totals {
            attempts: 5,
            ..Totals::default()
        };
        assert_eq!(now.since(&before).attempts, 0);
    }

    #[test]
    fn the_top_cause_is_that_of_the_interval() {
        let mut later = snapshot();
        later.deep_copies.push(deep_copies("somebody", 1, 500));
        let before = Report::new(snapshot(), Some(Method::Fentry), &Names, Vec::new());
        let now = Report::new(later, Some(Method::Fentry), &Names, Vec::new());
        let (cause, device, bytes) = top_cause(Some(&before), &now).unwrap();
        assert_eq!((cause, device.name.as_str(), bytes), ("unknown", "lo", 500));
        assert_eq!(top_cause(Some(&now), &now), None);
    }
}
