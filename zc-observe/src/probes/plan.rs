//! What is attached with which method: the best that this kernel permits, group by group.

use std::collections::BTreeMap;

use aya::Ebpf;
use zc_observe_ebpf::Probe;

use super::Mode;
use super::attach::{self, Attached};
use super::load::Facts;
use super::points::{self, Group, POINTS, Point};
use crate::snapshot::{Method, ProbeState};

/// What became of a point.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) state: ProbeState,
    pub(super) method: Option<Method>,
    pub(super) attached: Option<Attached>,
}

impl Outcome {
    const OFF: Self = Self {
        state: ProbeState::Off,
        method: None,
        attached: None,
    };
}

/// What became of all points.
#[derive(Debug)]
pub(super) struct Plan {
    outcomes: BTreeMap<Probe, Outcome>,
    /// What was refused with a better method before a worse one was taken.
    pub(super) refused: Vec<(Method, String)>,
}

impl Plan {
    /// Nothing is attached.
    pub(super) const fn off() -> Self {
        Self {
            outcomes: BTreeMap::new(),
            refused: Vec::new(),
        }
    }

    /// Attaches what the mode asks for.
    pub(super) fn attach(ebpf: &mut Ebpf, facts: &Facts, mode: Mode) -> Self {
        let mut plan = Self::off();
        let methods: &[Method] = match mode {
            Mode::Auto => &[Method::Fentry, Method::Kprobe],
            Mode::Fentry => &[Method::Fentry],
            Mode::Kprobe => &[Method::Kprobe],
            Mode::Tracepoint | Mode::Off => &[],
        };
        let copies = plan.group(ebpf, facts, &points::DEEP_COPY, methods);
        plan.group(ebpf, facts, &points::PULL_TAIL, methods);
        plan.group(ebpf, facts, &points::IO_URING, methods);
        // Both would count the same sends: it is one or the other.
        if !plan.group(ebpf, facts, &points::MSG_ZEROCOPY, methods) {
            plan.group(ebpf, facts, &points::QUEUE, &[Method::Tracepoint]);
        }
        if !copies {
            plan.group(ebpf, facts, &points::DEVICES, &[Method::Tracepoint]);
        }
        plan
    }

    /// What became of a point.
    pub(super) fn outcome(&self, probe: Probe) -> &Outcome {
        self.outcomes.get(&probe).unwrap_or(&Outcome::OFF)
    }

    /// Whether a point is attached.
    pub(super) fn has(&self, probe: Probe) -> bool {
        self.outcome(probe).state == ProbeState::Attached
    }

    /// Attaches a group with the first method that does. Says whether one did.
    fn group(&mut self, ebpf: &mut Ebpf, facts: &Facts, group: &Group, methods: &[Method]) -> bool {
        methods
            .iter()
            .any(|&method| self.group_with(ebpf, facts, group, method))
    }

    fn group_with(
        &mut self,
        ebpf: &mut Ebpf,
        facts: &Facts,
        group: &Group,
        method: Method,
    ) -> bool {
        for &probe in group.required {
            let mut parts = vec![probe];
            if probe == Probe::Attempt && method == Method::Kprobe {
                // Its return does not show the arguments.
                parts.insert(0, Probe::AttemptEntry);
            }
            if parts
                .into_iter()
                .all(|part| self.point(ebpf, facts, part, method))
            {
                continue;
            }
            for &probe in group.required.iter().chain(&[Probe::AttemptEntry]) {
                if let Some(attached) = self.outcomes.get(&probe).and_then(|o| o.attached.clone()) {
                    attach::detach(ebpf, &attached);
                    self.outcomes.insert(probe, Outcome::OFF);
                }
            }
            return false;
        }
        for &probe in group.optional {
            self.point(ebpf, facts, probe, method);
        }
        true
    }

    fn point(&mut self, ebpf: &mut Ebpf, facts: &Facts, probe: Probe, method: Method) -> bool {
        let Some(point) = POINTS.get(probe as usize) else {
            return false;
        };
        if !point.programs.iter().any(|one| one.method == method) {
            return false;
        }
        let outcome = match attach_point(ebpf, facts, point, method) {
            Ok(attached) => Outcome {
                state: ProbeState::Attached,
                method: Some(method),
                attached: Some(attached),
            },
            Err(state) => {
                if let ProbeState::Refused { reason } = &state {
                    self.refused.push((method, reason.clone()));
                }
                Outcome {
                    state,
                    ..Outcome::OFF
                }
            }
        };
        let attached = outcome.attached.is_some();
        self.outcomes.insert(probe, outcome);
        attached
    }
}

/// Attaches a point, unless what it reads is not known of this kernel.
fn attach_point(
    ebpf: &mut Ebpf,
    facts: &Facts,
    point: &Point,
    method: Method,
) -> Result<Attached, ProbeState> {
    if matches!(point.probe, Probe::ConsumeSkb | Probe::KfreeSkb) && facts.kernel.sock_ofree == 0 {
        return Err(ProbeState::Refused {
            reason: "the address of sock_ofree, by which notifications are told from packets, is hidden \
                     (kernel.kptr_restrict)"
                .into(),
        });
    }
    attach::attach(ebpf, facts, point, method)
}
