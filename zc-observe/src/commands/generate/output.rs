//! Totals for people, for scripts that know the kernel's test, and as JSON.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use zc_observe_ebpf::FIRST_BUCKET_LOG2;

use crate::cli::generate::Format;
use crate::generator::{Engine, Spec, Totals};
use crate::report::unit::{bytes, count, percent};
use crate::snapshot::Histogram;

/// Sends whose notification is not read.
pub(super) fn pending(spec: &Spec, totals: &Totals) -> u64 {
    match spec.engine {
        Engine::Copy => 0,
        Engine::Zerocopy => totals.sends - totals.completions(),
    }
}

/// How to print.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) spec: Spec,
    pub(super) format: Format,
}

/// Totals as JSON. All times are in seconds.
#[derive(Debug, Serialize)]
struct Json {
    schema: u32,
    /// `total` at the end, `interval` for what was counted so far.
    kind: &'static str,
    spec: String,
    transport: String,
    family: u8,
    engine: String,
    size: usize,
    elapsed_seconds: f64,
    sends: u64,
    bytes: u64,
    completions_zerocopy: u64,
    completions_copied: u64,
    notifications: u64,
    unexpected: u64,
    refused: u64,
    pending: u64,
    /// Not known with `connect`.
    delivered_bytes: Option<u64>,
    retransmitted_bytes: u64,
    verify_failures: Option<u64>,
    bytes_per_second: f64,
    sender_cpu_seconds: f64,
    receiver_cpu_seconds: f64,
    cpu_seconds_per_gb: Option<f64>,
    copied_share: Option<f64>,
    release: Release,
}

#[derive(Debug, Serialize)]
struct Release {
    count: u64,
    sum_seconds: f64,
    /// Upper bounds of the buckets that are not empty, and their counts.
    buckets: Vec<(f64, u64)>,
}

fn bound(index: usize) -> f64 {
    2_f64.powi(i32::try_from(index).unwrap_or(i32::MAX) + FIRST_BUCKET_LOG2 as i32) / 1e9
}

fn release(times: &Histogram) -> Release {
    let filled = times.buckets.iter().enumerate();
    Release {
        count: times.count,
        sum_seconds: times.sum.as_secs_f64(),
        buckets: filled
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| (bound(index), *count))
            .collect(),
    }
}

impl Output {
    /// Bytes that the run moved: what arrived, or was sent where we do not see that.
    fn moved(&self, totals: &Totals) -> u64 {
        if self.spec.connect.is_some() {
            totals.bytes
        } else {
            totals.delivered_bytes
        }
    }

    fn cpu_per_gb(&self, totals: &Totals) -> Option<f64> {
        let cpu = (totals.sender_cpu + totals.receiver_cpu).as_secs_f64();
        let moved = self.moved(totals);
        (moved > 0).then(|| cpu * 1e9 / moved as f64)
    }

    /// The end of a run.
    pub(super) fn last(&self, totals: &Totals) -> String {
        match self.format {
            Format::Table => self.table(totals),
            Format::Classic => self.classic(totals),
            Format::Json => self.json("total", totals),
        }
    }

    /// One line for an interval.
    pub(super) fn line(&self, before: &Totals, now: &Totals) -> String {
        if self.format == Format::Json {
            return self.json("interval", now);
        }
        let time = now.elapsed.saturating_sub(before.elapsed);
        // A datagram of two sends may be taken back.
        let moved = self.moved(now).saturating_sub(self.moved(before));
        format!(
            "{:>8.1}s  {} sends  {}  {} copied  {} zero-copy  {} refused  {} pending",
            now.elapsed.as_secs_f64(),
            count(now.sends - before.sends),
            per_second(moved, time),
            count(now.completions_copied - before.completions_copied),
            count(now.completions_zerocopy - before.completions_zerocopy),
            count(now.refused - before.refused),
            count(pending(&self.spec, now)),
        )
    }

    fn table(&self, totals: &Totals) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        let mut row = |name: &str, value: String| {
            table.add_row([name.to_owned(), value]);
        };
        let completions = totals.completions();
        row("spec", self.spec.to_string());
        row("sends", count(totals.sends));
        row("payload sent", bytes(totals.bytes));
        if self.spec.engine == Engine::Zerocopy && self.spec.listen.is_none() {
            let outcome = |part: u64| format!("{} ({})", count(part), percent(part, completions));
            row("completed copied", outcome(totals.completions_copied));
            row("completed zero-copy", outcome(totals.completions_zerocopy));
            row("pending", count(pending(&self.spec, totals)));
            row("refused (repeated)", count(totals.refused));
            row("notifications", count(totals.notifications));
        }
        if totals.unexpected > 0 {
            row("of no accepted send", count(totals.unexpected));
        }
        if self.spec.connect.is_none() {
            row("payload received", bytes(totals.delivered_bytes));
        }
        if self.spec.verify && self.spec.connect.is_none() {
            row("arrived changed", count(totals.verify_failures));
        }
        row("time", format!("{:.3} s", totals.elapsed.as_secs_f64()));
        row("throughput", per_second(self.moved(totals), totals.elapsed));
        row(
            "CPU of senders",
            format!("{:.3} s", totals.sender_cpu.as_secs_f64()),
        );
        row(
            "CPU of receivers",
            format!("{:.3} s", totals.receiver_cpu.as_secs_f64()),
        );
        if let Some(cost) = self.cpu_per_gb(totals) {
            row("CPU per GB", format!("{cost:.3} s"));
        }
        if totals.release.count > 0 {
            let mean = totals.release.sum.as_secs_f64() / totals.release.count as f64;
            row(
                "send to notification",
                format!("{:.1} µs (mean)", mean * 1e6),
            );
        }
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.trim_fmt()
    }

    /// The fields of the kernel's msg_zerocopy test: megabytes are 2^20 bytes, and zc is y
    /// if no send was copied.
    fn classic(&self, totals: &Totals) -> String {
        let mut lines = Vec::new();
        if self.spec.listen.is_none() {
            let clean = totals.completions() > 0 && totals.completions_copied == 0;
            lines.push(format!(
                "tx={} ({} MB) txc={} zc={}",
                totals.sends,
                totals.bytes >> 20,
                totals.completions(),
                if clean { 'y' } else { 'n' }
            ));
        }
        if self.spec.connect.is_none() {
            lines.push(format!(
                "rx={} ({} MB)",
                totals.delivered,
                totals.delivered_bytes >> 20
            ));
        }
        lines.join("\n")
    }

    fn json(&self, kind: &'static str, totals: &Totals) -> String {
        let completions = totals.completions();
        let elapsed = totals.elapsed.as_secs_f64();
        let json = Json {
            schema: 1,
            kind,
            spec: self.spec.to_string(),
            transport: self.spec.transport.to_string(),
            family: match self.spec.family {
                crate::generator::Family::V4 => 4,
                crate::generator::Family::V6 => 6,
            },
            engine: self.spec.engine.to_string(),
            size: self.spec.size,
            elapsed_seconds: elapsed,
            sends: totals.sends,
            bytes: totals.bytes,
            completions_zerocopy: totals.completions_zerocopy,
            completions_copied: totals.completions_copied,
            notifications: totals.notifications,
            unexpected: totals.unexpected,
            refused: totals.refused,
            pending: pending(&self.spec, totals),
            delivered_bytes: self
                .spec
                .connect
                .is_none()
                .then_some(totals.delivered_bytes),
            retransmitted_bytes: totals.retransmitted_bytes,
            verify_failures: self.spec.verify.then_some(totals.verify_failures),
            bytes_per_second: if elapsed > 0.0 {
                self.moved(totals) as f64 / elapsed
            } else {
                0.0
            },
            sender_cpu_seconds: totals.sender_cpu.as_secs_f64(),
            receiver_cpu_seconds: totals.receiver_cpu.as_secs_f64(),
            cpu_seconds_per_gb: self.cpu_per_gb(totals),
            copied_share: (completions > 0)
                .then(|| totals.completions_copied as f64 / completions as f64),
            release: release(&totals.release),
        };
        serde_json::to_string(&json).unwrap_or_else(|error| {
            tracing::error!("cannot write JSON: {error}");
            String::new()
        })
    }
}

fn per_second(moved: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let rate = if seconds > 0.0 {
        moved as f64 / seconds
    } else {
        0.0
    };
    format!("{}/s", bytes(rate as u64))
}
