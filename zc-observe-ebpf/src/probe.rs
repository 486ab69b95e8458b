//! The observer's own accounts.

/// Index of a probe point in the map `PROBES`. The programs of one point share it,
/// whatever their method.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Probe {
    /// Entry of `skb_copy_ubufs`.
    CopyUbufs = 0,
    /// Return of `skb_copy_ubufs`.
    CopyUbufsReturn = 1,
    /// Entry of `__pskb_pull_tail`.
    PullTail = 2,
    /// Return of `__pskb_pull_tail`.
    PullTailReturn = 3,
    /// Return of `msg_zerocopy_realloc` (or its predecessor).
    Attempt = 4,
    /// Entry of the same, where the return does not show the arguments.
    AttemptEntry = 5,
    /// `msg_zerocopy_put_abort` (or its predecessor).
    Abort = 6,
    /// `__msg_zerocopy_callback` (or its predecessor).
    Complete = 7,
    /// Return of `io_alloc_notif`.
    UringAttempt = 8,
    /// `io_tx_ubuf_complete` (or its predecessor).
    UringRelease = 9,
    /// `io_notif_tw_complete` (or its predecessor).
    UringComplete = 10,
    /// `__zerocopy_sg_from_iter`.
    UringBind = 11,
    /// Tracepoint `inet_sk_error_report`.
    ErrorReport = 12,
    /// Tracepoint `consume_skb`.
    ConsumeSkb = 13,
    /// Tracepoint `kfree_skb`.
    KfreeSkb = 14,
    /// Tracepoint `sock_send_length`.
    SendLength = 15,
    /// Tracepoint `netif_receive_skb`.
    DeviceReceive = 16,
    /// Tracepoint `net_dev_start_xmit`.
    DeviceTransmit = 17,
}

impl Probe {
    /// Number of probe points.
    pub const COUNT: u32 = 18;
}

/// Counts per probe point.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProbeVal {
    /// Runs that had something to count.
    pub hits: u64,
    /// Counts lost because a map had no room.
    pub lost: u64,
    /// Payload bytes among the lost counts, where they are known.
    pub lost_bytes: u64,
    /// Events that a fault or an unknown layout hid.
    pub unreadable: u64,
}

/// Index of a map in the map `MAP_FAILURES`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum MapId {
    /// `DEEP_COPIES`.
    DeepCopies = 0,
    /// `ATTEMPTS`.
    Attempts = 1,
    /// `COMPLETIONS`.
    Completions = 2,
    /// `SENDERS`.
    Senders = 3,
    /// `OWNERS`.
    Owners = 4,
    /// `BUFFERS`.
    Buffers = 5,
    /// `DEVICES`.
    Devices = 6,
    /// `DEVICE_BYTES`.
    DeviceBytes = 7,
    /// `SOCKETS`.
    Sockets = 8,
    /// `NOTIFICATIONS`.
    Notifications = 9,
    /// `IN_FLIGHT`.
    InFlight = 10,
}

impl MapId {
    /// Number of maps with an account.
    pub const COUNT: u32 = 11;
}

pod!(ProbeVal);
