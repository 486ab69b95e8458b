//! From report to text: names within their budget, counters that never go back.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::Duration;

use prometheus::TextEncoder;

use super::family::Family;
use super::floor::Floor;
use super::{Host, families};
use crate::report::{DeviceLabel, Report, SenderLabel};

/// How many names of a kind get series of their own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Pairs of `comm` and `cgroup`.
    pub senders: usize,
    /// Pairs of `device` and `device_kind`.
    pub devices: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            senders: 500,
            devices: 500,
        }
    }
}

/// Names that have series; whoever comes when the budget is spent is `other`.
#[derive(Debug)]
struct Budget<T> {
    named: HashSet<T>,
    limit: usize,
}

impl<T: Clone + Eq + Hash> Budget<T> {
    fn new(limit: usize) -> Self {
        Self {
            named: HashSet::new(),
            limit,
        }
    }

    fn admit(&mut self, name: &mut T, other: &T) {
        if self.named.contains(name) {
            return;
        }
        if self.named.len() < self.limit {
            self.named.insert(name.clone());
        } else {
            name.clone_from(other);
        }
    }
}

/// Renders reports of one observer, one after the other.
#[derive(Debug)]
pub struct Exporter {
    host: Host,
    floor: Floor,
    senders: Budget<SenderLabel>,
    devices: Budget<DeviceLabel>,
}

impl Exporter {
    /// An exporter that has shown nothing yet.
    #[must_use]
    pub fn new(host: Host, limits: Limits) -> Self {
        Self {
            host,
            floor: Floor::default(),
            senders: Budget::new(limits.senders),
            devices: Budget::new(limits.devices),
        }
    }

    /// The report as text. `spent` is how long the reading took so far; rendering is
    /// short beside it.
    ///
    /// # Errors
    /// When a family is not well-formed.
    pub fn render(
        &mut self,
        mut report: Report,
        spent: impl FnOnce() -> Duration,
    ) -> Result<String, prometheus::Error> {
        self.admit(&mut report);
        report.merge();
        let mut families = families(&report, &self.host);
        self.floor.raise(&mut families);
        let mut scrape = Family::gauge(
            "zc_observe_scrape_seconds",
            "Time that this scrape took to read the maps and to name and sum their counts.",
        );
        scrape.add_f64(&[], spent().as_secs_f64());
        families.extend(scrape.build());
        TextEncoder::new().encode_to_string(&families)
    }

    /// Gives names their series while the budget lasts, the biggest first.
    fn admit(&mut self, report: &mut Report) {
        let other = SenderLabel {
            comm: "other".to_owned(),
            cgroup: "other".to_owned(),
        };
        report
            .senders
            .sort_by_key(|row| std::cmp::Reverse(row.copied.0.saturating_add(row.zerocopy.0)));
        for row in &mut report.senders {
            self.senders.admit(&mut row.sender, &other);
        }
        let other = DeviceLabel::new("other", "other");
        let copies = [&mut report.deep_copies, &mut report.second_copies];
        for rows in copies {
            rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
            for row in rows {
                self.devices.admit(&mut row.device, &other);
            }
        }
        report
            .devices
            .sort_by_key(|row| std::cmp::Reverse(row.received.1));
        for row in &mut report.devices {
            self.devices.admit(&mut row.device, &other);
        }
    }
}
