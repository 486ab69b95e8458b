//! What the kernel showed at one moment: plain totals since the observer attached,
//! with what could not be seen beside them. Everything downstream reads this and
//! nothing else.

use std::time::{Duration, SystemTime};

use zc_observe_ebpf::{BUCKETS, DeviceInfo, DeviceKey, SenderKey};

/// Totals since the observer attached.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When the maps were read.
    pub taken: SystemTime,
    /// Since when it counts.
    pub since: SystemTime,
    /// Sends that asked for zero-copy.
    pub attempts: Vec<Attempts>,
    /// Buffers released.
    pub completions: Vec<Completions>,
    /// Deep copies by call site.
    pub deep_copies: Vec<DeepCopies>,
    /// Times from send to release.
    pub releases: Vec<Releases>,
    /// Zero-copy payload per device; filled on the tracepoint tier.
    pub device_bytes: Vec<DeviceBytes>,
    /// Devices that appear above.
    pub devices: Vec<Device>,
    /// Senders and what they caused.
    pub senders: Vec<Sender>,
    /// The probes and what they cost and missed.
    pub probes: Vec<ProbeStatus>,
    /// The maps and their fill.
    pub maps: Vec<MapStatus>,
}

impl Snapshot {
    /// One of now, with nothing in it.
    #[must_use]
    pub fn empty(since: SystemTime) -> Self {
        Self {
            taken: SystemTime::now(),
            since,
            attempts: Vec::new(),
            completions: Vec::new(),
            deep_copies: Vec::new(),
            releases: Vec::new(),
            device_bytes: Vec::new(),
            devices: Vec::new(),
            senders: Vec::new(),
            probes: Vec::new(),
            maps: Vec::new(),
        }
    }
}

/// Interface that asked for zero-copy. Label `api`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Api {
    /// `MSG_ZEROCOPY`.
    MsgZerocopy,
    /// `io_uring` `SEND_ZC`, `SENDMSG_ZC`.
    IoUring,
    /// vhost-net.
    Vhost,
    /// `PACKET_TX_RING`.
    PacketTxRing,
    /// xen-netback.
    Xen,
    /// A callback that we do not know.
    Other,
    /// The owner could not be read.
    Unknown,
}

impl Api {
    /// Value of the label `api`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MsgZerocopy => "msg_zerocopy",
            Self::IoUring => "io_uring",
            Self::Vhost => "vhost",
            Self::PacketTxRing => "packet_tx_ring",
            Self::Xen => "xen",
            Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }
}

/// Outcome that the completion's flag claims. Label `outcome`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Outcome {
    /// Not copied.
    Zerocopy,
    /// Copied.
    Copied,
}

impl Outcome {
    /// Value of the label `outcome`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Zerocopy => "zerocopy",
            Self::Copied => "copied",
        }
    }
}

/// Sends that asked for zero-copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Attempts {
    /// Interface.
    pub api: Api,
    /// `IPPROTO_` number, 0 if the interface does not say.
    pub protocol: u16,
    /// `AF_` number, 0 if the interface does not say.
    pub family: u16,
    /// Sends accepted (aborted ones taken out).
    pub accepted: u64,
    /// Payload bytes that they asked for; `None` where the tier cannot see them.
    pub bytes: Option<u64>,
    /// Sends refused; `None` where the tier cannot see them.
    pub refused: Option<u64>,
}

/// Buffers released.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Completions {
    /// Interface.
    pub api: Api,
    /// `IPPROTO_` number, 0 if the interface does not say.
    pub protocol: u16,
    /// `AF_` number, 0 if the interface does not say.
    pub family: u16,
    /// What the flag claims.
    pub outcome: Outcome,
    /// Sends.
    pub ids: u64,
    /// Their payload bytes; `None` where the tier cannot see them.
    pub bytes: Option<u64>,
}

/// The function whose runs are counted as deep copies.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CopyFunction {
    /// `skb_copy_ubufs`.
    SkbCopyUbufs,
    /// `__pskb_pull_tail`, when it takes the last paged byte.
    PskbPullTail,
}

impl CopyFunction {
    /// The kernel function.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SkbCopyUbufs => "skb_copy_ubufs",
            Self::PskbPullTail => "__pskb_pull_tail",
        }
    }
}

/// A code address of the kernel with its name.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Frame {
    /// Return address.
    pub address: u64,
    /// Function, suffixes such as `.constprop.0` kept; `None` where symbols are hidden.
    pub function: Option<String>,
    /// Offset of the return address in the function.
    pub offset: u64,
    /// Module, or `None` for the kernel itself.
    pub module: Option<String>,
}

/// Deep copies from one call site on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeepCopies {
    /// What copied.
    pub function: CopyFunction,
    /// Who called it; `None` where the stack did not show it.
    pub caller: Option<Frame>,
    /// Who called the caller.
    pub caller2: Option<Frame>,
    /// Interface, by the buffer owner's callback.
    pub api: Api,
    /// Device of the skb, if it had one.
    pub device: Option<DeviceKey>,
    /// 4, 6 or 0.
    pub family: u8,
    /// Whether the send was already copied: a second copy, not a fallback.
    pub again: bool,
    /// Copies that succeeded.
    pub copies: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Copies that failed; the kernel drops such packets.
    pub errors: u64,
    /// Time, over the runs whose end was seen.
    pub time: Histogram,
}

/// Times of one kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Histogram {
    /// Number of times.
    pub count: u64,
    /// Their sum.
    pub sum: Duration,
    /// Counts per bucket, not cumulated; see [`zc_observe_ebpf::bucket`].
    pub buckets: [u64; BUCKETS],
}

/// Times from a buffer's first send to its release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Releases {
    /// Interface.
    pub api: Api,
    /// The times.
    pub time: Histogram,
}

/// Zero-copy payload that a device took in and was given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DeviceBytes {
    /// The device.
    pub device: DeviceKey,
    /// Packets with zero-copy frags received, and their payload bytes.
    pub received: (u64, u64),
    /// Packets with zero-copy frags handed to the driver, and their payload bytes.
    pub transmitted: (u64, u64),
}

/// A device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Device {
    /// Where it is.
    pub key: DeviceKey,
    /// What it is.
    pub info: DeviceInfo,
}

/// A sender and what it caused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sender {
    /// Who.
    pub key: SenderKey,
    /// Sends accepted.
    pub accepted: u64,
    /// Sends refused.
    pub refused: u64,
    /// Sends completed and their payload bytes, flagged zero-copy.
    pub zerocopy: (u64, u64),
    /// Sends completed and their payload bytes, flagged copied.
    pub copied: (u64, u64),
    /// Deep copies and their payload bytes.
    pub deep_copies: (u64, u64),
}

impl Sender {
    /// One that caused nothing yet.
    #[must_use]
    pub const fn none(key: SenderKey) -> Self {
        Self {
            key,
            accepted: 0,
            refused: 0,
            zerocopy: (0, 0),
            copied: (0, 0),
            deep_copies: (0, 0),
        }
    }

    /// Adds what another one caused.
    pub const fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.zerocopy.0 += other.zerocopy.0;
        self.zerocopy.1 += other.zerocopy.1;
        self.copied.0 += other.copied.0;
        self.copied.1 += other.copied.1;
        self.deep_copies.0 += other.deep_copies.0;
        self.deep_copies.1 += other.deep_copies.1;
    }
}

/// How a probe is attached. Label `method`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Method {
    /// fentry or fexit.
    Fentry,
    /// kprobe or kretprobe.
    Kprobe,
    /// Raw tracepoint.
    Tracepoint,
}

impl Method {
    /// Value of the label `method`, and of `--probes`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fentry => "fentry",
            Self::Kprobe => "kprobe",
            Self::Tracepoint => "tracepoint",
        }
    }
}

/// Whether a probe is there. Label `state`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ProbeState {
    /// Attached.
    Attached,
    /// Not asked for by the chosen tier.
    Off,
    /// This kernel does not have the function or tracepoint: the feature does not exist here.
    Absent {
        /// What was looked for.
        reason: String,
    },
    /// It exists and this kernel refuses it; a feature is lost.
    Refused {
        /// What was tried and what the kernel said.
        reason: String,
    },
}

impl ProbeState {
    /// Value of the label `state`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Attached => "attached",
            Self::Off => "off",
            Self::Absent { .. } => "absent",
            Self::Refused { .. } => "refused",
        }
    }
}

/// A probe and its accounts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProbeStatus {
    /// Name of the probe point: label `probe`.
    pub name: &'static str,
    /// What it is for, in a few words: what is lost without it.
    pub purpose: &'static str,
    /// How it is attached.
    pub method: Option<Method>,
    /// What it is attached to: the symbol or tracepoint really used.
    pub target: Option<String>,
    /// State.
    pub state: ProbeState,
    /// Runs that had something to count.
    pub hits: u64,
    /// Hits that the kernel did not deliver; `None` where this kernel does not say.
    pub missed: Option<u64>,
    /// Counts lost in the program because a map had no room or a field could not be read.
    pub lost: u64,
    /// CPU time, while the kernel's BPF statistics are on.
    pub seconds: Option<Duration>,
}

/// A map and its fill.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MapStatus {
    /// Name: label `map`.
    pub name: &'static str,
    /// Entries in use; `None` where counting them would cost more than it tells.
    pub entries: Option<u64>,
    /// Entries that fit.
    pub capacity: u64,
    /// Inserts that failed.
    pub failures: u64,
}
