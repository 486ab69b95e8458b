//! The line a second: what happened since the line before.

use std::fmt;

use super::totals::{received, top_cause};
use super::unit::{bytes, count, percent};
use super::{Flow, Report, Totals};

/// Growth between two reports as one line of text.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The report of the line before.
    pub before: Option<&'a Report>,
    /// The report of this line.
    pub now: &'a Report,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.now.tier.is_none() {
            return self.flows(f);
        }
        let all = Totals::of(self.now);
        let more = self
            .before
            .map_or(all, |report| all.since(&Totals::of(report)));
        write!(
            f,
            "{}  attempts {}  copied {}  zero-copy {}",
            humantime::format_rfc3339_seconds(self.now.taken),
            count(more.attempts),
            count(more.copied),
            count(more.zerocopy)
        )?;
        if let Some(refused) = more.refused.filter(|refused| *refused > 0) {
            write!(f, "  refused {}", count(refused))?;
        }
        match more.deep_copy_bytes {
            Some(copied) => self.causes(f, copied),
            None => self.devices(f),
        }
    }
}

impl Line<'_> {
    /// Without probes: what our own traffic read from its sockets.
    fn flows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |report: &Report, part: fn(&Flow) -> u64| -> u64 {
            report.flows.iter().map(part).sum()
        };
        let more = |part: fn(&Flow) -> u64| {
            let before = self.before.map_or(0, |report| sum(report, part));
            count(sum(self.now, part).saturating_sub(before))
        };
        write!(
            f,
            "{}  no probes  generator sends {}  copied {}  zero-copy {}",
            humantime::format_rfc3339_seconds(self.now.taken),
            more(|flow| flow.sends),
            more(|flow| flow.copied),
            more(|flow| flow.zerocopy)
        )
    }

    /// Bytes deep-copied, and the cause of most of them.
    fn causes(&self, f: &mut fmt::Formatter<'_>, copied: u64) -> fmt::Result {
        write!(f, "  deep-copied {}", bytes(copied))?;
        match top_cause(self.before, self.now) {
            Some((cause, device, part)) if part < copied => {
                write!(
                    f,
                    "  cause {cause} on {} ({})",
                    device.name,
                    percent(part, copied)
                )
            }
            Some((cause, device, _)) => write!(f, "  cause {cause} on {}", device.name),
            None => Ok(()),
        }
    }

    /// Zero-copy bytes received per device, where copies themselves cannot be seen.
    fn devices(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        write!(f, "  deep-copied unknown, cause unknown")?;
        let devices = received(self.before, self.now);
        if devices.is_empty() {
            return Ok(());
        }
        write!(f, "  zero-copy bytes received")?;
        for (index, (device, part)) in devices.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma} {} on {}", bytes(*part), device.name)?;
        }
        let rest: u64 = devices.iter().skip(SHOWN).map(|(_, part)| part).sum();
        if rest > 0 {
            write!(f, ", {} on {} more", bytes(rest), devices.len() - SHOWN)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{Names, deep_copies, flow, snapshot};
    use super::*;
    use crate::snapshot::Method;

    #[test]
    fn a_line_with_causes() {
        let report = Report::new(snapshot(), Some(Method::Fentry), &Names, Vec::new());
        assert_eq!(
            Line {
                before: None,
                now: &report
            }
            .to_string(),
            "1970-01-12T13:46:50Z  attempts 100  copied 90  zero-copy 4  refused 4  \
             deep-copied 900.0 kB  cause local_delivery on lo"
        );
        assert_eq!(
            Line {
                before: Some(&report),
                now: &report
            }
            .to_string(),
            "1970-01-12T13:46:50Z  attempts 0  copied 0  zero-copy 0  deep-copied 0 B"
        );
    }

    #[test]
    fn a_top_cause_that_is_not_alone_has_its_share() {
        let mut snapshot = snapshot();
        snapshot
            .deep_copies
            .push(deep_copies("somebody", 1, 100_000));
        let report = Report::new(snapshot, Some(Method::Kprobe), &Names, Vec::new());
        let line = Line {
            before: None,
            now: &report,
        }
        .to_string();
        assert!(
            line.ends_with("deep-copied 1.0 MB  cause local_delivery on lo (90 %)"),
            "{line}"
        );
    }

    #[test]
    fn without_probes_the_kernel_counts_nothing() {
        let report = Report::new(snapshot(), None, &Names, vec![flow()]);
        assert_eq!(
            Line {
                before: None,
                now: &report
            }
            .to_string(),
            "1970-01-12T13:46:50Z  no probes  generator sends 100  copied 90  zero-copy 4"
        );
    }

    #[test]
    fn a_line_of_the_tracepoint_tier() {
        let report = Report::new(snapshot(), Some(Method::Tracepoint), &Names, Vec::new());
        let line = Line {
            before: None,
            now: &report,
        }
        .to_string();
        assert!(
            line.ends_with(
                "deep-copied unknown, cause unknown  zero-copy bytes received 900.0 kB on lo"
            ),
            "{line}"
        );
    }
}
