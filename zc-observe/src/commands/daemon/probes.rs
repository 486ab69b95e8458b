//! What is attached, in words: the line of the tier, the table of `--check`, and
//! what `--strict` does not put up with.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};

use crate::error::Failure;
use crate::snapshot::{Method, ProbeState, ProbeStatus};

/// One line: what is attached, with which method.
pub(super) fn tier_line(probes: &[ProbeStatus]) -> String {
    let mut methods = BTreeMap::<Method, Vec<&str>>::new();
    for probe in probes {
        if let (ProbeState::Attached, Some(method)) = (&probe.state, probe.method) {
            let targets = methods.entry(method).or_default();
            let target = probe.target.as_deref().unwrap_or(probe.name);
            // Entry and return of a function are two probes of one target.
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    }
    if methods.is_empty() {
        return "probes: none attached, only our own traffic is counted".to_owned();
    }
    let parts: Vec<String> = methods
        .into_iter()
        .map(|(method, targets)| format!("{} on {}", method.as_str(), targets.join(", ")))
        .collect();
    format!("probes: {}", parts.join("; "))
}

/// A table of all probes.
pub(super) fn table(probes: &[ProbeStatus]) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_header(["PROBE", "STATE", "METHOD", "TARGET", "NOTE"]);
    for probe in probes {
        let note = match &probe.state {
            ProbeState::Absent { reason } | ProbeState::Refused { reason } => {
                format!("{}; lost: {}", reason, probe.purpose)
            }
            ProbeState::Attached | ProbeState::Off => probe.purpose.to_owned(),
        };
        table.add_row([
            probe.name,
            probe.state.as_str(),
            probe.method.map_or("-", Method::as_str),
            probe.target.as_deref().unwrap_or("-"),
            &note,
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// `--strict`: an error that names every probe that is refused or missing.
pub(super) fn require_all(probes: &[ProbeStatus]) -> Result<(), Failure> {
    let missing: Vec<String> = probes
        .iter()
        .filter_map(|probe| match &probe.state {
            ProbeState::Absent { reason } | ProbeState::Refused { reason } => Some(format!(
                "{} ({}: {reason})",
                probe.name,
                probe.state.as_str()
            )),
            ProbeState::Attached | ProbeState::Off => None,
        })
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::not_permitted(format!(
        "{} of {} probes are not there, and --strict asks for all: {}",
        missing.len(),
        probes.len(),
        missing.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Exit;
    use crate::report::tests_support::{probe, snapshot};

    #[test]
    fn the_line_groups_targets_by_method() {
        let mut probes = vec![
            probe("complete", Method::Tracepoint),
            probe("copy", Method::Fentry),
            probe("copy_return", Method::Fentry),
        ];
        probes[2].target = Some("copy_target".to_owned());
        assert_eq!(
            tier_line(&probes),
            "probes: fentry on copy_target; tracepoint on complete_target"
        );
        assert_eq!(
            tier_line(&[]),
            "probes: none attached, only our own traffic is counted"
        );
    }

    #[test]
    fn strict_names_what_is_missing() {
        let probes = snapshot().probes;
        assert_eq!(require_all(&probes[..1]), Ok(()));
        let failure = require_all(&probes).unwrap_err();
        assert_eq!(failure.exit, Exit::NotPermitted);
        assert!(
            failure.message.contains("1 of 2 probes")
                && failure
                    .message
                    .contains("uring_complete (absent: no such function)"),
            "{failure}"
        );
    }

    #[test]
    fn the_table_has_a_row_per_probe() {
        let text = table(&snapshot().probes);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(
            rows[1][..4],
            ["complete", "attached", "kprobe", "complete_target"]
        );
        assert_eq!(rows[2][..4], ["uring_complete", "absent", "-", "-"]);
    }
}
