//! Completions of `MSG_ZEROCOPY`, at the buffer's final release: exact by outcome, where
//! the error queue later merges ranges of different outcomes.

use aya_ebpf::{
    EbpfContext,
    helpers::bpf_ktime_get_ns,
    macros::{fentry, kprobe},
    programs::{FEntryContext, ProbeContext},
};
use zc_observe_ebpf::{BUCKETS, CompletionKey, CompletionVal, MapId, Probe, api, bucket, outcome};

use super::{
    count::{self, bump},
    kernel::{offset, read, traced_arg},
    maps::{BUFFERS, COMPLETIONS, RELEASES},
    sender, skb, socket,
};

pub static ZERO: CompletionVal = CompletionVal {
    ids: 0,
    bytes: 0,
    notifications: 0,
};

const IPPROTO_UDP: u16 = 17;
const UDP_HEADER: u64 = 8;

/// Counts sends that completed.
#[inline(always)]
pub fn count(probe: Probe, key: &CompletionKey, sk: u64, ids: u64, bytes: u64, notifications: u64) {
    let Some((value, _)) = count::entry(&COMPLETIONS, MapId::Completions, key, &ZERO) else {
        count::lost(probe, bytes);
        return;
    };
    bump!(
        value,
        ids += ids,
        bytes += bytes,
        notifications += notifications
    );
    if let Some(sender) = sender::account(sk) {
        let outcome = usize::from(key.outcome & 1);
        bump!(
            sender,
            completed[outcome] += ids,
            completed_bytes[outcome] += bytes
        );
    }
}

/// Counts the time from a buffer's first send to now.
#[inline(always)]
pub fn time(api: u8, start: u64) {
    if let Some(value) = RELEASES.get_ptr_mut(u32::from(api)) {
        // SAFETY: the helper takes nothing.
        let nanos = unsafe { bpf_ktime_get_ns() }.saturating_sub(start);
        bump!(value, count += 1, nanos += nanos);
        let index = bucket(nanos);
        if index < BUCKETS {
            bump!(value, hist[index] += 1);
        }
    }
}

/// `__msg_zerocopy_callback(uarg)`: the last reference is gone.
#[inline(always)]
fn complete(uarg: u64) {
    let probe = Probe::Complete;
    let (Some(len), Some(zerocopy)) = (
        read::<u16>(uarg, offset!(msgzc_len)),
        skb::still_zerocopy(uarg),
    ) else {
        count::unreadable(probe);
        return;
    };
    let buffer = BUFFERS.get_ptr(uarg);
    // Every send was aborted: nothing completes.
    if len != 0 {
        count::hit(probe);
        let sk = skb::sock_of_uarg(uarg);
        let ids = u64::from(len);
        let protocol = socket::protocol(sk);
        let bytes = if let Some(buffer) = buffer {
            // SAFETY: a live map value.
            time(api::MSG_ZEROCOPY, unsafe { (*buffer).start });
            // SAFETY: a live map value.
            unsafe { (*buffer).bytes }
        } else {
            // Sent before the observer came.
            let asked = u64::from(read::<u32>(uarg, offset!(msgzc_bytelen)).unwrap_or(0));
            if protocol == IPPROTO_UDP {
                asked.saturating_sub(UDP_HEADER * ids)
            } else {
                asked
            }
        };
        let key = CompletionKey {
            protocol,
            family: socket::family(sk),
            api: api::MSG_ZEROCOPY,
            outcome: if zerocopy {
                outcome::ZEROCOPY
            } else {
                outcome::COPIED
            },
            pad: [0; 2],
        };
        count(probe, &key, sk, ids, bytes, 1);
    }
    if buffer.is_some() {
        let _ = BUFFERS.remove(uarg);
    }
}

#[fentry]
pub fn complete_fentry(ctx: FEntryContext) -> i32 {
    complete(traced_arg(ctx.as_ptr(), 0));
    0
}

#[kprobe]
pub fn complete_kprobe(ctx: ProbeContext) -> u32 {
    complete(ctx.arg(0).unwrap_or(0));
    0
}
