//! `zc_generator_`: our own traffic, as the application saw it.

use super::family::Family;
use crate::report::Flow;

/// Families of our own traffic; label `flow` is the spec as typed.
pub(super) fn families(flows: &[Flow]) -> Vec<Family> {
    let mut sends = Family::counter(
        "zc_generator_sends_total",
        "Sends of the generator that the kernel accepted. In sends.",
    );
    let mut bytes = Family::counter(
        "zc_generator_bytes_total",
        "Payload bytes of the generator's accepted sends.",
    );
    let mut completions = Family::counter(
        "zc_generator_completions_total",
        "Completions that the generator read from its sockets' error queues, by their flag. In sends.",
    );
    let mut refused = Family::counter(
        "zc_generator_refused_total",
        "Sends of the generator that the kernel refused at a zero-copy limit (ENOBUFS); each is repeated later. In sends.",
    );
    let mut delivered = Family::counter(
        "zc_generator_delivered_bytes_total",
        "Payload bytes that the generator's receivers took. Absent for flows to a receiver that is not ours.",
    );
    let mut failures = Family::counter(
        "zc_generator_verify_failures_total",
        "Messages whose payload arrived changed. Absent for flows that do not verify.",
    );
    let mut release = Family::histogram(
        "zc_generator_release_seconds",
        "Time from a send to its completion, as the generator read it.",
    );
    for flow in flows {
        let name = ("flow", flow.spec.as_str());
        sends.add(&[name], flow.sends);
        bytes.add(&[name], flow.bytes);
        completions.add(&[name, ("outcome", "copied")], flow.copied);
        completions.add(&[name, ("outcome", "zerocopy")], flow.zerocopy);
        refused.add(&[name], flow.refused);
        if let Some(bytes) = flow.delivered_bytes {
            delivered.add(&[name], bytes);
        }
        failures.add_known(&[name], flow.verify_failures);
        if let Some(times) = &flow.release {
            release.add_times(&[name], times);
        }
    }
    vec![
        sends,
        bytes,
        completions,
        refused,
        delivered,
        failures,
        release,
    ]
}
