//! The exposition as Prometheus reads it.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;
use crate::report::tests_support::{Names, deep_copies, flow, snapshot, times};
use crate::report::{Flow, SenderLabel, SenderRow};
use crate::snapshot::{DeepCopies, Method, Snapshot};

fn host() -> Host {
    Host {
        kernel_release: "6.18.0".to_owned(),
        kernel_version: "#1 SMP".to_owned(),
        machine: "x86_64".to_owned(),
    }
}

/// A snapshot that fills every family.
fn full() -> Snapshot {
    let mut snapshot = snapshot();
    let again = DeepCopies {
        again: true,
        ..deep_copies("tun_net_xmit", 2, 2_000)
    };
    snapshot.deep_copies.push(again);
    snapshot
}

fn full_flow() -> Flow {
    Flow {
        release: Some(times(94, 9)),
        ..flow()
    }
}

fn report(snapshot: Snapshot, tier: Method) -> Report {
    Report::new(snapshot, Some(tier), &Names, vec![full_flow()])
}

fn render(report: Report) -> String {
    let mut exporter = Exporter::new(host(), Limits::default());
    exporter
        .render(report, || Duration::from_millis(1))
        .unwrap()
}

/// Value of a sample; `None` if it is not there.
fn value(text: &str, sample: &str) -> Option<f64> {
    let found = text.lines().find_map(|line| line.strip_prefix(sample))?;
    Some(found.trim().parse().unwrap())
}

#[test]
fn metric_exposition() {
    let text = render(report(full(), Method::Kprobe));
    let golden = include_str!("golden.prom");
    if text != golden {
        let differs = text
            .lines()
            .zip(golden.lines())
            .find(|(now, then)| now != then);
        panic!("not as in golden.prom, first at {differs:?}; the whole is:\n{text}");
    }
}

#[test]
fn promtool_finds_nothing_to_complain_of() {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is needed: Debian package prometheus");
    let text = render(report(full(), Method::Kprobe));
    promtool
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}

#[test]
fn what_the_tier_cannot_see_is_absent() {
    let mut snapshot = full();
    snapshot.deep_copies.clear();
    snapshot.releases.clear();
    for part in &mut snapshot.completions {
        part.bytes = None;
    }
    for part in &mut snapshot.attempts {
        (part.bytes, part.refused) = (None, None);
    }
    let text = render(report(snapshot, Method::Tracepoint));
    for absent in [
        "zerocopy_attempt_bytes_total",
        "zerocopy_refused_total",
        "zerocopy_completed_bytes_total",
        "zerocopy_deep_cop",
        "zerocopy_release_seconds",
        "zerocopy_sender_bytes_total",
    ] {
        let shown = text
            .lines()
            .any(|line| line.starts_with(absent) || line.starts_with(&format!("# TYPE {absent}")));
        assert!(!shown, "{absent}");
    }
    assert!(text.contains("zerocopy_sender_completions_total{"));
    assert!(text.contains("zerocopy_device_received_bytes_total{"));
}

#[test]
fn counters_never_go_back() {
    let sample = "zerocopy_attempts_total{api=\"msg_zerocopy\",transport=\"tcp\",family=\"4\"}";
    let mut exporter = Exporter::new(host(), Limits::default());
    let mut at = |accepted| {
        let mut snapshot = full();
        snapshot.attempts[0].accepted = accepted;
        let report = report(snapshot, Method::Kprobe);
        value(&exporter.render(report, || Duration::ZERO).unwrap(), sample)
    };
    assert_eq!(
        [at(100), at(99), at(101)],
        [Some(100.0), Some(100.0), Some(101.0)]
    );
}

#[test]
fn names_have_a_budget_and_sums_stay_whole() {
    let mut report = report(full(), Method::Kprobe);
    report.senders = (0..10)
        .map(|n| SenderRow {
            sender: SenderLabel {
                comm: format!("sender{n}"),
                cgroup: String::new(),
            },
            accepted: n,
            refused: 0,
            zerocopy: (0, 0),
            copied: (n, n * 100),
            deep_copies: (0, 0),
        })
        .collect();
    let mut exporter = Exporter::new(
        host(),
        Limits {
            senders: 3,
            devices: 0,
        },
    );
    let mut text = String::new();
    for _ in 0..2 {
        text = exporter.render(report.clone(), || Duration::ZERO).unwrap();
    }
    let copied: Vec<f64> = text
        .lines()
        .filter(|line| line.starts_with("zerocopy_sender_completions_total{"))
        .filter(|line| line.contains("outcome=\"copied\""))
        .map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
        .collect();
    assert_eq!(copied.len(), 4);
    assert_eq!(copied.iter().sum::<f64>(), 45.0);
    let other =
        "zerocopy_sender_completions_total{comm=\"other\",cgroup=\"other\",outcome=\"copied\"}";
    assert_eq!(
        value(&text, other),
        Some(21.0),
        "the three biggest have series of their own"
    );
    assert!(text.contains("device=\"other\",device_kind=\"other\""));
    assert!(!text.contains("device=\"lo\""));
}

#[test]
fn a_lower_bound_is_marked() {
    let mut snapshot = full();
    snapshot.maps[0].failures = 1;
    let text = render(report(snapshot, Method::Kprobe));
    let mark = |metric| {
        value(
            &text,
            &format!("zc_observe_lower_bound{{metric=\"{metric}\"}}"),
        )
    };
    assert_eq!(mark("zerocopy_completions_total"), Some(1.0));
    assert_eq!(mark("zerocopy_deep_copies_total"), Some(0.0));
    assert!(!text.contains("zerocopy_pending{"));
}

#[test]
fn names_are_escaped() {
    let mut report = report(full(), Method::Kprobe);
    report.senders[0].sender.comm = "a\"b\\c\nd".to_owned();
    assert!(render(report).contains(r#"{comm="a\"b\\c\nd",cgroup="/user",outcome="copied"}"#));
}
