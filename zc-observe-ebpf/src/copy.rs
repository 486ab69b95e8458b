//! Deep copies: `skb_copy_ubufs`, and `__pskb_pull_tail` when it takes the last paged byte.

use crate::BUCKETS;

/// Which function copied, in [`DeepCopyKey::function`].
pub mod function {
    /// `skb_copy_ubufs` (5.10 to 7.3).
    pub const SKB_COPY_UBUFS: u8 = 1;
    /// `__pskb_pull_tail` with `delta >= data_len` (5.10 to 7.3).
    pub const PSKB_PULL_TAIL: u8 = 2;
}

/// What a deep copy is counted by.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct DeepCopyKey {
    /// Return address into the caller; 0 where the stack did not show the call.
    pub caller: u64,
    /// Return address into the caller's caller; 0 where unknown.
    pub caller2: u64,
    /// The buffer owner's callback: `ubuf_info.callback`, or `ops->complete` from 6.10 on;
    /// 1 for a buffer without `ubuf_info`, 0 where unknown.
    pub owner: u64,
    /// The device's network namespace, as in [`crate::DeviceKey`]; 0 without a device.
    pub netns: u32,
    /// The device's index in that namespace; 0 without a device.
    pub ifindex: u32,
    /// One of [`function`].
    pub function: u8,
    /// 4 or 6 as the skb's `protocol` says, else 0.
    pub family: u8,
    /// 1 if the send was already copied when this copy began.
    pub again: u8,
    /// Always 0.
    pub pad: [u8; 5],
}

/// What is counted. The copies that succeeded are `runs - errors`, of `bytes - error_bytes`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DeepCopyVal {
    /// Entries into the function.
    pub runs: u64,
    /// `sk_buff.data_len` at entry.
    pub bytes: u64,
    /// Runs that returned an error; the kernel drops such packets.
    pub errors: u64,
    /// `data_len` at entry of the runs that returned an error.
    pub error_bytes: u64,
    /// Runs whose end was seen, thus timed.
    pub timed: u64,
    /// Time between entry and return of the timed runs.
    pub nanos: u64,
    /// Histogram of those times, see [`crate::bucket`].
    pub hist: [u64; BUCKETS],
}

/// Deep copies that began on a CPU and have not returned yet; they nest.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Slots in use.
    pub depth: u32,
    /// Always 0.
    pub pad: u32,
    /// The open runs, outermost first.
    pub slots: [OpenCopy; Self::DEPTH],
}

impl InFlight {
    /// How deep copies may nest (task, softirq, and one to spare).
    pub const DEPTH: usize = 4;
}

/// A deep copy that has begun.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OpenCopy {
    /// What it is counted by.
    pub key: DeepCopyKey,
    /// `bpf_ktime_get_ns` at entry.
    pub start: u64,
    /// The skb.
    pub skb: u64,
    /// `data_len` at entry.
    pub bytes: u64,
    /// What entry and return have in common: the skb, or the stack pointer where the
    /// return does not show the skb (kretprobe).
    pub token: u64,
}

pod!(DeepCopyKey, DeepCopyVal, InFlight);
