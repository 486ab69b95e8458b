//! Which numbers are bounds and not exact: every missed hit, lost count and
//! failed insert marks the metrics that depend on it.

use std::collections::BTreeMap;

use crate::snapshot::{MapStatus, Method, ProbeState, ProbeStatus};

/// How a number may differ from the truth.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Bound {
    /// The truth is this or more.
    Lower,
    /// The truth is this or less.
    Upper,
}

/// Metrics that are bounds, and why.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Quality {
    bounds: BTreeMap<(&'static str, Bound), Vec<String>>,
}

/// What counts attempts: the only metrics that can be an upper bound.
pub const ATTEMPTS: &[&str] = &["zerocopy_attempts_total", "zerocopy_attempt_bytes_total"];
const REFUSED: &[&str] = &["zerocopy_refused_total"];
const COMPLETIONS: &[&str] = &[
    "zerocopy_completions_total",
    "zerocopy_completed_bytes_total",
];
const SENDERS: &[&str] = &[
    "zerocopy_sender_completions_total",
    "zerocopy_sender_bytes_total",
];
const DEEP_COPIES: &[&str] = &[
    "zerocopy_deep_copies_total",
    "zerocopy_deep_copy_bytes_total",
    "zerocopy_second_copies_total",
    "zerocopy_second_copy_bytes_total",
];
const DEEP_COPY_ENDS: &[&str] = &[
    "zerocopy_deep_copy_errors_total",
    "zerocopy_deep_copy_seconds_total",
    "zerocopy_deep_copy_duration_seconds",
];
const RELEASES: &[&str] = &["zerocopy_release_seconds"];
const RECEIVED: &[&str] = &[
    "zerocopy_device_received_packets_total",
    "zerocopy_device_received_bytes_total",
];
const TRANSMITTED: &[&str] = &[
    "zerocopy_device_transmitted_packets_total",
    "zerocopy_device_transmitted_bytes_total",
];

/// Everything that can be a bound.
pub const MEASURED: &[&[&str]] = &[
    ATTEMPTS,
    REFUSED,
    COMPLETIONS,
    SENDERS,
    DEEP_COPIES,
    DEEP_COPY_ENDS,
    RELEASES,
    RECEIVED,
    TRANSMITTED,
];

/// What misses a count when this probe misses a hit. A probe that is not known here
/// is taken to concern everything.
fn fed_by_probe(name: &str) -> &'static [&'static [&'static str]] {
    match name {
        "copy_ubufs" | "pull_tail" => &[DEEP_COPIES, DEEP_COPY_ENDS],
        "copy_ubufs_return" | "pull_tail_return" => &[DEEP_COPY_ENDS],
        "attempt" | "attempt_entry" | "uring_attempt" => &[ATTEMPTS, REFUSED, SENDERS],
        "uring_bind" => &[ATTEMPTS, SENDERS],
        "complete" | "uring_release" | "uring_complete" => &[COMPLETIONS, SENDERS, RELEASES],
        "error_report" | "consume_skb" | "kfree_skb" => &[COMPLETIONS, SENDERS],
        "send_length" => &[ATTEMPTS, SENDERS],
        "device_receive" => &[RECEIVED],
        "device_transmit" => &[TRANSMITTED],
        "abort" => &[],
        _ => MEASURED,
    }
}

/// What misses a count when this map has no room.
fn kept_in_map(name: &str) -> &'static [&'static [&'static str]] {
    match name {
        "deep_copies" => &[DEEP_COPIES, DEEP_COPY_ENDS],
        "in_flight" => &[DEEP_COPY_ENDS],
        "attempts" => &[ATTEMPTS, REFUSED],
        "completions" => &[COMPLETIONS],
        "senders" | "owners" => &[SENDERS],
        "buffers" => &[RELEASES, &["zerocopy_completed_bytes_total"], SENDERS],
        "device_bytes" => &[RECEIVED, TRANSMITTED],
        "sockets" => &[ATTEMPTS, COMPLETIONS, SENDERS],
        "notifications" => &[COMPLETIONS, SENDERS],
        // Names only: the counts stay whole under `unknown`.
        "devices" => &[],
        _ => MEASURED,
    }
}

impl Quality {
    /// Judges by the probes' and the maps' own accounts.
    #[must_use]
    pub fn judge(probes: &[ProbeStatus], maps: &[MapStatus]) -> Self {
        let mut quality = Self::default();
        for probe in probes {
            let missed = probe.missed.unwrap_or(0);
            if missed > 0 {
                let why = format!("the kernel did not deliver {missed} hits to {}", probe.name);
                quality.mark(fed_by_probe(probe.name), Bound::Lower, &why);
                if probe.name == "abort" {
                    quality.mark(&[ATTEMPTS], Bound::Upper, &why);
                }
            }
            if probe.lost > 0 {
                let why = format!("{} lost {} counts", probe.name, probe.lost);
                quality.mark(fed_by_probe(probe.name), Bound::Lower, &why);
                if probe.name == "abort" {
                    quality.mark(&[ATTEMPTS], Bound::Upper, &why);
                }
            }
        }
        for map in maps.iter().filter(|map| map.failures > 0) {
            let why = format!("map {} had no room {} times", map.name, map.failures);
            quality.mark(kept_in_map(map.name), Bound::Lower, &why);
        }
        if attempts_without_aborts(probes) {
            let why = "sends that fail after they were accepted are not seen on this kernel";
            quality.mark(&[ATTEMPTS], Bound::Upper, why);
        }
        quality
    }

    fn mark(&mut self, groups: &[&[&'static str]], bound: Bound, why: &str) {
        for metric in groups.iter().copied().flatten() {
            let reasons = self.bounds.entry((metric, bound)).or_default();
            if !reasons.iter().any(|reason| reason == why) {
                reasons.push(why.to_owned());
            }
        }
    }

    /// Whether this metric is such a bound.
    #[must_use]
    pub fn is(&self, metric: &'static str, bound: Bound) -> bool {
        self.bounds.contains_key(&(metric, bound))
    }

    /// Whether this metric is exact.
    #[must_use]
    pub fn exact(&self, metric: &'static str) -> bool {
        !self.is(metric, Bound::Lower) && !self.is(metric, Bound::Upper)
    }

    /// Metrics that are bounds, with the reasons.
    pub fn bounds(&self) -> impl Iterator<Item = (&'static str, Bound, &[String])> {
        self.bounds
            .iter()
            .map(|((metric, bound), why)| (*metric, *bound, why.as_slice()))
    }
}

/// Whether attempts are counted by a function probe and their aborts are not.
fn attempts_without_aborts(probes: &[ProbeStatus]) -> bool {
    let by_function = |probe: &&ProbeStatus| {
        probe.name == "attempt"
            && probe.state == ProbeState::Attached
            && probe.method != Some(Method::Tracepoint)
    };
    let lost = |probe: &&ProbeStatus| {
        probe.name == "abort"
            && matches!(
                probe.state,
                ProbeState::Absent { .. } | ProbeState::Refused { .. }
            )
    };
    probes.iter().any(|probe| by_function(&probe)) && probes.iter().any(|probe| lost(&probe))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(name: &'static str) -> ProbeStatus {
        ProbeStatus {
            name,
            purpose: "",
            method: Some(Method::Kprobe),
            target: None,
            state: ProbeState::Attached,
            hits: 5,
            missed: Some(0),
            lost: 0,
            seconds: None,
        }
    }

    #[test]
    fn nothing_missed_is_exact() {
        let quality = Quality::judge(&[probe("complete"), probe("attempt")], &[]);
        assert_eq!(quality.bounds().count(), 0);
    }

    #[test]
    fn a_missed_hit_marks_what_depends_on_it_and_nothing_else() {
        let missed = ProbeStatus {
            missed: Some(3),
            ..probe("copy_ubufs")
        };
        let quality = Quality::judge(&[missed], &[]);
        assert!(quality.is("zerocopy_deep_copies_total", Bound::Lower));
        assert!(quality.exact("zerocopy_attempts_total"));
    }

    #[test]
    fn an_unknown_probe_that_lost_something_marks_everything() {
        let lost = ProbeStatus {
            lost: 1,
            ..probe("new")
        };
        let quality = Quality::judge(&[lost], &[]);
        for metric in MEASURED.iter().copied().flatten() {
            assert!(quality.is(metric, Bound::Lower), "{metric}");
        }
    }

    #[test]
    fn a_full_map_marks_its_metrics() {
        let map = MapStatus {
            name: "completions",
            entries: Some(9),
            capacity: 9,
            failures: 2,
        };
        let quality = Quality::judge(&[], &[map]);
        assert!(quality.is("zerocopy_completions_total", Bound::Lower));
        assert!(quality.exact("zerocopy_deep_copies_total"));
    }

    #[test]
    fn attempts_are_an_upper_bound_without_their_aborts() {
        let state = ProbeState::Refused {
            reason: String::new(),
        };
        let quality = Quality::judge(
            &[
                probe("attempt"),
                ProbeStatus {
                    state,
                    ..probe("abort")
                },
            ],
            &[],
        );
        assert!(quality.is("zerocopy_attempts_total", Bound::Upper));
        assert!(!quality.is("zerocopy_attempts_total", Bound::Lower));
    }
}
