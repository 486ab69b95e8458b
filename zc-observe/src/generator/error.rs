//! What can go wrong, and what to do then.

use std::io;

/// Why a spec is none.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// Not a transport and family.
    #[error("'{0}' is no flow: it begins with tcp4, tcp6, udp4 or udp6")]
    Kind(String),
    /// No such key.
    #[error("'{key}' is no key of a flow; the keys are {known}")]
    Key {
        /// As typed.
        key: String,
        /// All of them.
        known: String,
    },
    /// A value that cannot be read.
    #[error("{key}: '{value}' {why}")]
    Value {
        /// The key.
        key: &'static str,
        /// As typed.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// Out of bounds, or two that exclude each other.
    #[error("{0}")]
    Conflict(String),
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The spec is contradictory.
    #[error("{0}")]
    Spec(#[from] SpecError),
    /// The kernel has no zero-copy for this socket.
    #[error(
        "cannot set SO_ZEROCOPY on a {transport} socket: {source}; zero-copy sends need Linux 4.14 (TCP) or 5.0 (UDP); --engine copy works everywhere"
    )]
    Unsupported {
        /// Which socket.
        transport: super::Transport,
        /// What the kernel said.
        source: io::Error,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A single send is above a zero-copy limit.
    #[error(
        "zero-copy send of {size} bytes refused (ENOBUFS) {refused} times with none other outstanding: {limit}"
    )]
    Refused {
        /// Its payload bytes.
        size: usize,
        /// How often.
        refused: u64,
        /// The limit, and what to do.
        limit: String,
    },
    /// A thread of ours panicked.
    #[error("a thread of the generator died; this is a bug")]
    Thread,
}

impl GenerateError {
    /// An error of a system call.
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Whether the host does not permit it, rather than that it failed.
    #[must_use]
    pub fn exit_not_permitted(&self) -> bool {
        match self {
            Self::Unsupported { .. } | Self::Refused { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            _ => false,
        }
    }
}
