//! The last words of a run: totals, causes, APIs, and our traffic against the kernel's counts.

use std::fmt;
use std::time::Duration;

use super::quality::Bound;
use super::unit::{bytes, count};
use super::{Report, Totals};
use crate::snapshot::{Api, Outcome};

/// A whole report as text.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a>(pub &'a Report);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.0;
        let totals = Totals::of(report);
        let lasted = report
            .taken
            .duration_since(report.since)
            .unwrap_or_default();
        writeln!(
            f,
            "summary of {}",
            humantime::format_duration(Duration::from_secs(lasted.as_secs()))
        )?;
        if report.tier.is_some() {
            self.sends(f, &totals)?;
            self.deep_copies(f, &totals)?;
            self.devices(f)?;
        } else {
            writeln!(f, "  no probes    the kernel's own counts are unknown")?;
        }
        self.flows(f, &totals)?;
        for (metric, bound, why) in report.quality.bounds() {
            let than = match bound {
                Bound::Lower => "lower",
                Bound::Upper => "upper",
            };
            writeln!(f, "  {than} bound  {metric}: {}", why.join("; "))?;
        }
        Ok(())
    }
}

impl Summary<'_> {
    fn sends(&self, f: &mut fmt::Formatter<'_>, totals: &Totals) -> fmt::Result {
        write!(
            f,
            "  attempts     {} sends accepted",
            count(totals.attempts)
        )?;
        match totals.refused {
            Some(refused) => writeln!(f, ", {} refused", count(refused))?,
            None => writeln!(f, ", refused not seen on this tier")?,
        }
        writeln!(
            f,
            "  completions  {} sends: {} copied, {} zero-copy",
            count(totals.copied.saturating_add(totals.zerocopy)),
            count(totals.copied),
            count(totals.zerocopy)
        )?;
        self.apis(f)
    }

    fn apis(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut apis: Vec<(Api, &str)> = self
            .0
            .completions
            .iter()
            .map(|row| (row.api, row.transport))
            .collect();
        apis.dedup();
        for (api, transport) in apis {
            let of = |outcome| -> u64 {
                let rows = self.0.completions.iter();
                rows.filter(|row| {
                    (row.api, row.transport, row.outcome) == (api, transport, outcome)
                })
                .map(|row| row.sends)
                .sum()
            };
            writeln!(
                f,
                "    {} {transport}: {} copied, {} zero-copy",
                api.as_str(),
                count(of(Outcome::Copied)),
                count(of(Outcome::Zerocopy))
            )?;
        }
        Ok(())
    }

    fn deep_copies(&self, f: &mut fmt::Formatter<'_>, totals: &Totals) -> fmt::Result {
        let (Some(copies), Some(payload)) = (totals.deep_copies, totals.deep_copy_bytes) else {
            return writeln!(f, "  deep copies  not seen on this tier");
        };
        write!(
            f,
            "  deep copies  {} skbs, {}",
            count(copies),
            bytes(payload)
        )?;
        if let Some(errors) = totals.deep_copy_errors.filter(|errors| *errors > 0) {
            write!(f, "; {} failed", count(errors))?;
        }
        writeln!(f)?;
        for row in &self.0.deep_copies {
            writeln!(
                f,
                "    {} on {} ({}), {}: {} skbs, {}",
                row.cause,
                row.device.name,
                row.device.kind,
                row.api.as_str(),
                count(row.copies),
                bytes(row.bytes)
            )?;
        }
        if let (Some(skbs @ 1..), Some(payload)) = (totals.second_copies, totals.second_copy_bytes)
        {
            writeln!(
                f,
                "    and {} skbs, {} of sends that were copied already",
                count(skbs),
                bytes(payload)
            )?;
        }
        Ok(())
    }

    fn devices(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.0.devices {
            writeln!(
                f,
                "  device       {} ({}): zero-copy payload received {}, transmitted {}",
                row.device.name,
                row.device.kind,
                bytes(row.received.1),
                bytes(row.transmitted.1)
            )?;
        }
        Ok(())
    }

    fn flows(&self, f: &mut fmt::Formatter<'_>, totals: &Totals) -> fmt::Result {
        let flows = &self.0.flows;
        if flows.is_empty() {
            return Ok(());
        }
        for flow in flows {
            write!(
                f,
                "  generator    {}: {} sends, {}; {} copied, {} zero-copy",
                flow.spec,
                count(flow.sends),
                bytes(flow.bytes),
                count(flow.copied),
                count(flow.zerocopy)
            )?;
            if let Some(delivered) = flow.delivered_bytes {
                write!(f, "; {} delivered", bytes(delivered))?;
            }
            match &flow.error {
                Some(error) => writeln!(f, "; ended early: {error}")?,
                None => writeln!(f)?,
            }
        }
        if self.0.tier.is_none() {
            return Ok(());
        }
        let ours = |part: fn(&super::Flow) -> u64| -> u64 { flows.iter().map(part).sum() };
        for (what, generator, kernel) in [
            ("sends", ours(|flow| flow.sends), totals.attempts),
            ("copied", ours(|flow| flow.copied), totals.copied),
            ("zero-copy", ours(|flow| flow.zerocopy), totals.zerocopy),
        ] {
            let verdict = match kernel.cmp(&generator) {
                std::cmp::Ordering::Equal => "equal".to_owned(),
                std::cmp::Ordering::Greater => {
                    format!(
                        "{} more, other senders of this host are counted too",
                        count(kernel - generator)
                    )
                }
                std::cmp::Ordering::Less => format!("{} not seen", count(generator - kernel)),
            };
            writeln!(
                f,
                "    {what}: generator {}, kernel {}: {verdict}",
                count(generator),
                count(kernel)
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{Names, flow, snapshot};
    use super::*;
    use crate::snapshot::Method;

    #[test]
    fn everything_is_said_once() {
        let report = Report::new(snapshot(), Some(Method::Fentry), &Names, vec![flow()]);
        let text = Summary(&report).to_string();
        assert_eq!(
            text,
            "summary of 10s\n  \
             attempts     100 sends accepted, 4 refused\n  \
             completions  94 sends: 90 copied, 4 zero-copy\n    \
             msg_zerocopy tcp: 90 copied, 4 zero-copy\n  \
             deep copies  180 skbs, 900.0 kB; 1 failed\n    \
             local_delivery on lo (loopback), msg_zerocopy: 180 skbs, 900.0 kB\n  \
             device       lo (loopback): zero-copy payload received 900.0 kB, transmitted 900.0 kB\n  \
             generator    tcp4: 100 sends, 1.0 MB; 90 copied, 4 zero-copy; 940.0 kB delivered\n    \
             sends: generator 100, kernel 100: equal\n    \
             copied: generator 90, kernel 90: equal\n    \
             zero-copy: generator 4, kernel 4: equal\n"
        );
    }

    #[test]
    fn other_senders_and_blind_spots_are_told_apart() {
        let mut more = flow();
        more.sends = 90;
        more.copied = 91;
        let report = Report::new(snapshot(), Some(Method::Fentry), &Names, vec![more]);
        let text = Summary(&report).to_string();
        assert!(
            text.contains("sends: generator 90, kernel 100: 10 more, other"),
            "{text}"
        );
        assert!(
            text.contains("copied: generator 91, kernel 90: 1 not seen"),
            "{text}"
        );
    }

    #[test]
    fn a_bound_is_named() {
        let mut snapshot = snapshot();
        snapshot.probes[0].lost = 2;
        let report = Report::new(snapshot, Some(Method::Fentry), &Names, Vec::new());
        let text = Summary(&report).to_string();
        assert!(
            text.contains("lower bound  zerocopy_completions_total: complete lost 2 counts"),
            "{text}"
        );
    }
}
