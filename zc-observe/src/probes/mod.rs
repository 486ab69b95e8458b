//! The observer: attaches the programs and reads their maps.

use std::time::SystemTime;

use clap::ValueEnum;

use crate::snapshot::{Method, ProbeStatus, Snapshot};

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

/// Why nothing could be attached.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum AttachError {
    /// Not privileged.
    #[error("attaching probes needs CAP_BPF and CAP_PERFMON: run it as root")]
    NotPermitted,
}

impl AttachError {
    /// Whether the host does not permit it.
    #[must_use]
    pub const fn exit_not_permitted(&self) -> bool {
        matches!(self, Self::NotPermitted)
    }
}

/// Why the maps could not be read.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("cannot read the maps")]
pub struct ReadError;

/// Attached probes.
#[derive(Debug)]
pub struct Observer {
    since: SystemTime,
}

impl Observer {
    /// Attaches.
    ///
    /// # Errors
    /// When the host does not permit it.
    pub fn attach(options: &Options) -> Result<Self, AttachError> {
        if options.mode != Mode::Off && !nix::unistd::geteuid().is_root() {
            return Err(AttachError::NotPermitted);
        }
        Ok(Self {
            since: SystemTime::now(),
        })
    }

    /// Reads the maps.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn snapshot(&mut self) -> Result<Snapshot, ReadError> {
        Ok(Snapshot {
            taken: SystemTime::now(),
            since: self.since,
            attempts: Vec::new(),
            completions: Vec::new(),
            deep_copies: Vec::new(),
            releases: Vec::new(),
            device_bytes: Vec::new(),
            devices: Vec::new(),
            senders: Vec::new(),
            probes: Vec::new(),
            maps: Vec::new(),
        })
    }

    /// The probes.
    #[must_use]
    pub const fn probes(&self) -> Vec<ProbeStatus> {
        Vec::new()
    }

    /// What is refused and what that costs.
    #[must_use]
    pub const fn refusal(&self) -> Option<String> {
        None
    }

    /// Best tier.
    #[must_use]
    pub const fn tier(&self) -> Option<Method> {
        None
    }
}
