//! What the tests against a kernel share: the observer, differences between snapshots, and
//! network namespaces with devices in them.

pub(crate) mod net;
pub(crate) mod uring;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use zc_observe::causes::matcher::classify_copies;
use zc_observe::generator::{Counters, Spec, Totals, run};
use zc_observe::kernel::host::Version;
use zc_observe::probes::{Mode, Observer, Options};
use zc_observe::report::Quality;
use zc_observe::snapshot::{Method, Outcome, Snapshot};

/// The probes asked for by the environment, or the best.
pub(crate) fn mode() -> Mode {
    match std::env::var("ZC_OBSERVE_PROBES").as_deref() {
        Ok("fentry") => Mode::Fentry,
        Ok("kprobe") => Mode::Kprobe,
        Ok("tracepoint") => Mode::Tracepoint,
        Ok("auto") | Err(_) => Mode::Auto,
        Ok(other) => panic!("ZC_OBSERVE_PROBES={other}"),
    }
}

/// Sends per flow: in a guest, where the kind of probe is named, everything is slower.
pub(crate) fn sends() -> u64 {
    if std::env::var_os("ZC_OBSERVE_PROBES").is_some() {
        2_500
    } else {
        25_000
    }
}

/// Attaches, and insists on the method that was asked for.
pub(crate) fn observer() -> Observer {
    let mode = mode();
    let observer = Observer::attach(&Options { mode }).unwrap();
    let wanted = match mode {
        Mode::Fentry => Some(Method::Fentry),
        Mode::Kprobe => Some(Method::Kprobe),
        Mode::Tracepoint => Some(Method::Tracepoint),
        Mode::Auto | Mode::Off => observer.tier(),
    };
    assert_eq!(observer.tier(), wanted, "{:?}", observer.refusal());
    for probe in observer.probes() {
        if let (Some(method), Some(wanted)) = (probe.method, wanted) {
            assert_eq!(method, wanted, "{}", probe.name);
        }
    }
    observer
}

/// Runs a flow to its end.
pub(crate) fn send(spec: &Spec) -> Totals {
    run(
        spec,
        &Arc::new(Counters::default()),
        &AtomicBool::new(false),
    )
    .unwrap_or_else(|error| panic!("{spec}: {error}"))
}

/// What happened between two snapshots.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) accepted: u64,
    pub(crate) attempt_bytes: Option<u64>,
    pub(crate) refused: Option<u64>,
    pub(crate) zerocopy: u64,
    pub(crate) copied: u64,
    pub(crate) completed_bytes: Option<u64>,
    /// Cause, device kind, skbs, bytes; second copies left out.
    pub(crate) copies: Vec<(String, String, u64, u64)>,
    pub(crate) second_copies: u64,
    pub(crate) copy_errors: u64,
    /// Device kind, zero-copy bytes received and transmitted.
    pub(crate) devices: Vec<(String, u64, u64)>,
    /// Sums over the senders: sends completed by outcome, deep copies, their bytes.
    pub(crate) senders: (u64, u64, u64, u64),
    /// Whether a sender other than this process has any of it.
    pub(crate) strangers: u64,
}

impl Seen {
    pub(crate) fn copied_bytes(&self) -> u64 {
        self.copies.iter().map(|(.., bytes)| bytes).sum()
    }

    pub(crate) fn copied_skbs(&self) -> u64 {
        self.copies.iter().map(|(_, _, skbs, _)| skbs).sum()
    }
}

/// Snapshots before and after, as differences.
pub(crate) fn watch<T>(observer: &mut Observer, work: impl FnOnce() -> T) -> (T, Seen) {
    let kernel = observer.kernel().unwrap();
    let before = observer.snapshot().unwrap();
    let result = work();
    let after = observer.snapshot().unwrap();
    (result, difference(&before, &after, kernel))
}

fn difference(before: &Snapshot, after: &Snapshot, kernel: Version) -> Seen {
    let (old, mut new) = (total(before, kernel), total(after, kernel));
    let less = |new: Option<u64>, old: Option<u64>| new.map(|new| new - old.unwrap_or(0));
    new.accepted -= old.accepted;
    new.attempt_bytes = less(new.attempt_bytes, old.attempt_bytes);
    new.refused = less(new.refused, old.refused);
    new.zerocopy -= old.zerocopy;
    new.copied -= old.copied;
    new.completed_bytes = less(new.completed_bytes, old.completed_bytes);
    new.second_copies -= old.second_copies;
    new.copy_errors -= old.copy_errors;
    new.strangers -= old.strangers;
    for (cause, kind, skbs, bytes) in &old.copies {
        let entry = new
            .copies
            .iter_mut()
            .find(|new| new.0 == *cause && new.1 == *kind);
        let entry = entry.unwrap();
        (entry.2, entry.3) = (entry.2 - skbs, entry.3 - bytes);
    }
    new.copies.retain(|entry| entry.2 > 0);
    for (kind, received, transmitted) in &old.devices {
        let entry = new.devices.iter_mut().find(|new| new.0 == *kind).unwrap();
        (entry.1, entry.2) = (entry.1 - received, entry.2 - transmitted);
    }
    new.devices.retain(|entry| entry.1 + entry.2 > 0);
    let (a, b) = (new.senders, old.senders);
    new.senders = (a.0 - b.0, a.1 - b.1, a.2 - b.2, a.3 - b.3);
    new
}

fn total(snapshot: &Snapshot, kernel: Version) -> Seen {
    let mut seen = Seen::default();
    for attempts in &snapshot.attempts {
        seen.accepted += attempts.accepted;
        if let Some(bytes) = attempts.bytes {
            *seen.attempt_bytes.get_or_insert(0) += bytes;
        }
        if let Some(refused) = attempts.refused {
            *seen.refused.get_or_insert(0) += refused;
        }
    }
    for completions in &snapshot.completions {
        match completions.outcome {
            Outcome::Zerocopy => seen.zerocopy += completions.ids,
            Outcome::Copied => seen.copied += completions.ids,
        }
        if let Some(bytes) = completions.bytes {
            *seen.completed_bytes.get_or_insert(0) += bytes;
        }
    }
    let devices = zc_observe::attribute::devices::Devices::new(&snapshot.devices);
    for copies in &snapshot.deep_copies {
        seen.copy_errors += copies.errors;
        if copies.again {
            seen.second_copies += copies.copies;
            continue;
        }
        let cause = classify_copies(copies, kernel).cause.id.to_owned();
        let kind = devices.labels(copies.device).1.to_string();
        let found = seen
            .copies
            .iter_mut()
            .find(|one| one.0 == cause && one.1 == kind);
        if let Some(one) = found {
            (one.2, one.3) = (one.2 + copies.copies, one.3 + copies.bytes);
        } else {
            seen.copies.push((cause, kind, copies.copies, copies.bytes));
        }
    }
    for bytes in &snapshot.device_bytes {
        let kind = devices.labels(Some(bytes.device)).1.to_string();
        let (received, transmitted) = (bytes.received.1, bytes.transmitted.1);
        if let Some(one) = seen.devices.iter_mut().find(|one| one.0 == kind) {
            (one.1, one.2) = (one.1 + received, one.2 + transmitted);
        } else {
            seen.devices.push((kind, received, transmitted));
        }
    }
    for sender in &snapshot.senders {
        // Before 6.3 the tracepoint tier knows no more than a socket's inode.
        let mine = sender.key.tgid == std::process::id()
            || (kernel < Version(6, 3) && sender.key.inode != 0);
        if !mine {
            seen.strangers += sender.zerocopy.0 + sender.copied.0 + sender.deep_copies.0;
        }
        let sum = &mut seen.senders;
        sum.0 += sender.zerocopy.0;
        sum.1 += sender.copied.0;
        sum.2 += sender.deep_copies.0;
        sum.3 += sender.deep_copies.1;
    }
    seen
}

/// Identity 6: nothing was lost, and what the kernel did not deliver to a probe marks the
/// numbers that depend on it.
pub(crate) fn assert_nothing_lost(observer: &mut Observer) {
    let snapshot = observer.snapshot().unwrap();
    let old_kprobes =
        observer.tier() == Some(Method::Kprobe) && observer.kernel() < Some(Version(6, 7));
    let quality = Quality::judge(&snapshot.probes, &snapshot.maps);
    for probe in &snapshot.probes {
        assert_eq!(probe.lost, 0, "{} lost counts", probe.name);
        if probe.method.is_none() {
            continue;
        }
        match probe.missed {
            Some(0) => {}
            Some(missed) => {
                let note = format!("the kernel did not deliver {missed} hits to {}", probe.name);
                println!("{note}");
                let marked = quality
                    .bounds()
                    .any(|bound| format!("{bound:?}").contains(&note));
                assert!(marked, "{note}, and nothing is marked");
            }
            // Kernels do not say before 6.7, and we do not claim to know.
            None => assert!(old_kprobes, "{}: missed hits unknown", probe.name),
        }
    }
    for map in &snapshot.maps {
        assert_eq!(map.failures, 0, "failed inserts into {}", map.name);
    }
}
