//! Why payload was copied: a closed list, as data. Matching, `explain`, the documentation
//! and the tests derive from it.

mod copied;
mod flag_wrong;
mod hidden;
pub mod matcher;
mod not_copies;
mod orphaned;
mod pulled;
mod refused;
mod send_time;
mod site;

pub use copied::{
    LOCAL_DELIVERY, PACKET_TAP_RX, PACKET_TAP_TX, RECEIVE_PATH, TIMESTAMP, TUN_XMIT, UNKNOWN,
};
pub use site::{Call, Kernels, Owners, Site};

/// One entry of the list.
#[derive(Debug)]
pub struct Cause {
    /// Value of the label `cause`.
    pub id: &'static str,
    /// What kind of outcome it explains.
    pub class: Class,
    /// What happens, in one line.
    pub title: &'static str,
    /// Why it happens.
    pub explanation: &'static str,
    /// What to do about it.
    pub fix: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What it takes to see it.
    pub needs: &'static [Need],
    /// Call sites that prove it; empty for causes that no call site tells.
    pub sites: &'static [Site],
}

/// Kinds of outcome.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Class {
    /// Copied after the send, and the completion says so.
    Copied,
    /// Copied in the send call.
    SendTime,
    /// Copied, and the completion says zero-copy.
    Hidden,
    /// Not copied, and the completion is wrong.
    FlagWrong,
    /// The send failed because of a zero-copy limit.
    Refused,
    /// Not a copy, yet worth a finding.
    NotCopied,
}

impl Class {
    /// Its name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Copied => "copied",
            Self::SendTime => "send_time",
            Self::Hidden => "hidden",
            Self::FlagWrong => "flag_wrong",
            Self::Refused => "refused",
            Self::NotCopied => "not_copied",
        }
    }
}

/// How much a cause matters.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// Expected where it happens; good to know.
    Info,
    /// Zero-copy costs more than it saves.
    Warning,
    /// Sends fail, or wrong numbers reach the application.
    Critical,
}

impl Severity {
    /// Its name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// What it takes to see a cause.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Need {
    /// Deep copies with their callers.
    DeepCopies,
    /// A probe in the send call.
    SendCall,
    /// A probe on the function that copies without telling.
    CopyFunction,
    /// Completions per buffer, not from the error queue, which merges outcomes.
    Completions,
    /// Refused sends with their reason.
    Refusals,
    /// Sockets, devices and settings of the host.
    HostState,
}

impl Need {
    /// In words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeepCopies => "deep copies with their callers (fentry or kprobe)",
            Self::SendCall => "a probe in the send call (fentry or kprobe)",
            Self::CopyFunction => "a probe on the function that copies (fentry or kprobe)",
            Self::Completions => "completions per buffer (fentry or kprobe)",
            Self::Refusals => "refused sends (fentry or kprobe)",
            Self::HostState => "the host's sockets, devices and settings",
        }
    }
}

/// The whole list, by class.
const LISTS: [&[&Cause]; 8] = [
    copied::CAUSES,
    pulled::CAUSES,
    orphaned::CAUSES,
    send_time::CAUSES,
    hidden::CAUSES,
    flag_wrong::CAUSES,
    refused::CAUSES,
    not_copies::CAUSES,
];

/// All causes.
pub fn all() -> impl Iterator<Item = &'static Cause> {
    LISTS.into_iter().flatten().copied()
}

/// The cause of an id.
#[must_use]
pub fn by_id(id: &str) -> Option<&'static Cause> {
    all().find(|cause| cause.id == id)
}

#[cfg(test)]
mod tests;
