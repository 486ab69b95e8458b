//! `zerocopy_`: what the kernel did.

use std::collections::BTreeMap;

use super::family::Family;
use crate::report::{CopyRow, Report};
use crate::snapshot::Histogram;

/// Families of what the kernel did. A value that the tier cannot see has no sample.
pub(super) fn families(report: &Report) -> Vec<Family> {
    let mut families = Vec::from(attempts(report));
    families.extend(completions(report));
    families.extend(deep_copies(&report.deep_copies));
    families.extend(second_copies(&report.second_copies));
    families.extend(releases(report));
    families.extend(senders(report));
    families.extend(devices(report));
    families
}

fn attempts(report: &Report) -> [Family; 3] {
    let mut sends = Family::counter(
        "zerocopy_attempts_total",
        "Sends that asked for zero-copy and were accepted (msg_zerocopy_realloc and io_alloc_notif, or their predecessors; the socket's notification counter on the tracepoint tier). In sends.",
    );
    let mut bytes = Family::counter(
        "zerocopy_attempt_bytes_total",
        "Payload bytes that accepted zero-copy sends asked for (msg_zerocopy_realloc); a send that TCP takes in part is asked for again. Absent where the tier cannot see them.",
    );
    let mut refused = Family::counter(
        "zerocopy_refused_total",
        "Sends that failed because of a zero-copy limit (no notification could be allocated in msg_zerocopy_realloc or its predecessors). In sends. Absent where the tier cannot see them.",
    );
    let mut by_transport = BTreeMap::<_, Option<u64>>::new();
    for row in &report.attempts {
        let labels = [
            ("api", row.api.as_str()),
            ("transport", row.transport),
            ("family", row.family),
        ];
        sends.add(&labels, row.accepted);
        bytes.add_known(&labels, row.bytes);
        let sum = by_transport
            .entry((row.api, row.transport))
            .or_insert(Some(0));
        *sum = sum.zip(row.refused).map(|(a, b)| a.saturating_add(b));
    }
    for ((api, transport), count) in by_transport {
        let labels = [
            ("api", api.as_str()),
            ("transport", transport),
            ("reason", "unknown"),
        ];
        refused.add_known(&labels, count);
    }
    [sends, bytes, refused]
}

fn completions(report: &Report) -> [Family; 2] {
    let mut sends = Family::counter(
        "zerocopy_completions_total",
        "Sends whose buffer the kernel released, by what the completion flag says (SO_EE_CODE_ZEROCOPY_COPIED, IORING_NOTIF_USAGE_ZC_COPIED). In sends (notification ids), not in skbs.",
    );
    let mut bytes = Family::counter(
        "zerocopy_completed_bytes_total",
        "Payload bytes that completed sends had asked for. Absent where the tier cannot see them.",
    );
    for row in &report.completions {
        let labels = [
            ("api", row.api.as_str()),
            ("transport", row.transport),
            ("outcome", row.outcome.as_str()),
        ];
        sends.add(&labels, row.sends);
        bytes.add_known(&labels, row.bytes);
    }
    [sends, bytes]
}

fn copy_labels(row: &CopyRow) -> [(&str, &str); 4] {
    [
        ("cause", row.cause),
        ("device", row.device.name.as_str()),
        ("device_kind", row.device.kind.as_str()),
        ("api", row.api.as_str()),
    ]
}

fn deep_copies(rows: &[CopyRow]) -> [Family; 5] {
    let mut skbs = Family::counter(
        "zerocopy_deep_copies_total",
        "Deep copies of zero-copy payload: runs of skb_copy_ubufs, or of __pskb_pull_tail that take the last paged byte. In skbs. Second copies of sends that were copied already are not among them.",
    );
    let mut bytes = Family::counter(
        "zerocopy_deep_copy_bytes_total",
        "Payload bytes that deep copies copied (sk_buff.data_len at entry of skb_copy_ubufs or __pskb_pull_tail).",
    );
    let mut errors = Family::counter(
        "zerocopy_deep_copy_errors_total",
        "Deep copies that failed (skb_copy_ubufs returned an error); the kernel drops such packets. In skbs.",
    );
    let mut seconds = Family::counter(
        "zerocopy_deep_copy_seconds_total",
        "Time inside deep copies whose end was seen (entry to return of skb_copy_ubufs or __pskb_pull_tail), interrupts included.",
    );
    let mut durations = Family::histogram(
        "zerocopy_deep_copy_duration_seconds",
        "Time of one deep copy (entry to return of skb_copy_ubufs or __pskb_pull_tail), interrupts included.",
    );
    for row in rows {
        let labels = copy_labels(row);
        skbs.add(&labels, row.copies);
        bytes.add(&labels, row.bytes);
        errors.add(&labels, row.errors);
    }
    for (cause, time) in times_by_cause(rows) {
        let labels = [("cause", cause)];
        seconds.add_f64(&labels, time.sum.as_secs_f64());
        durations.add_times(&labels, &time);
    }
    [skbs, bytes, errors, seconds, durations]
}

fn times_by_cause(rows: &[CopyRow]) -> BTreeMap<&'static str, Histogram> {
    let mut causes = BTreeMap::<_, Histogram>::new();
    for row in rows {
        causes.entry(row.cause).or_default().add(&row.time);
    }
    causes
}

fn second_copies(rows: &[CopyRow]) -> [Family; 2] {
    let mut skbs = Family::counter(
        "zerocopy_second_copies_total",
        "Deep copies of sends that were copied already when the copy began: not fallbacks. In skbs.",
    );
    let mut bytes = Family::counter(
        "zerocopy_second_copy_bytes_total",
        "Payload bytes of second copies (sk_buff.data_len at entry of skb_copy_ubufs or __pskb_pull_tail).",
    );
    for row in rows {
        let labels = copy_labels(row);
        skbs.add(&labels, row.copies);
        bytes.add(&labels, row.bytes);
    }
    [skbs, bytes]
}

fn releases(report: &Report) -> [Family; 2] {
    let mut seconds = Family::histogram(
        "zerocopy_release_seconds",
        "Time from a buffer's first send to its release by the kernel. Absent where the tier cannot see it.",
    );
    for releases in report
        .releases
        .iter()
        .filter(|releases| releases.time.count > 0)
    {
        seconds.add_times(&[("api", releases.api.as_str())], &releases.time);
    }
    let mut pending = Family::gauge(
        "zerocopy_pending",
        "Sends accepted and not completed yet (attempts - completions). Only where both are exact.",
    );
    for (api, sends) in &report.pending {
        pending.add(&[("api", api.as_str())], *sends);
    }
    [seconds, pending]
}

fn senders(report: &Report) -> [Family; 2] {
    let mut sends = Family::counter(
        "zerocopy_sender_completions_total",
        "Sends completed, by the process that owns the socket. In sends. Senders beyond the limit are together under other.",
    );
    let mut bytes = Family::counter(
        "zerocopy_sender_bytes_total",
        "Payload bytes of completed sends, by the process that owns the socket. Absent where the tier cannot see them.",
    );
    let known = report.sees_completed_bytes();
    for row in &report.senders {
        for (outcome, (ids, payload)) in [("copied", row.copied), ("zerocopy", row.zerocopy)] {
            let labels = [
                ("comm", row.sender.comm.as_str()),
                ("cgroup", row.sender.cgroup.as_str()),
                ("outcome", outcome),
            ];
            sends.add(&labels, ids);
            bytes.add_known(&labels, known.then_some(payload));
        }
    }
    [sends, bytes]
}

fn devices(report: &Report) -> [Family; 4] {
    let mut families = [
        Family::counter(
            "zerocopy_device_received_packets_total",
            "Packets with zero-copy frags that a device received (tracepoint netif_receive_skb). In skbs. Tracepoint tier only.",
        ),
        Family::counter(
            "zerocopy_device_received_bytes_total",
            "Zero-copy payload bytes that a device received, before anything copied them (sk_buff.data_len at netif_receive_skb). Tracepoint tier only.",
        ),
        Family::counter(
            "zerocopy_device_transmitted_packets_total",
            "Packets with zero-copy frags handed to a device's driver (tracepoint net_dev_start_xmit). In skbs. Tracepoint tier only.",
        ),
        Family::counter(
            "zerocopy_device_transmitted_bytes_total",
            "Zero-copy payload bytes handed to a device's driver (sk_buff.data_len at net_dev_start_xmit). Tracepoint tier only.",
        ),
    ];
    for row in &report.devices {
        let labels = [
            ("device", row.device.name.as_str()),
            ("device_kind", row.device.kind.as_str()),
        ];
        let values = [
            row.received.0,
            row.received.1,
            row.transmitted.0,
            row.transmitted.1,
        ];
        for (family, value) in families.iter_mut().zip(values) {
            family.add(&labels, value);
        }
    }
    families
}
