//! Canary flows from their specs.

use std::sync::Arc;

use super::canary::Traffic;
use crate::error::Failure;
use crate::generator::{self, Counters, Spec};
use crate::report::Flow;

/// Payload bytes a second of a flow that names no rate.
const DEFAULT_RATE: u64 = 1_000_000;

/// A flow from its spec.
pub(super) fn parse(text: &str) -> Result<Traffic, Failure> {
    let mut spec: Spec = text
        .parse()
        .map_err(|error| Failure::usage(format!("--generate {text}: {error}")))?;
    spec.rate.get_or_insert(DEFAULT_RATE);
    let counters = Arc::new(Counters::default());
    let (counted, verify) = (counters.clone(), spec.verify);
    let ours = spec.connect.is_none();
    Ok(Traffic {
        spec: text.to_owned(),
        read: Box::new(move || flow(&counted, verify, ours)),
        run: Box::new(move |stop| {
            generator::run(&spec, &counters, stop)
                .map(drop)
                .map_err(|error| error.to_string())
        }),
    })
}

fn flow(counters: &Counters, verify: bool, ours: bool) -> Flow {
    let totals = counters.read();
    Flow {
        // Named by whoever reads it.
        spec: String::new(),
        sends: totals.sends,
        bytes: totals.bytes,
        zerocopy: totals.completions_zerocopy,
        copied: totals.completions_copied,
        refused: totals.refused,
        delivered_bytes: ours.then_some(totals.delivered_bytes),
        verify_failures: verify.then_some(totals.verify_failures),
        release: (totals.release.count > 0).then_some(totals.release),
        error: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Exit;

    #[test]
    fn a_wrong_spec_is_a_wrong_command_line() {
        let failure = parse("tcp4:speed=1").unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.message.contains("tcp4:speed=1: 'speed'"));
    }

    #[test]
    fn a_flow_counts_what_it_sends() {
        let traffic = parse("udp4:count=3,rate=1GB/s,verify").unwrap();
        (traffic.run)(&std::sync::atomic::AtomicBool::new(false)).unwrap();
        let flow = (traffic.read)();
        assert_eq!((flow.sends, flow.copied, flow.zerocopy), (3, 3, 0));
        assert_eq!((flow.bytes, flow.delivered_bytes), (4200, Some(4200)));
        assert_eq!(flow.verify_failures, Some(0));
        assert_eq!(flow.release.map(|times| times.count), Some(3));
    }
}
