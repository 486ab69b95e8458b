//! Completions on a kernel that permits only tracepoints: from the notifications that the
//! error queue gets.
//!
//! A notification appears at the tail of its socket's error queue, or is merged into the
//! one there: then the outcome of the tail stands for both, but the merged skb still
//! carries its own while it is freed. So a notification is counted when it is first seen at
//! the tail (`inet_sk_error_report`, from 5.14 on) and a merged one when it is freed
//! (`consume_skb`). The report comes after the reader was woken: where the reader was
//! faster, the notification is counted when it is freed too. Ranges tell which is which.

use aya_ebpf::{bindings::BPF_NOEXIST, macros::raw_tracepoint, programs::RawTracePointContext};
use zc_observe_ebpf::{AttemptKey, CompletionKey, MapId, Notification, Probe, Range, api, outcome};

use super::{
    complete, count,
    follow::{self, SocketPtr},
    kernel::{fact, offset, read},
    maps::NOTIFICATIONS,
    sender, skb, socket,
};

/// `SO_EE_ORIGIN_ZEROCOPY`.
const ORIGIN_ZEROCOPY: u8 = 5;
/// `SO_EE_CODE_ZEROCOPY_COPIED`.
const CODE_COPIED: u8 = 1;
/// Fields of `sock_extended_err`, which is fixed by the system call interface.
const EE_ORIGIN: u32 = 4;
const EE_CODE: u32 = 6;
const EE_INFO: u32 = 8;
const EE_DATA: u32 = 12;
/// `sk_buff_head.prev`, behind `next`; a list head starts with both.
const LIST_PREV: u32 = 8;

/// The range of a notification, if the skb is one.
#[inline(always)]
fn range(skb: u64) -> Option<Range> {
    let ee = skb + u64::from(offset!(skb_cb)) + u64::from(offset!(exterr_ee));
    if read::<u8>(ee, EE_ORIGIN)? != ORIGIN_ZEROCOPY {
        return None;
    }
    Some(Range {
        lo: read(ee, EE_INFO)?,
        hi: read(ee, EE_DATA)?,
        outcome: u32::from(if read::<u8>(ee, EE_CODE)? & CODE_COPIED != 0 {
            outcome::COPIED
        } else {
            outcome::ZEROCOPY
        }),
        used: 1,
    })
}

/// The skb at the tail of the socket's error queue.
#[inline(always)]
fn tail(sk: u64) -> Option<u64> {
    let queue = offset!(sk_error_queue);
    let tail: u64 = read(sk + u64::from(queue), LIST_PREV)?;
    (queue != zc_observe_ebpf::ABSENT && tail != 0 && tail != sk + u64::from(queue)).then_some(tail)
}

/// Number of ids; ids wrap.
#[inline(always)]
fn len(range: &Range) -> u64 {
    u64::from(range.hi.wrapping_sub(range.lo)) + 1
}

/// Counts `ids` completions of the socket, which may be negative.
#[inline(always)]
fn count_ids(probe: Probe, sk: u64, ids: u64, notifications: u64, outcome: u32) {
    let AttemptKey {
        protocol, family, ..
    } = socket::key(sk);
    let key = CompletionKey {
        protocol,
        family,
        api: api::MSG_ZEROCOPY,
        outcome: outcome as u8,
        pad: [0; 2],
    };
    complete::count(probe, &key, sk, ids, 0, notifications);
}

/// Moves ids that were counted with the outcome of the notification they were merged into.
#[inline(always)]
fn correct(probe: Probe, sk: u64, range: &Range, counted: u32) {
    if counted != range.outcome {
        let ids = len(range);
        count_ids(probe, sk, ids.wrapping_neg(), 0, counted);
        count_ids(probe, sk, ids, 0, range.outcome);
    }
}

/// Tracepoint `inet_sk_error_report(sk)`.
#[raw_tracepoint]
pub fn error_report(ctx: RawTracePointContext) -> i32 {
    let sk: u64 = ctx.arg(0);
    let probe = Probe::ErrorReport;
    let Some(tail) = tail(sk) else {
        return 0;
    };
    let Some(range) = range(tail) else {
        return 0;
    };
    count::hit(probe);
    sender::learn_inode(sk);
    let Some(_) = follow::account(probe, sk, range.lo.into()) else {
        return 0;
    };
    let seen = Notification {
        sk,
        lo: range.lo,
        hi: range.hi,
        outcome: range.outcome,
        merged: 0,
        counted: 1,
    };
    let Some(known) = NOTIFICATIONS.get_ptr_mut(tail) else {
        // Of two reports at once one is first, and only that one counts.
        match NOTIFICATIONS.insert(tail, seen, u64::from(BPF_NOEXIST)) {
            Ok(()) => count_ids(probe, sk, len(&range), 1, range.outcome),
            Err(_) if NOTIFICATIONS.get_ptr(tail).is_some() => {}
            Err(_) => {
                count::failed(MapId::Notifications);
                count::lost(probe, 0);
            }
        }
        return 0;
    };
    // SAFETY: a live map value; the swap makes one report of several the one that counts.
    let counted = unsafe { follow::swap(&raw mut (*known).counted, 1) };
    if counted == 0 {
        // SAFETY: a live map value.
        let merged = unsafe { (*known).merged };
        // SAFETY: a live map value.
        unsafe { (*known).hi = range.hi };
        let ids = len(&range).wrapping_sub(u64::from(merged));
        count_ids(probe, sk, ids, 1, range.outcome);
    }
    0
}

/// A notification skb is freed: read, merged, or purged with its socket.
#[inline(always)]
fn freed(probe: Probe, skb: u64) {
    let destructor: u64 = read(skb, offset!(skb_destructor)).unwrap_or(0);
    if destructor == 0 || destructor != fact!(sock_ofree) {
        return;
    }
    let sk: u64 = read(skb, offset!(skb_sk)).unwrap_or(0);
    if sk == 0 {
        return;
    }
    let Some(range) = range(skb) else {
        unqueued(probe, skb, sk);
        return;
    };
    count::hit(probe);
    sender::learn_inode(sk);
    let Some(socket) = follow::account(probe, sk, range.lo.into()) else {
        return;
    };
    if let Some(known) = NOTIFICATIONS.get_ptr(skb) {
        // SAFETY: a live map value.
        let known = unsafe { *known };
        let _ = NOTIFICATIONS.remove(skb);
        if known.counted != 0 {
            // What was merged into it later was counted on its own.
            follow::remember(
                socket,
                &Range {
                    hi: known.hi,
                    ..range
                },
            );
            return;
        }
        let ids = len(&range).wrapping_sub(u64::from(known.merged));
        count_ids(probe, sk, ids, 1, range.outcome);
        follow::remember(socket, &range);
        return;
    }
    if !merged(probe, skb, sk, &range) {
        alone(probe, socket, sk, &range);
    }
}

/// Whether it was merged into the notification at the tail, then counted.
#[inline(always)]
fn merged(probe: Probe, skb: u64, sk: u64, part: &Range) -> bool {
    let Some(tail) = tail(sk) else {
        return false;
    };
    let Some(whole) = range(tail) else {
        return false;
    };
    if tail == skb || !follow::contains(&whole, part) {
        return false;
    }
    let ids = len(part);
    if let Some(known) = NOTIFICATIONS.get_ptr_mut(tail) {
        // SAFETY: a live map value.
        let seen = unsafe { *known };
        let counted = Range {
            lo: seen.lo,
            hi: seen.hi,
            ..whole
        };
        if seen.counted != 0 && follow::contains(&counted, part) {
            correct(probe, sk, part, seen.outcome);
            return true;
        }
        if seen.counted == 0 {
            // SAFETY: a field of a live map value.
            unsafe { (*known).merged = seen.merged.wrapping_add(ids as u32) };
        }
    } else {
        let seen = Notification {
            sk,
            lo: whole.lo,
            hi: whole.hi,
            outcome: whole.outcome,
            merged: ids as u32,
            counted: 0,
        };
        if NOTIFICATIONS
            .insert(tail, seen, u64::from(BPF_NOEXIST))
            .is_err()
        {
            count::failed(MapId::Notifications);
            count::lost(probe, 0);
        }
    }
    count_ids(probe, sk, ids, 0, part.outcome);
    true
}

/// A notification that nobody saw in the queue, or one merged into such.
#[inline(always)]
fn alone(probe: Probe, socket: SocketPtr, sk: u64, range: &Range) {
    if let Some(counted) = follow::within(socket, range) {
        correct(probe, sk, range, counted);
        return;
    }
    let parts = follow::parts(socket, range);
    count_ids(probe, sk, len(range).wrapping_sub(parts), 1, range.outcome);
    follow::remember(socket, range);
}

/// A buffer whose socket was closed before it was released: it is not queued, and its
/// `ubuf_info` still stands in the control block. One that was aborted has no ids.
#[inline(always)]
fn unqueued(probe: Probe, skb: u64, sk: u64) {
    let uarg = skb + u64::from(offset!(skb_cb));
    let ids = u64::from(read::<u16>(uarg, offset!(msgzc_len)).unwrap_or(0));
    let Some(zerocopy) = skb::still_zerocopy(uarg) else {
        count::unreadable(probe);
        return;
    };
    if ids == 0 {
        return;
    }
    count::hit(probe);
    let lo = read::<u32>(uarg, offset!(msgzc_id)).map_or(follow::NO_ID, u64::from);
    let _ = follow::account(probe, sk, lo);
    let outcome = if zerocopy {
        outcome::ZEROCOPY
    } else {
        outcome::COPIED
    };
    count_ids(probe, sk, ids, 1, u32::from(outcome));
}

/// Tracepoint `consume_skb(skb, …)`.
#[raw_tracepoint]
pub fn consume_skb(ctx: RawTracePointContext) -> i32 {
    freed(Probe::ConsumeSkb, ctx.arg(0));
    0
}

/// Tracepoint `kfree_skb(skb, …)`.
#[raw_tracepoint]
pub fn kfree_skb(ctx: RawTracePointContext) -> i32 {
    freed(Probe::KfreeSkb, ctx.arg(0));
    0
}

/// Tracepoint `sock_send_length(sk, ret, flags)` (from 6.3 on), in the sender's context.
#[raw_tracepoint]
pub fn send_length(ctx: RawTracePointContext) -> i32 {
    let sk: u64 = ctx.arg(0);
    if socket::zerocopy(sk) {
        count::hit(Probe::SendLength);
        sender::learn(sk);
        let _ = follow::account(Probe::SendLength, sk, follow::NO_ID);
    }
    0
}
