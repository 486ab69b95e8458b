//! Sockets and notifications, as the tracepoint tier follows them.

/// A socket that sends with `MSG_ZEROCOPY`, seen through its notification counter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SocketVal {
    /// The socket's inode, which tells it from a later one at the same address, in the upper
    /// half, and `sk_zckey` as last counted in the lower: one word, exchanged at once.
    pub next: u64,
    /// The inode again, and the first id that counts.
    pub base: u64,
    /// Where the next range goes in `gone`.
    pub cursor: u32,
    /// Always 0.
    pub pad: u32,
    /// The ranges seen last.
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
    /// One of [`range`].
    pub kind: u32,
}

/// What a remembered range is.
pub mod range {
    /// Nothing.
    pub const NONE: u32 = 0;
    /// A notification that was counted.
    pub const WHOLE: u32 = 1;
    /// A part of a notification that is not known yet, with an outcome of its own.
    pub const PART: u32 = 2;
}

/// A notification in an error queue: its socket and its first id, which stays as it grows.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct NotificationKey {
    /// Address of the socket.
    pub sk: u64,
    /// Inode of the socket, which tells it from a later one at the same address.
    pub inode: u64,
    /// First id.
    pub lo: u64,
}

/// How much of it was counted.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Notification {
    /// Ids counted; as wide as what can be exchanged atomically.
    pub counted: u64,
}

pod!(SocketVal, Range, NotificationKey, Notification);
