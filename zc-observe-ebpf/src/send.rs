//! Attempts: sends that ask for zero-copy.

/// What an attempt is counted by.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct AttemptKey {
    /// `sock.sk_protocol`: `IPPROTO_TCP`, `IPPROTO_UDP`, …
    pub protocol: u16,
    /// `sock_common.skc_family`: `AF_INET`, `AF_INET6`, `AF_VSOCK`, …
    pub family: u16,
    /// One of [`crate::api`].
    pub api: u8,
    /// Always 0.
    pub pad: [u8; 3],
}

/// What is counted. The sends that were accepted are `accepted - aborted`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AttemptVal {
    /// Notification ids given out.
    pub accepted: u64,
    /// Payload bytes asked for by those sends.
    pub bytes: u64,
    /// Calls that got no notification id: a limit was reached.
    pub refused: u64,
    /// Ids taken back because the send failed later on.
    pub aborted: u64,
    /// Payload bytes asked for by the aborted sends.
    pub aborted_bytes: u64,
}

/// The arguments of a call that has begun, for a return that does not show them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CallArgs {
    /// The arguments.
    pub args: [u64; 3],
}

pod!(AttemptKey, AttemptVal, CallArgs);
