//! Attempts of `MSG_ZEROCOPY`: a notification id is given out, refused or taken back.

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns},
    macros::{fentry, fexit, kprobe, kretprobe},
    programs::{FEntryContext, FExitContext, ProbeContext, RetProbeContext},
};
use zc_observe_ebpf::{AttemptVal, Buffer, CallArgs, MapId, Probe};

use super::{
    count::{self, bump},
    kernel::traced_arg,
    maps::{ATTEMPTS, BUFFERS, CALLS},
    sender, skb, socket,
};

pub static ZERO: AttemptVal = AttemptVal {
    accepted: 0,
    bytes: 0,
    refused: 0,
    aborted: 0,
    aborted_bytes: 0,
};

const IPPROTO_UDP: u16 = 17;
/// Length of the header that UDP counts into the size of the first part of a datagram.
const UDP_HEADER: u64 = 8;

/// `msg_zerocopy_realloc(sk, size, uarg)` returned `new`: NULL is a refusal, and anything
/// else carries one more id, whether it is a new buffer or the one that was handed in.
#[inline(always)]
fn attempt(sk: u64, size: u64, old: u64, new: u64) {
    count::hit(Probe::Attempt);
    sender::learn(sk);
    let key = socket::key(sk);
    let bytes = if key.protocol == IPPROTO_UDP && old == 0 {
        size.saturating_sub(UDP_HEADER)
    } else {
        size
    };
    let Some((value, _)) = count::entry(&ATTEMPTS, MapId::Attempts, &key, &ZERO) else {
        count::lost(Probe::Attempt, bytes);
        return;
    };
    let sender = sender::account(sk);
    if new == 0 {
        bump!(value, refused += 1);
        if let Some(sender) = sender {
            bump!(sender, refused += 1);
        }
        return;
    }
    bump!(value, accepted += 1, bytes += bytes);
    if let Some(sender) = sender {
        bump!(sender, accepted += 1);
    }
    if new == old
        && let Some(buffer) = BUFFERS.get_ptr_mut(new)
    {
        bump!(buffer, bytes += bytes);
        // SAFETY: a live map value; the socket is locked while it sends.
        unsafe { (*buffer).last_bytes = bytes };
        return;
    }
    let buffer = Buffer {
        sk,
        // SAFETY: the helper takes nothing.
        start: unsafe { bpf_ktime_get_ns() },
        bytes,
        last_bytes: bytes,
        copied: 0,
        reported_copied: 0,
    };
    if BUFFERS.insert(new, buffer, 0).is_err() {
        count::failed(MapId::Buffers);
    }
}

/// `msg_zerocopy_put_abort(uarg, …)`: the last id is taken back.
#[inline(always)]
fn abort(uarg: u64) {
    let sk = skb::sock_of_uarg(uarg);
    if uarg == 0 || sk == 0 {
        return;
    }
    count::hit(Probe::Abort);
    let mut bytes = 0;
    if let Some(buffer) = BUFFERS.get_ptr_mut(uarg) {
        // SAFETY: a live map value; the socket is locked while it sends.
        bytes = unsafe { core::ptr::replace(&raw mut (*buffer).last_bytes, 0) };
        // SAFETY: a field of a live map value.
        count::sub(unsafe { &raw mut (*buffer).bytes }, bytes);
    }
    let key = socket::key(sk);
    if let Some((value, _)) = count::entry(&ATTEMPTS, MapId::Attempts, &key, &ZERO) {
        bump!(value, aborted += 1, aborted_bytes += bytes);
    } else {
        count::lost(Probe::Abort, bytes);
    }
    if let Some(sender) = sender::account(sk) {
        bump!(sender, aborted += 1);
    }
}

/// Three arguments up to 6.12.
#[fexit]
pub fn attempt_fexit3(ctx: FExitContext) -> i32 {
    let [sk, size, old, new] = [0, 1, 2, 3].map(|n| traced_arg(ctx.as_ptr(), n));
    attempt(sk, size, old, new);
    0
}

/// Four arguments later on, the last one for device memory.
#[fexit]
pub fn attempt_fexit4(ctx: FExitContext) -> i32 {
    let [sk, size, old, new] = [0, 1, 2, 4].map(|n| traced_arg(ctx.as_ptr(), n));
    attempt(sk, size, old, new);
    0
}

/// Keeps the arguments for the return. By task: the call may sleep and move to another CPU.
#[kprobe]
pub fn attempt_kprobe(ctx: ProbeContext) -> u32 {
    let args = [0, 1, 2].map(|n| ctx.arg(n).unwrap_or(0));
    if CALLS
        .insert(bpf_get_current_pid_tgid(), CallArgs { args }, 0)
        .is_err()
    {
        count::unreadable(Probe::AttemptEntry);
    }
    0
}

#[kretprobe]
pub fn attempt_kretprobe(ctx: RetProbeContext) -> u32 {
    let task = bpf_get_current_pid_tgid();
    let Some(call) = CALLS.get_ptr(task) else {
        count::unreadable(Probe::Attempt);
        return 0;
    };
    // SAFETY: a live map value of this task.
    let [sk, size, old] = unsafe { (*call).args };
    let _ = CALLS.remove(task);
    attempt(sk, size, old, ctx.ret());
    0
}

#[fentry]
pub fn abort_fentry(ctx: FEntryContext) -> i32 {
    abort(traced_arg(ctx.as_ptr(), 0));
    0
}

#[kprobe]
pub fn abort_kprobe(ctx: ProbeContext) -> u32 {
    abort(ctx.arg(0).unwrap_or(0));
    0
}
