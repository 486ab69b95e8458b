//! Sockets and notifications, as the tracepoint tier follows them.

/// A socket that sends with `MSG_ZEROCOPY`, seen through its notification counter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SocketVal {
    /// `sk_zckey` when counting began: ids from here on are ours.
    pub base: u32,
    /// `sk_zckey` as last counted.
    pub next: u32,
    /// Bit 0: in use. Bit 1: the socket was older than the observer.
    pub state: u32,
    /// Always 0.
    pub pad: u32,
    /// Ids counted from notifications that were already gone when their report was traced,
    /// newest last: the range and what it was counted as.
    pub gone: [Range; Self::GONE],
}

impl SocketVal {
    /// How many such ranges are remembered.
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
    /// 1 once it was counted.
    pub counted: u32,
    /// Ids merged into it and counted on their own before it was counted.
    pub merged: u32,
    /// Always 0.
    pub pad: u32,
}

pod!(SocketVal, Range, Notification);
