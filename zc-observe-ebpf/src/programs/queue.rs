//! Completions on a kernel that permits only tracepoints: from the notifications that the
//! error queue gets.
//!
//! A notification is put at the tail of its socket's error queue, or is merged into the one
//! there, which then stands for both ranges with its own outcome; the merged skb still
//! carries its outcome while it is freed. So a notification is counted as far as it has
//! grown whenever it is seen: at the tail (`inet_sk_error_report`, from 5.14 on), and at
//! last when it is freed (`consume_skb`, `kfree_skb`), since a reader can be faster than
//! the report. What is merged is counted with the notification that it went into; if its
//! outcome is another one, it is moved there. How much of a notification is counted is
//! exchanged atomically, so that it does not matter who sees it first.

use aya_ebpf::{
    EbpfContext, bindings::BPF_NOEXIST, helpers::generated::bpf_get_stack, macros::raw_tracepoint,
    programs::RawTracePointContext,
};
use zc_observe_ebpf::{
    AttemptKey, CompletionKey, MapId, Notification, NotificationKey, Probe, Range, api, outcome,
    range,
};

use super::{
    complete, count,
    follow::{self, SocketPtr, len},
    kernel::{fact, offset, read},
    maps::NOTIFICATIONS,
    skb, socket,
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
fn notification(skb: u64) -> Option<Range> {
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
        kind: range::WHOLE,
    })
}

/// The skb at the tail of the socket's error queue.
#[inline(always)]
fn tail(sk: u64) -> Option<u64> {
    let queue = offset!(sk_error_queue);
    let tail: u64 = read(sk + u64::from(queue), LIST_PREV)?;
    (queue != zc_observe_ebpf::ABSENT && tail != 0 && tail != sk + u64::from(queue)).then_some(tail)
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

/// Moves ids from the outcome that they were counted with to the other one.
#[inline(always)]
fn move_ids(probe: Probe, sk: u64, ids: u64, counted: u32) {
    count_ids(probe, sk, ids.wrapping_neg(), 0, counted);
    count_ids(probe, sk, ids, 0, counted ^ 1);
}

/// How often an exchange is tried; each further try means that another CPU came between.
const EXCHANGES: usize = 4;

/// Counts a notification as far as it has grown and was not counted yet.
#[inline(always)]
fn count_whole(probe: Probe, socket: SocketPtr, sk: u64, whole: &Range) {
    // SAFETY: a live map value.
    let inode = u64::from(follow::identity(unsafe { (*socket).next }));
    let key = NotificationKey {
        sk,
        inode,
        lo: whole.lo.into(),
    };
    let mut grown = len(whole);
    let known = match NOTIFICATIONS.get_ptr_mut(key) {
        Some(known) => known,
        None => {
            let fresh = Notification { counted: 0 };
            let _ = NOTIFICATIONS.insert(key, fresh, u64::from(BPF_NOEXIST));
            let Some(known) = NOTIFICATIONS.get_ptr_mut(key) else {
                count::failed(MapId::Notifications);
                count::lost(probe, 0);
                return;
            };
            known
        }
    };
    let mut fresh = 0u64;
    for round in 0..EXCHANGES {
        // SAFETY: a field of a live map value.
        let before = unsafe { follow::swap(&raw mut (*known).counted, grown) };
        // Additions and subtractions of all CPUs add up to what stands there at last.
        fresh = fresh.wrapping_add(grown.wrapping_sub(before));
        if before <= grown {
            break;
        }
        // Somebody has seen it grow further: put that back.
        grown = before;
        if round + 1 == EXCHANGES {
            count::unreadable(probe);
        }
    }
    if fresh != 0 {
        count_ids(probe, sk, fresh, 1, whole.outcome);
        follow::remember(socket, whole);
    }
    let other = follow::take_parts(socket, whole);
    if other != 0 {
        move_ids(probe, sk, other, whole.outcome);
    }
}

/// Tracepoint `inet_sk_error_report(sk)`.
#[raw_tracepoint]
pub fn error_report(ctx: RawTracePointContext) -> i32 {
    let sk: u64 = ctx.arg(0);
    let probe = Probe::ErrorReport;
    let Some(whole) = tail(sk).and_then(notification) else {
        return 0;
    };
    count::hit(probe);
    if let Some(socket) = follow::account(probe, sk, whole.lo.into(), false) {
        count_whole(probe, socket, sk, &whole);
    }
    0
}

/// Frames above the one that freed the skb.
const FRAMES: usize = 6;

/// Whether the skb is freed by the completion itself: then it never was in the queue.
#[inline(always)]
fn by_completer(ctx: &RawTracePointContext) -> bool {
    let mut frames = [0u64; FRAMES];
    // SAFETY: the buffer is as long as told.
    let len = unsafe {
        bpf_get_stack(
            ctx.as_ptr(),
            frames.as_mut_ptr().cast(),
            size_of_val(&frames) as u32,
            0,
        )
    };
    let size = fact!(completer_end).wrapping_sub(fact!(completer));
    len > 0
        && frames
            .iter()
            .any(|frame| frame.wrapping_sub(fact!(completer)) < size)
}

/// A notification skb is freed: read, merged, or purged with its socket.
#[inline(always)]
fn freed(ctx: &RawTracePointContext, probe: Probe) {
    let skb: u64 = ctx.arg(0);
    let destructor: u64 = read(skb, offset!(skb_destructor)).unwrap_or(0);
    if destructor == 0 || destructor != fact!(sock_ofree) {
        return;
    }
    let sk: u64 = read(skb, offset!(skb_sk)).unwrap_or(0);
    if sk == 0 {
        return;
    }
    let Some(range) = notification(skb) else {
        unqueued(probe, skb, sk);
        return;
    };
    count::hit(probe);
    let Some(socket) = follow::account(probe, sk, range.lo.into(), false) else {
        return;
    };
    if by_completer(ctx) {
        merged(probe, socket, sk, &range);
    } else {
        count_whole(probe, socket, sk, &range);
    }
}

/// A range was merged into another notification, with which it is counted.
#[inline(always)]
fn merged(probe: Probe, socket: SocketPtr, sk: u64, part: &Range) {
    let mut counted = None;
    if let Some(whole) = tail(sk).and_then(notification)
        && follow::contains(&whole, part)
    {
        // It stands there with all that it has grown by.
        count_whole(probe, socket, sk, &whole);
        counted = Some(whole.outcome);
    }
    match counted.or_else(|| follow::whole_of(socket, part)) {
        Some(outcome) if outcome != part.outcome => move_ids(probe, sk, len(part), outcome),
        Some(_) => {}
        // Its reader has it in hand and it will be counted when it is freed.
        None => follow::remember(
            socket,
            &Range {
                kind: range::PART,
                ..*part
            },
        ),
    }
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
    let _ = follow::account(probe, sk, lo, false);
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
    freed(&ctx, Probe::ConsumeSkb);
    0
}

/// Tracepoint `kfree_skb(skb, …)`.
#[raw_tracepoint]
pub fn kfree_skb(ctx: RawTracePointContext) -> i32 {
    freed(&ctx, Probe::KfreeSkb);
    0
}

/// Tracepoint `sock_send_length(sk, ret, flags)` (from 6.3 on), in the sender's context.
#[raw_tracepoint]
pub fn send_length(ctx: RawTracePointContext) -> i32 {
    let sk: u64 = ctx.arg(0);
    if socket::zerocopy(sk) {
        count::hit(Probe::SendLength);
        let _ = follow::account(Probe::SendLength, sk, follow::NO_ID, true);
    }
    0
}
