//! Deep copies: `skb_copy_ubufs`, and `__pskb_pull_tail` when it takes the last paged byte.
//!
//! Counted at entry, where the flags and lengths still stand; the return adds the time and
//! takes failures out.

use core::ffi::c_void;

use aya_ebpf::{
    EbpfContext,
    helpers::bpf_ktime_get_ns,
    macros::{fentry, fexit, kprobe, kretprobe},
    programs::{FEntryContext, FExitContext, ProbeContext, RetProbeContext},
};
use aya_log_ebpf::debug;
use zc_observe_ebpf::{
    BUCKETS, DeepCopyKey, DeepCopyVal, InFlight, MapId, OpenCopy, Probe, bucket, function,
};

use super::{
    count::{self, bump},
    device,
    kernel::{fact, offset, read, traced_arg},
    maps::{BUFFERS, DEEP_COPIES, IN_FLIGHT},
    sender,
    skb::{self, Zerocopy},
    stack,
};

static ZERO: DeepCopyVal = DeepCopyVal {
    runs: 0,
    bytes: 0,
    errors: 0,
    error_bytes: 0,
    timed: 0,
    nanos: 0,
    hist: [0; BUCKETS],
};

/// A copy begins. `token` is found again at its return; 0 if no return will be seen.
#[inline(always)]
fn enter<C: EbpfContext>(ctx: &C, probe: Probe, function: u8, skb: u64, token: u64) {
    let Some(zerocopy) = skb::zerocopy(skb) else {
        return;
    };
    let bytes = u64::from(skb::data_len(skb));
    if bytes == 0 || nested(skb) {
        return;
    }
    count::hit(probe);
    let symbol = if function == function::SKB_COPY_UBUFS {
        fact!(skb_copy_ubufs)
    } else {
        fact!(pskb_pull_tail)
    };
    let (caller, caller2) = stack::callers(ctx, symbol);
    let again = second_copy(&zerocopy);
    let device = read(skb, offset!(skb_dev))
        .and_then(|dev| device::note(ctx, dev))
        .unwrap_or_default();
    let key = DeepCopyKey {
        caller,
        caller2,
        owner: zerocopy.owner,
        netns: device.netns,
        ifindex: device.ifindex,
        function,
        family: skb::family(skb),
        again: again.into(),
        pad: [0; 5],
    };
    let Some((value, new)) = count::entry(&DEEP_COPIES, MapId::DeepCopies, &key, &ZERO) else {
        count::lost(probe, bytes);
        return;
    };
    if new {
        debug!(
            ctx,
            "new call site {:x} on device {}", caller, device.ifindex
        );
    }
    bump!(value, runs += 1, bytes += bytes);
    if !again && let Some(sender) = sender::account(sock(skb, &zerocopy)) {
        bump!(sender, deep_copies += 1, deep_copy_bytes += bytes);
    }
    if token != 0 {
        open(OpenCopy {
            key,
            start: 0,
            skb,
            bytes,
            token,
        });
    }
}

/// Whether the send that the frags belong to was copied before, by somebody else than a
/// deep copy that we counted: at send, most likely.
#[inline(always)]
fn second_copy(zerocopy: &Zerocopy) -> bool {
    if let Some(buffer) = BUFFERS.get_ptr_mut(zerocopy.uarg) {
        // SAFETY: a live map value.
        let copied = unsafe { (*buffer).copied };
        if copied != 0 {
            return false;
        }
        if zerocopy.owner == fact!(msg_zerocopy_owner)
            && skb::still_zerocopy(zerocopy.uarg) == Some(false)
        {
            return true;
        }
        // SAFETY: a live map value; every writer writes 1.
        unsafe { (*buffer).copied = 1 };
    }
    false
}

/// The socket that sent the frags: from their owner, since the skb has often lost its own.
#[inline(always)]
fn sock(skb: u64, zerocopy: &Zerocopy) -> u64 {
    if zerocopy.owner != 0 && zerocopy.owner == fact!(msg_zerocopy_owner) {
        return skb::sock_of_uarg(zerocopy.uarg);
    }
    if let Some(buffer) = BUFFERS.get_ptr(zerocopy.uarg) {
        // SAFETY: a live map value.
        return unsafe { (*buffer).sk };
    }
    read(skb, offset!(skb_sk)).unwrap_or(0)
}

/// Whether a copy of this skb is already open on this CPU: `__pskb_pull_tail` can come to
/// `skb_copy_ubufs` by way of `pskb_expand_head`.
#[inline(always)]
fn nested(skb: u64) -> bool {
    let Some(flight) = IN_FLIGHT.get_ptr_mut(0) else {
        return false;
    };
    for i in 0..InFlight::DEPTH {
        // SAFETY: a live value of this CPU; `i` is in bounds.
        let slot = unsafe { &(*flight).slots[i] };
        if slot.token != 0 && slot.skb == skb {
            return true;
        }
    }
    false
}

/// Puts the copy into a free slot; copies nest, thus the last free one is enough.
#[inline(always)]
fn open(copy: OpenCopy) {
    let Some(flight) = IN_FLIGHT.get_ptr_mut(0) else {
        return;
    };
    for i in 0..InFlight::DEPTH {
        // SAFETY: a live value of this CPU; `i` is in bounds.
        let slot = unsafe { &mut (*flight).slots[i] };
        if slot.token == 0 {
            *slot = copy;
            // SAFETY: the helper takes nothing.
            slot.start = unsafe { bpf_ktime_get_ns() };
            return;
        }
    }
    // Returns were missed: start afresh. Only times and errors are lost by it.
    count::failed(MapId::InFlight);
    for i in 0..InFlight::DEPTH {
        // SAFETY: as above.
        unsafe { (*flight).slots[i].token = 0 };
    }
}

/// A copy returns.
#[inline(always)]
fn leave(probe: Probe, function: u8, token: u64, failed: bool) {
    // SAFETY: the helper takes nothing.
    let now = unsafe { bpf_ktime_get_ns() };
    let Some(flight) = IN_FLIGHT.get_ptr_mut(0) else {
        return;
    };
    for i in 0..InFlight::DEPTH {
        // SAFETY: a live value of this CPU; `i` is in bounds.
        let slot = unsafe { &mut (*flight).slots[i] };
        if slot.token != token || slot.key.function != function {
            continue;
        }
        slot.token = 0;
        count::hit(probe);
        let nanos = now.saturating_sub(slot.start);
        if let Some(value) = DEEP_COPIES.get_ptr_mut(slot.key) {
            bump!(value, timed += 1, nanos += nanos);
            let index = bucket(nanos);
            if index < BUCKETS {
                bump!(value, hist[index] += 1);
            }
            if failed {
                bump!(value, errors += 1, error_bytes += slot.bytes);
            }
        }
        return;
    }
}

/// Whether the pull takes every paged byte.
#[inline(always)]
fn full_pull(skb: u64, delta: u64) -> bool {
    let data_len = skb::data_len(skb);
    data_len != 0 && delta as u32 >= data_len
}

/// The token of a kprobe: where the return address lies. The kretprobe sees the stack
/// pointer just above it.
#[inline(always)]
fn stack_pointer(regs: *mut c_void) -> u64 {
    // SAFETY: the context of a kprobe is a pt_regs.
    unsafe { (*regs.cast::<aya_ebpf::bindings::pt_regs>()).rsp }
}

/// `skb_copy_ubufs(skb, gfp_mask)`.
#[fentry]
pub fn copy_ubufs_fentry(ctx: FEntryContext) -> i32 {
    let skb = traced_arg(ctx.as_ptr(), 0);
    enter(&ctx, Probe::CopyUbufs, function::SKB_COPY_UBUFS, skb, skb);
    0
}

/// `skb_copy_ubufs(skb, gfp_mask) -> int`.
#[fexit]
pub fn copy_ubufs_fexit(ctx: FExitContext) -> i32 {
    let failed = (traced_arg(ctx.as_ptr(), 2) as i32) < 0;
    let skb = traced_arg(ctx.as_ptr(), 0);
    leave(
        Probe::CopyUbufsReturn,
        function::SKB_COPY_UBUFS,
        skb,
        failed,
    );
    0
}

#[kprobe]
pub fn copy_ubufs_kprobe(ctx: ProbeContext) -> u32 {
    let skb = ctx.arg(0).unwrap_or(0);
    let token = stack_pointer(ctx.as_ptr());
    enter(&ctx, Probe::CopyUbufs, function::SKB_COPY_UBUFS, skb, token);
    0
}

#[kretprobe]
pub fn copy_ubufs_kretprobe(ctx: RetProbeContext) -> u32 {
    let failed = ctx.ret::<i32>() < 0;
    let token = stack_pointer(ctx.as_ptr()).wrapping_sub(8);
    leave(
        Probe::CopyUbufsReturn,
        function::SKB_COPY_UBUFS,
        token,
        failed,
    );
    0
}

/// `__pskb_pull_tail(skb, delta)`.
#[fentry]
pub fn pull_tail_fentry(ctx: FEntryContext) -> i32 {
    let skb = traced_arg(ctx.as_ptr(), 0);
    if full_pull(skb, traced_arg(ctx.as_ptr(), 1)) {
        enter(&ctx, Probe::PullTail, function::PSKB_PULL_TAIL, skb, skb);
    }
    0
}

/// `__pskb_pull_tail(skb, delta) -> void *`, NULL if it failed.
#[fexit]
pub fn pull_tail_fexit(ctx: FExitContext) -> i32 {
    let failed = traced_arg(ctx.as_ptr(), 2) == 0;
    let skb = traced_arg(ctx.as_ptr(), 0);
    leave(Probe::PullTailReturn, function::PSKB_PULL_TAIL, skb, failed);
    0
}

/// Without its return: a kretprobe on so hot a function costs too much.
#[kprobe]
pub fn pull_tail_kprobe(ctx: ProbeContext) -> u32 {
    let skb = ctx.arg(0).unwrap_or(0);
    if full_pull(skb, ctx.arg(1).unwrap_or(0)) {
        enter(&ctx, Probe::PullTail, function::PSKB_PULL_TAIL, skb, 0);
    }
    0
}
