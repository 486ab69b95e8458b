//! A report as Prometheus metrics. Reading the kernel is somebody else's work: this
//! is a pure function of the report, and what a series has shown before.

mod exporter;
mod family;
mod floor;
mod generator;
mod observe;
mod zerocopy;

pub use exporter::{Exporter, Limits};
pub use observe::Host;
pub use prometheus::TEXT_FORMAT;

use prometheus::proto::MetricFamily;

use crate::report::Report;

/// All families of a report, in a fixed order; those without a sample are left out.
#[must_use]
pub fn families(report: &Report, host: &Host) -> Vec<MetricFamily> {
    let mut families = zerocopy::families(report);
    families.extend(generator::families(&report.flows));
    families.extend(observe::families(report, host));
    families
        .into_iter()
        .filter_map(family::Family::build)
        .collect()
}

#[cfg(test)]
mod tests;
