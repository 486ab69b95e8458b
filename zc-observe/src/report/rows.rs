//! The rows of a report: totals by the labels that they are shown under.

use std::collections::BTreeMap;

use super::labels::{DeviceLabel, SenderLabel};
use crate::snapshot::{Api, Histogram, Outcome};

/// Sends that asked for zero-copy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AttemptRow {
    /// Interface.
    pub api: Api,
    /// Label `transport`.
    pub transport: &'static str,
    /// Label `family`.
    pub family: &'static str,
    /// Sends accepted.
    pub accepted: u64,
    /// Their payload bytes; `None` where this tier cannot see them.
    pub bytes: Option<u64>,
    /// Sends refused; `None` where this tier cannot see them.
    pub refused: Option<u64>,
}

/// Sends completed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CompletionRow {
    /// Interface.
    pub api: Api,
    /// Label `transport`.
    pub transport: &'static str,
    /// What the flag claims.
    pub outcome: Outcome,
    /// Sends.
    pub sends: u64,
    /// Their payload bytes; `None` where this tier cannot see them.
    pub bytes: Option<u64>,
}

/// Deep copies, in skbs.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyRow {
    /// Id of the cause.
    pub cause: &'static str,
    /// Device of the skb.
    pub device: DeviceLabel,
    /// Interface, by the owner of the buffer.
    pub api: Api,
    /// Copies that succeeded.
    pub copies: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Copies that failed.
    pub errors: u64,
    /// Times.
    pub time: Histogram,
}

/// Zero-copy payload through a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeviceRow {
    /// The device.
    pub device: DeviceLabel,
    /// Packets received and their payload bytes.
    pub received: (u64, u64),
    /// Packets handed to the driver and their payload bytes.
    pub transmitted: (u64, u64),
}

/// A sender: processes of one name in one control group.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SenderRow {
    /// Who.
    pub sender: SenderLabel,
    /// Sends accepted.
    pub accepted: u64,
    /// Sends refused.
    pub refused: u64,
    /// Sends completed and their payload bytes, flagged zero-copy.
    pub zerocopy: (u64, u64),
    /// Sends completed and their payload bytes, flagged copied.
    pub copied: (u64, u64),
    /// Deep copies and their payload bytes.
    pub deep_copies: (u64, u64),
}

/// One row per cause, device and API.
pub(super) fn merge_copies(rows: impl IntoIterator<Item = CopyRow>) -> Vec<CopyRow> {
    let key = |row: &CopyRow| (row.cause, row.device.clone(), row.api);
    merge(rows, key, |sum, row| {
        sum.copies = sum.copies.saturating_add(row.copies);
        sum.bytes = sum.bytes.saturating_add(row.bytes);
        sum.errors = sum.errors.saturating_add(row.errors);
        sum.time.add(&row.time);
    })
}

/// One row per device.
pub(super) fn merge_devices(rows: impl IntoIterator<Item = DeviceRow>) -> Vec<DeviceRow> {
    merge(
        rows,
        |row| row.device.clone(),
        |sum, row| {
            add(&mut sum.received, row.received);
            add(&mut sum.transmitted, row.transmitted);
        },
    )
}

/// One row per sender.
pub(super) fn merge_senders(rows: impl IntoIterator<Item = SenderRow>) -> Vec<SenderRow> {
    merge(
        rows,
        |row| row.sender.clone(),
        |sum, row| {
            sum.accepted = sum.accepted.saturating_add(row.accepted);
            sum.refused = sum.refused.saturating_add(row.refused);
            add(&mut sum.zerocopy, row.zerocopy);
            add(&mut sum.copied, row.copied);
            add(&mut sum.deep_copies, row.deep_copies);
        },
    )
}

fn merge<Row, Key: Ord>(
    rows: impl IntoIterator<Item = Row>,
    key: impl Fn(&Row) -> Key,
    add: impl Fn(&mut Row, Row),
) -> Vec<Row> {
    let mut sums = BTreeMap::<Key, Row>::new();
    for row in rows {
        match sums.entry(key(&row)) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(row);
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => add(entry.get_mut(), row),
        }
    }
    sums.into_values().collect()
}

/// Adds the second pair to the first.
fn add(to: &mut (u64, u64), more: (u64, u64)) {
    to.0 = to.0.saturating_add(more.0);
    to.1 = to.1.saturating_add(more.1);
}

/// Adds where both are known; one unknown part makes the sum unknown.
pub(super) fn add_known(to: &mut Option<u64>, more: Option<u64>) {
    *to = to.zip(more).map(|(a, b)| a.saturating_add(b));
}

impl Histogram {
    /// Adds times to times.
    pub fn add(&mut self, more: &Self) {
        self.count = self.count.saturating_add(more.count);
        self.sum = self.sum.saturating_add(more.sum);
        for (bucket, count) in self.buckets.iter_mut().zip(more.buckets) {
            *bucket = bucket.saturating_add(count);
        }
    }
}
