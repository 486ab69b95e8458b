//! Completions: the kernel releases a send's buffer.

use crate::BUCKETS;

/// What a completion is counted by.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct CompletionKey {
    /// `sock.sk_protocol`; 0 where the owner has no socket.
    pub protocol: u16,
    /// `sock_common.skc_family`; 0 where the owner has no socket.
    pub family: u16,
    /// One of [`crate::api`].
    pub api: u8,
    /// One of [`crate::outcome`].
    pub outcome: u8,
    /// Always 0.
    pub pad: [u8; 2],
}

/// What is counted.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CompletionVal {
    /// Notification ids, one per send.
    pub ids: u64,
    /// Payload bytes that those sends asked for; 0 on the tracepoint tier, which cannot see them.
    pub bytes: u64,
    /// Notifications; each covers one or more ids.
    pub notifications: u64,
}

/// Time from a buffer's first send to its release, by [`crate::api`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReleaseVal {
    /// Buffers timed.
    pub count: u64,
    /// Sum of the times.
    pub nanos: u64,
    /// Histogram, see [`crate::bucket`].
    pub hist: [u64; BUCKETS],
}

/// A buffer on its way: what is known of a `ubuf_info` from send to release.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Buffer {
    /// The socket that sent it.
    pub sk: u64,
    /// `bpf_ktime_get_ns` at its first send.
    pub start: u64,
    /// Payload bytes asked for so far.
    pub bytes: u64,
    /// Payload bytes of the last send alone, which an abort takes back.
    pub last_bytes: u64,
    /// 1 once a deep copy of it was counted.
    pub copied: u32,
    /// 1 once its owner was told that it was copied (`io_uring`, whose owner may not keep it).
    pub reported_copied: u32,
}

pod!(CompletionKey, CompletionVal, ReleaseVal, Buffer);
