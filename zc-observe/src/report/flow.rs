//! What the daemon's own traffic counted: the ground truth beside the kernel's counts.

use crate::snapshot::Histogram;

/// Counts of one `--generate` flow since it began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// Its spec as typed: label `flow`.
    pub spec: String,
    /// Sends that the kernel accepted as zero-copy.
    pub sends: u64,
    /// Payload bytes of those sends.
    pub bytes: u64,
    /// Sends that completed as zero-copy, read from the error queue.
    pub zerocopy: u64,
    /// Sends that completed as copied.
    pub copied: u64,
    /// Sends that the kernel refused at a zero-copy limit.
    pub refused: u64,
    /// Payload bytes that reached our receivers; `None` if the receiver is not ours.
    pub delivered_bytes: Option<u64>,
    /// Messages whose payload arrived wrong; `None` if it is not verified.
    pub verify_failures: Option<u64>,
    /// Times from send to completion, where they are measured.
    pub release: Option<Histogram>,
    /// Why it ended early, if it did.
    pub error: Option<String>,
}
