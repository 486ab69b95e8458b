//! Sockets and notifications, as the tracepoint tier follows them.

/// A socket that sends with `MSG_ZEROCOPY`, seen through its notification counter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SocketVal {
    /// Inode of the socket, which tells it from a later one at the same address.
    pub inode: u64,
    /// First id that counts. 64 bits wide, to be exchanged atomically.
    pub base: u64,
    /// `sk_zckey` as last counted; as wide for the same reason.
    pub next: u64,
    /// Where the next range goes in `gone`.
    pub cursor: u32,
    /// Always 0.
    pub pad: u32,
    /// The last ranges counted from notifications that have left the error queue.
    pub gone: [Range; Self::GONE],
}

impl SocketVal {
    /// How many such ranges are remembered; a power of two.
    pub const GONE: usize = 4;
}

/// A range of notification ids.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Range {
    /// First id.
    pub lo: u32,
    /// Last id.
    pub hi: u32,
    /// One of [`crate::outcome`].
    pub outcome: u32,
    /// 1 if in use.
    pub used: u32,
}

/// A notification in an error queue.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Notification {
    /// Its socket.
    pub sk: u64,
    /// First id.
    pub lo: u32,
    /// Last id that was counted with it.
    pub hi: u32,
    /// One of [`crate::outcome`].
    pub outcome: u32,
    /// Ids merged into it and counted on their own before it was counted.
    pub merged: u32,
    /// 1 once it was counted; as wide as what can be exchanged atomically.
    pub counted: u64,
}

pod!(SocketVal, Range, Notification);
