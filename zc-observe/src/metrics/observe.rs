//! `zc_observe_`: the daemon itself, its probes and its maps.

use super::family::Family;
use crate::report::quality::{ATTEMPTS, MEASURED};
use crate::report::{Bound, Report};

/// What does not change while the daemon runs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Host {
    /// Kernel release, as `uname -r` prints it.
    pub kernel_release: String,
    /// Kernel version, as `uname -v` prints it.
    pub kernel_version: String,
    /// Machine, as `uname -m` prints it.
    pub machine: String,
}

impl Host {
    /// Asks the running kernel.
    ///
    /// # Errors
    /// When uname(2) fails.
    pub fn read() -> std::io::Result<Self> {
        let name = nix::sys::utsname::uname()?;
        Ok(Self {
            kernel_release: name.release().to_string_lossy().into_owned(),
            kernel_version: name.version().to_string_lossy().into_owned(),
            machine: name.machine().to_string_lossy().into_owned(),
        })
    }
}

pub(super) fn families(report: &Report, host: &Host) -> Vec<Family> {
    let mut families = Vec::from(probes(report));
    families.extend(maps(report));
    families.extend(bounds(report));
    families.extend(infos(host));
    families
}

fn probes(report: &Report) -> [Family; 5] {
    let mut info = Family::gauge(
        "zc_observe_probe_info",
        "1 for each probe: how it is attached, to what, and whether it is there. What a probe that is not attached would count has no samples.",
    );
    let mut hits = Family::counter(
        "zc_observe_probe_hits_total",
        "Runs of a probe that had something to count.",
    );
    let mut missed = Family::counter(
        "zc_observe_probe_missed_total",
        "Runs that the kernel did not deliver to a probe (recursion misses, kprobe misses). Absent where the kernel does not say.",
    );
    let mut lost = Family::counter(
        "zc_observe_probe_lost_total",
        "Counts that a probe lost because a map had no room or a field could not be read.",
    );
    let mut seconds = Family::counter(
        "zc_observe_probe_seconds_total",
        "CPU time of a probe. Absent unless the kernel's BPF statistics are on (kernel.bpf_stats_enabled).",
    );
    for probe in &report.probes {
        let labels = [
            ("probe", probe.name),
            (
                "method",
                probe.method.map_or("none", |method| method.as_str()),
            ),
            ("state", probe.state.as_str()),
            ("target", probe.target.as_deref().unwrap_or("none")),
        ];
        info.add(&labels, 1);
        if probe.state != crate::snapshot::ProbeState::Attached {
            continue;
        }
        let name = [("probe", probe.name)];
        hits.add(&name, probe.hits);
        missed.add_known(&name, probe.missed);
        lost.add(&name, probe.lost);
        if let Some(time) = probe.seconds {
            seconds.add_f64(&name, time.as_secs_f64());
        }
    }
    [info, hits, missed, lost, seconds]
}

fn maps(report: &Report) -> [Family; 3] {
    let mut entries = Family::gauge(
        "zc_observe_map_entries",
        "Entries in use of a map in the kernel.",
    );
    let mut capacity = Family::gauge(
        "zc_observe_map_capacity",
        "Entries that fit in a map in the kernel.",
    );
    let mut failures = Family::counter(
        "zc_observe_map_insert_failures_total",
        "Inserts into a map that failed; what depends on them is marked by zc_observe_lower_bound.",
    );
    for map in &report.maps {
        let labels = [("map", map.name)];
        if let Some(count) = map.entries {
            entries.add(&labels, count);
        }
        capacity.add(&labels, map.capacity);
        failures.add(&labels, map.failures);
    }
    [entries, capacity, failures]
}

fn bounds(report: &Report) -> [Family; 2] {
    let mut lower = Family::gauge(
        "zc_observe_lower_bound",
        "1 if this metric is a lower bound because hits were missed, counts lost or inserts failed; 0 if it is exact or absent.",
    );
    let mut upper = Family::gauge(
        "zc_observe_upper_bound",
        "1 if this metric is an upper bound because sends that failed after they were accepted could not be taken out.",
    );
    if report.tier.is_some() {
        for metric in MEASURED.iter().copied().flatten() {
            let labels = [("metric", *metric)];
            lower.add(&labels, u64::from(report.quality.is(metric, Bound::Lower)));
            if ATTEMPTS.contains(metric) {
                upper.add(&labels, u64::from(report.quality.is(metric, Bound::Upper)));
            }
        }
    }
    [lower, upper]
}

fn infos(host: &Host) -> [Family; 2] {
    let mut kernel = Family::gauge("zc_observe_kernel_info", "1; the kernel that is observed.");
    kernel.add(
        &[
            ("release", host.kernel_release.as_str()),
            ("version", host.kernel_version.as_str()),
            ("machine", host.machine.as_str()),
        ],
        1,
    );
    let mut build = Family::gauge("zc_observe_build_info", "1; the daemon that observes.");
    build.add(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    [kernel, build]
}
