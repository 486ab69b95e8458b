//! What the probes themselves did, missed and lost, and what is refused.

use std::collections::HashMap;

use aya::Ebpf;
use aya::maps::PerCpuArray;
use zc_observe_ebpf::{Probe, ProbeVal};

use super::Live;
use super::missed;
use super::plan::Plan;
use super::points::POINTS;
use crate::snapshot::{Method, ProbeState, ProbeStatus};

/// The links of the attached kprobes.
pub(super) fn links(ebpf: &Ebpf, plan: &Plan) -> HashMap<&'static str, u32> {
    POINTS
        .iter()
        .filter_map(|point| plan.outcome(point.probe).attached.as_ref())
        .flat_map(|attached| attached.programs.iter().copied())
        .filter_map(|name| Some((name, missed::link_of(ebpf.program(name)?)?)))
        .collect()
}

/// All points with their accounts.
pub(super) fn probes(plan: &Plan, live: Option<&Live>) -> Vec<ProbeStatus> {
    let accounts = live
        .and_then(|live| live.ebpf.map("PROBES"))
        .and_then(|map| PerCpuArray::<_, ProbeVal>::try_from(map).ok());
    POINTS
        .iter()
        .map(|point| {
            let outcome = plan.outcome(point.probe);
            let mut status = ProbeStatus {
                name: point.name,
                purpose: point.purpose,
                method: outcome.method,
                target: outcome.attached.as_ref().map(|one| one.target.clone()),
                state: outcome.state.clone(),
                hits: 0,
                missed: None,
                lost: 0,
                seconds: None,
            };
            if let Some(Ok(values)) = accounts
                .as_ref()
                .map(|accounts| accounts.get(&(point.probe as u32), 0))
            {
                status.hits = values.iter().map(|value| value.hits).sum();
                status.lost = values
                    .iter()
                    .map(|value| value.lost + value.unreadable)
                    .sum();
            }
            if let (Some(live), Some(attached)) = (live, &outcome.attached) {
                kept(&mut status, live, &attached.programs);
            }
            status
        })
        .collect()
}

/// Adds what the kernel keeps per program.
fn kept(status: &mut ProbeStatus, live: &Live, programs: &[&'static str]) {
    let mut missed = Some(0);
    for name in programs {
        let Some(program) = live.ebpf.program(name) else {
            continue;
        };
        let one = missed::of(program, live.links.get(name).copied());
        missed = missed.zip(one.missed).map(|(a, b)| a + b);
        status.seconds = match (status.seconds, one.time) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
    status.missed = missed;
}

/// One line: what is refused and what that costs.
pub(super) fn refusal(plan: &Plan, live: Option<&Live>) -> Option<String> {
    live?;
    // The last reason of each method: better methods were tried first.
    let mut reasons = Vec::<(Method, &str)>::new();
    for (method, reason) in &plan.refused {
        if !reasons.iter().any(|(known, _)| known == method) {
            reasons.push((*method, reason));
        }
    }
    let lost: Vec<&str> = POINTS
        .iter()
        .filter(|point| matches!(plan.outcome(point.probe).state, ProbeState::Refused { .. }))
        .map(|point| point.purpose)
        .collect();
    if reasons.is_empty() {
        return None;
    }
    let reasons: Vec<&str> = reasons.into_iter().map(|(_, reason)| reason).collect();
    let cost = if !plan.has(Probe::CopyUbufs) && !plan.has(Probe::Complete) {
        "that costs deep copies with their causes and times, refusals, bytes of completions and \
         everything of io_uring"
            .to_owned()
    } else if lost.is_empty() {
        "nothing is lost by it, a worse method does the same".to_owned()
    } else {
        format!("that costs {}", lost.join(", "))
    };
    Some(format!("refused: {}; {cost}", reasons.join("; ")))
}
