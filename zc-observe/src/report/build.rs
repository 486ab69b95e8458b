//! Builds a report: sums a snapshot under the names that the attribution gives.

use std::collections::BTreeMap;

use super::labels::{Attribution, family, transport};
use super::rows::{
    AttemptRow, CompletionRow, CopyRow, DeviceRow, SenderRow, add_known, merge_copies,
    merge_devices, merge_senders,
};
use super::{Flow, Quality, Report};
use crate::snapshot::{
    Api, Attempts, Completions, DeepCopies, DeviceBytes, Method, Outcome, Sender, Snapshot,
};

impl Report {
    /// Sums a snapshot under names.
    #[must_use]
    pub fn new(
        snapshot: Snapshot,
        tier: Option<Method>,
        names: &dyn Attribution,
        flows: Vec<Flow>,
    ) -> Self {
        let quality = Quality::judge(&snapshot.probes, &snapshot.maps);
        let attempts = attempts(&snapshot.attempts);
        let completions = completions(&snapshot.completions);
        let (second, first): (Vec<_>, Vec<_>) =
            snapshot.deep_copies.iter().partition(|copies| copies.again);
        let mut releases = snapshot.releases;
        releases.sort_by_key(|releases| releases.api);
        Self {
            taken: snapshot.taken,
            since: snapshot.since,
            tier,
            pending: pending(&attempts, &completions, &quality),
            attempts,
            completions,
            deep_copies: copies(&first, names),
            second_copies: copies(&second, names),
            releases,
            devices: devices(&snapshot.device_bytes, names),
            senders: senders(&snapshot.senders, names),
            probes: snapshot.probes,
            maps: snapshot.maps,
            flows,
            quality,
        }
    }

    /// Sums rows that have come to bear the same names.
    pub fn merge(&mut self) {
        self.deep_copies = merge_copies(std::mem::take(&mut self.deep_copies));
        self.second_copies = merge_copies(std::mem::take(&mut self.second_copies));
        self.devices = merge_devices(std::mem::take(&mut self.devices));
        self.senders = merge_senders(std::mem::take(&mut self.senders));
    }
}

fn attempts(parts: &[Attempts]) -> Vec<AttemptRow> {
    let mut rows = BTreeMap::new();
    for part in parts {
        let transport = transport(part.protocol, part.family);
        let family = family(part.family);
        let row = rows
            .entry((part.api, transport, family))
            .or_insert(AttemptRow {
                api: part.api,
                transport,
                family,
                accepted: 0,
                bytes: Some(0),
                refused: Some(0),
            });
        row.accepted = row.accepted.saturating_add(part.accepted);
        add_known(&mut row.bytes, part.bytes);
        add_known(&mut row.refused, part.refused);
    }
    rows.into_values().collect()
}

fn completions(parts: &[Completions]) -> Vec<CompletionRow> {
    let mut rows = BTreeMap::new();
    for part in parts {
        let transport = transport(part.protocol, part.family);
        // One probe counts both outcomes, so the other one is a known zero.
        for outcome in [Outcome::Zerocopy, Outcome::Copied] {
            let row = rows
                .entry((part.api, transport, outcome))
                .or_insert(CompletionRow {
                    api: part.api,
                    transport,
                    outcome,
                    sends: 0,
                    bytes: Some(0),
                });
            if outcome == part.outcome {
                row.sends = row.sends.saturating_add(part.ids);
                add_known(&mut row.bytes, part.bytes);
            } else if part.bytes.is_none() {
                row.bytes = None;
            }
        }
    }
    rows.into_values().collect()
}

fn copies(parts: &[&DeepCopies], names: &dyn Attribution) -> Vec<CopyRow> {
    merge_copies(parts.iter().map(|part| CopyRow {
        cause: names.cause(part),
        device: names.device(part.device),
        api: part.api,
        copies: part.copies,
        bytes: part.bytes,
        errors: part.errors,
        time: part.time,
    }))
}

fn devices(parts: &[DeviceBytes], names: &dyn Attribution) -> Vec<DeviceRow> {
    merge_devices(parts.iter().map(|part| DeviceRow {
        device: names.device(Some(part.device)),
        received: part.received,
        transmitted: part.transmitted,
    }))
}

fn senders(parts: &[Sender], names: &dyn Attribution) -> Vec<SenderRow> {
    merge_senders(parts.iter().map(|part| SenderRow {
        sender: names.sender(&part.key),
        accepted: part.accepted,
        refused: part.refused,
        zerocopy: part.zerocopy,
        copied: part.copied,
        deep_copies: part.deep_copies,
    }))
}

/// Sends on their way, per API; only where attempts and completions are exact, and
/// no completion of an older send makes the difference negative.
fn pending(
    attempts: &[AttemptRow],
    completions: &[CompletionRow],
    quality: &Quality,
) -> Vec<(Api, u64)> {
    if !quality.exact("zerocopy_attempts_total") || !quality.exact("zerocopy_completions_total") {
        return Vec::new();
    }
    let mut accepted = BTreeMap::<Api, u64>::new();
    for row in attempts {
        *accepted.entry(row.api).or_default() += row.accepted;
    }
    let completed = |api| -> u64 {
        completions
            .iter()
            .filter(|row| row.api == api)
            .map(|row| row.sends)
            .sum()
    };
    accepted
        .into_iter()
        .filter_map(|(api, sends)| Some((api, sends.checked_sub(completed(api))?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{Names, deep_copies, snapshot};
    use super::*;

    #[test]
    fn second_copies_are_apart_and_sums_are_whole() {
        let mut snapshot = snapshot();
        let again = DeepCopies {
            again: true,
            ..deep_copies("__netif_receive_skb_core", 3, 30)
        };
        snapshot.deep_copies.push(again);
        snapshot
            .deep_copies
            .push(deep_copies("skb_release_data", 2, 20));
        let copies: u64 = snapshot
            .deep_copies
            .iter()
            .filter(|part| !part.again)
            .map(|part| part.copies)
            .sum();
        let report = Report::new(snapshot, Some(Method::Kprobe), &Names, Vec::new());
        assert_eq!(
            report.deep_copies.iter().map(|row| row.copies).sum::<u64>(),
            copies
        );
        assert_eq!(
            report
                .second_copies
                .iter()
                .map(|row| row.copies)
                .sum::<u64>(),
            3
        );
    }

    #[test]
    fn the_other_outcome_is_a_known_zero() {
        let mut snapshot = snapshot();
        snapshot
            .completions
            .retain(|part| part.outcome == Outcome::Copied);
        let report = Report::new(snapshot, Some(Method::Kprobe), &Names, Vec::new());
        let zero = report
            .completions
            .iter()
            .find(|row| row.outcome == Outcome::Zerocopy)
            .unwrap();
        assert_eq!((zero.sends, zero.bytes), (0, Some(0)));
    }

    #[test]
    fn unknown_bytes_stay_unknown() {
        let mut snapshot = snapshot();
        for part in &mut snapshot.completions {
            part.bytes = None;
        }
        let report = Report::new(snapshot, Some(Method::Tracepoint), &Names, Vec::new());
        assert!(report.completions.iter().all(|row| row.bytes.is_none()));
        assert!(!report.sees_completed_bytes());
    }

    #[test]
    fn pending_is_left_out_where_it_cannot_be_exact() {
        let exact = Report::new(snapshot(), Some(Method::Kprobe), &Names, Vec::new());
        assert_eq!(exact.pending, [(Api::MsgZerocopy, 6)]);

        let mut missed = snapshot();
        missed.probes[0].missed = Some(1);
        let report = Report::new(missed, Some(Method::Kprobe), &Names, Vec::new());
        assert_eq!(report.pending, []);

        let mut older = snapshot();
        older.completions[0].ids += 1000;
        let report = Report::new(older, Some(Method::Kprobe), &Names, Vec::new());
        assert_eq!(report.pending, []);
    }

    #[test]
    fn devices_of_one_name_are_one_row() {
        let mut snapshot = snapshot();
        let one = snapshot.device_bytes[0];
        snapshot.device_bytes.push(one);
        let report = Report::new(snapshot, Some(Method::Tracepoint), &Names, Vec::new());
        assert_eq!(report.devices.len(), 1);
        assert_eq!(
            report.devices[0].received,
            (2 * one.received.0, 2 * one.received.1)
        );
    }
}
