//! Senders: the processes that sockets belong to, learnt when they send.

/// How well a sender is known, in [`SenderKey::known`].
pub mod known {
    /// Process, user and control group, read when it sent.
    pub const PROCESS: u32 = 1;
    /// Only the socket's inode; user space may find the process that holds it.
    pub const INODE: u32 = 2;
    /// Nothing: the socket was not seen sending.
    pub const NOTHING: u32 = 3;
    /// The map is full: everybody who came later.
    pub const OTHER: u32 = 4;
}

/// Who sent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct SenderKey {
    /// One of [`known`].
    pub known: u32,
    /// Process id in the initial pid namespace.
    pub tgid: u32,
    /// User id.
    pub uid: u32,
    /// Inode of the socket's network namespace.
    pub netns: u32,
    /// Id of the control group (its inode in cgroup2).
    pub cgroup: u64,
    /// Inode of the socket; 0 unless `known` is [`known::INODE`].
    pub inode: u64,
    /// Name of the task, NUL padded.
    pub comm: [u8; 16],
}

/// What is counted per sender.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SenderVal {
    /// Notification ids given out.
    pub accepted: u64,
    /// Ids taken back.
    pub aborted: u64,
    /// Calls refused.
    pub refused: u64,
    /// Ids completed, by [`crate::outcome`].
    pub completed: [u64; 2],
    /// Payload bytes of the completed sends, by [`crate::outcome`].
    pub completed_bytes: [u64; 2],
    /// Deep copies, as in [`crate::DeepCopyVal::runs`], not counting second copies.
    pub deep_copies: u64,
    /// Payload bytes of the deep copies.
    pub deep_copy_bytes: u64,
}

pod!(SenderKey, SenderVal);
