//! The observer: attaches the programs that this kernel permits and reads their maps.

mod accounts;
mod attach;
mod load;
mod missed;
mod plan;
pub mod points;
mod read;

use std::collections::HashMap;
use std::time::SystemTime;

use aya::Ebpf;
use aya::maps::MapError;
use aya_log::EbpfLogger;
use clap::ValueEnum;
use zc_observe_ebpf::Probe;

use crate::kernel::host::Version;
use crate::snapshot::{Method, ProbeStatus, Snapshot};
use load::Facts;
use plan::Plan;

/// Best method that probes may use.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Mode {
    /// The best that this kernel permits, probe by probe.
    Auto,
    /// fentry and fexit, then tracepoints.
    Fentry,
    /// kprobe and kretprobe, then tracepoints.
    Kprobe,
    /// Raw tracepoints only.
    Tracepoint,
    /// None.
    Off,
}

/// What to attach.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Best method.
    pub mode: Mode,
}

/// Why nothing could be attached. One sentence each.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The host does not permit it.
    #[error("{0}")]
    NotPermitted(String),
    /// Something else went wrong.
    #[error("{0}")]
    Failed(String),
}

impl AttachError {
    /// Whether the host does not permit it.
    #[must_use]
    pub const fn exit_not_permitted(&self) -> bool {
        matches!(self, Self::NotPermitted(_))
    }
}

/// Why the maps could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The kernel refused.
    #[error("cannot read the map {map}: {error}")]
    Map {
        /// The map.
        map: &'static str,
        /// What the kernel said.
        error: MapError,
    },
    /// The object has no such map.
    #[error("the programs have no map {map}: this build is broken")]
    NoMap {
        /// The map.
        map: &'static str,
    },
}

/// Attached probes. Dropping it detaches them.
#[derive(Debug)]
pub struct Observer {
    since: SystemTime,
    plan: Plan,
    /// `None` if nothing was asked for.
    live: Option<Live>,
}

/// What is in the kernel.
struct Live {
    ebpf: Ebpf,
    facts: Facts,
    logger: Option<EbpfLogger<&'static dyn log::Log>>,
    /// Kprobe links, by program.
    links: HashMap<&'static str, u32>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("kernel", &self.facts.host.release)
            .finish_non_exhaustive()
    }
}

impl Observer {
    /// Attaches.
    ///
    /// # Errors
    /// When the host does not permit it, or permits no probe at all.
    pub fn attach(options: &Options) -> Result<Self, AttachError> {
        if options.mode == Mode::Off {
            return Ok(Self {
                since: SystemTime::now(),
                plan: Plan::off(),
                live: None,
            });
        }
        let facts = Facts::read()?;
        let mut ebpf = facts.load()?;
        read::prepare(&mut ebpf).map_err(|error| AttachError::Failed(error.to_string()))?;
        // There is no log without the programs that write it.
        let logger = EbpfLogger::init(&mut ebpf).ok();
        let plan = Plan::attach(&mut ebpf, &facts, options.mode);
        if !points::POINTS.iter().any(|point| plan.has(point.probe)) {
            let reasons: Vec<&str> = plan.refused.iter().map(|(_, reason)| &**reason).collect();
            return Err(AttachError::NotPermitted(format!(
                "this kernel permits no probe at all: {}",
                reasons.last().unwrap_or(&"none of the functions exists")
            )));
        }
        let links = accounts::links(&ebpf, &plan);
        Ok(Self {
            since: SystemTime::now(),
            plan,
            live: Some(Live {
                ebpf,
                facts,
                logger,
                links,
            }),
        })
    }

    /// Reads the maps.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn snapshot(&mut self) -> Result<Snapshot, ReadError> {
        let mut snapshot = Snapshot::empty(self.since);
        snapshot.probes = self.probes();
        if let Some(live) = &mut self.live {
            if let Some(logger) = &mut live.logger {
                logger.flush();
            }
            if let Err(error) = live.facts.symbols.refresh() {
                tracing::warn!("{error}: call sites in modules loaded since stay unknown");
            }
            read::fill(&mut snapshot, &live.ebpf, &live.facts, &self.plan)?;
        }
        Ok(snapshot)
    }

    /// The probes with their accounts.
    #[must_use]
    pub fn probes(&self) -> Vec<ProbeStatus> {
        accounts::probes(&self.plan, self.live.as_ref())
    }

    /// The kernel's version, where it is observed.
    #[must_use]
    pub fn kernel(&self) -> Option<Version> {
        self.live.as_ref().map(|live| live.facts.host.version)
    }

    /// One line: what this kernel refuses and what that costs.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        accounts::refusal(&self.plan, self.live.as_ref())
    }

    /// The method of the deep-copy probe, else of the completions.
    #[must_use]
    pub fn tier(&self) -> Option<Method> {
        [Probe::CopyUbufs, Probe::Complete, Probe::ErrorReport]
            .into_iter()
            .find_map(|probe| self.plan.outcome(probe).method)
    }
}
