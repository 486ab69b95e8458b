//! Snapshot and attribution become a report: plain totals by the labels that
//! metrics, lines and summaries show. Nothing here touches the kernel.

mod build;
mod flow;
mod labels;
mod line;
mod names;
pub mod quality;
mod rows;
mod summary;
mod totals;
pub(crate) mod unit;

use std::time::SystemTime;

pub use flow::Flow;
pub use labels::{Attribution, DeviceLabel, SenderLabel, family, transport};
pub use line::Line;
pub use names::Names;
pub use quality::{Bound, Quality};
pub use rows::{AttemptRow, CompletionRow, CopyRow, DeviceRow, SenderRow};
pub use summary::Summary;
pub use totals::Totals;

use crate::snapshot::{Api, MapStatus, Method, ProbeStatus, Releases};

/// What happened since the observer attached, in names.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// When the maps were read.
    pub taken: SystemTime,
    /// Since when it counts.
    pub since: SystemTime,
    /// Best method among the probes of copies and completions; `None` without probes.
    pub tier: Option<Method>,
    /// Sends that asked for zero-copy.
    pub attempts: Vec<AttemptRow>,
    /// Sends completed; where one outcome of an API and transport is known, so is the other.
    pub completions: Vec<CompletionRow>,
    /// Deep copies: fallbacks.
    pub deep_copies: Vec<CopyRow>,
    /// Deep copies of sends that were copied already: not fallbacks.
    pub second_copies: Vec<CopyRow>,
    /// Times from send to release.
    pub releases: Vec<Releases>,
    /// Sends accepted and not completed yet, for APIs where both are exact.
    pub pending: Vec<(Api, u64)>,
    /// Zero-copy payload through devices; tracepoint tier.
    pub devices: Vec<DeviceRow>,
    /// Senders.
    pub senders: Vec<SenderRow>,
    /// The probes.
    pub probes: Vec<ProbeStatus>,
    /// The maps.
    pub maps: Vec<MapStatus>,
    /// Our own traffic.
    pub flows: Vec<Flow>,
    /// Which of these numbers are bounds.
    pub quality: Quality,
}

impl Report {
    /// Whether deep copies can be seen at all: not on the tracepoint tier.
    #[must_use]
    pub const fn sees_deep_copies(&self) -> bool {
        matches!(self.tier, Some(Method::Fentry | Method::Kprobe))
    }

    /// Whether the payload bytes of completions can be seen.
    #[must_use]
    pub fn sees_completed_bytes(&self) -> bool {
        self.completions.iter().all(|row| row.bytes.is_some())
    }
}

#[cfg(test)]
pub(crate) mod tests_support;
