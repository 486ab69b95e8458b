//! Sockets as the tracepoint tier follows them: the ids they gave out, from their counter
//! `sk_zckey`, and the ranges counted last.

use core::intrinsics::{AtomicOrdering, atomic_xchg};

use aya_ebpf::bindings::BPF_NOEXIST;
use zc_observe_ebpf::{MapId, Probe, Range, SocketVal, range};

use super::{
    count::{self, bump},
    kernel::{offset, read},
    maps::{ATTEMPTS, SOCKETS},
    send::ZERO as NO_ATTEMPTS,
    sender, socket,
};

/// A socket's entry.
pub type SocketPtr = *mut SocketVal;

/// Exchanges a value at once; kernels from 5.12 on, as this tier needs 5.14 anyway.
///
/// # Safety
/// `place` is a live, aligned u64 in a map value.
#[inline(always)]
pub unsafe fn swap(place: *mut u64, value: u64) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { atomic_xchg::<u64, { AtomicOrdering::Relaxed }>(place, value) }
}

/// Whether id `a` comes before `b`; ids wrap.
#[inline(always)]
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether `whole` contains `part`.
#[inline(always)]
pub fn contains(whole: &Range, part: &Range) -> bool {
    !before(part.lo, whole.lo) && !before(whole.hi, part.hi)
}

/// No id completes, for [`account`]. Not an `Option`: its unset half would be spilled, and
/// the verifier rejects that up to 6.2.
pub const NO_ID: u64 = u64::MAX;

/// Counts the ids that the socket gave out since it was last looked at. `lo` is an id that
/// completes now: it counts even if it was given out before the observer came. With
/// `sending` the current task is the sender.
#[inline(always)]
pub fn account(probe: Probe, sk: u64, lo: u64, sending: bool) -> Option<SocketPtr> {
    let next: u32 = read(sk, offset!(sk_zckey))?;
    let entry = match SOCKETS.get_ptr_mut(sk) {
        Some(entry) => entry,
        None => {
            let _ = SOCKETS.insert(sk, SocketVal::default(), u64::from(BPF_NOEXIST));
            let Some(entry) = SOCKETS.get_ptr_mut(sk) else {
                count::failed(MapId::Sockets);
                count::lost(probe, 0);
                return None;
            };
            entry
        }
    };
    // SAFETY: a live map value.
    let known = identity(unsafe { (*entry).next });
    let inode = match socket::inode(sk) as u32 {
        // Closed: it is the one that was there, if there was one.
        0 if known == 0 => u32::MAX,
        0 => known,
        inode => inode,
    };
    if known != inode {
        // Another socket at the same address, maybe of somebody else.
        sender::forget(sk);
    }
    if sending {
        sender::learn_with_inode(sk, inode.into());
    } else {
        sender::learn_inode(sk, inode.into());
    }
    // Exchanges add up to last minus first, in whatever order several CPUs come here; the
    // first of a socket finds the word of another one.
    // SAFETY: a field of a live map value.
    let old = unsafe { swap(&raw mut (*entry).next, word(inode, next)) };
    if identity(old) == inode {
        given_out(probe, sk, next.wrapping_sub(old as u32) as i32);
    } else {
        let base = first(next, lo);
        // SAFETY: a field of a live map value.
        unsafe { swap(&raw mut (*entry).base, word(inode, base)) };
        // SAFETY: a live map value; ranges of a socket that is gone.
        unsafe { (*entry).gone = [Range::default(); SocketVal::GONE] };
        given_out(probe, sk, next.wrapping_sub(base) as i32);
    }
    if lo != NO_ID {
        let lo = lo as u32;
        // SAFETY: a live map value.
        let base = unsafe { (*entry).base };
        if identity(base) == inode && before(lo, base as u32) {
            // SAFETY: a field of a live map value.
            let old = unsafe { swap(&raw mut (*entry).base, word(inode, lo)) };
            given_out(probe, sk, (old as u32).wrapping_sub(lo) as i32);
        }
    }
    Some(entry)
}

/// Inode and id in one word.
#[inline(always)]
fn word(inode: u32, id: u32) -> u64 {
    u64::from(inode) << 32 | u64::from(id)
}

/// The inode in such a word.
#[inline(always)]
pub fn identity(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The first id that counts: all of a socket that has given out one at most, else only
/// what comes from now on.
#[inline(always)]
fn first(next: u32, lo: u64) -> u32 {
    match lo {
        NO_ID if next <= 1 => 0,
        NO_ID => next,
        lo => lo as u32,
    }
}

/// Counts attempts; an aborted send takes its id back.
#[inline(always)]
fn given_out(probe: Probe, sk: u64, ids: i32) {
    if ids == 0 {
        return;
    }
    let key = socket::key(sk);
    let Some((value, _)) = count::entry(&ATTEMPTS, MapId::Attempts, &key, &NO_ATTEMPTS) else {
        count::lost(probe, 0);
        return;
    };
    let (accepted, aborted) = if ids > 0 {
        (ids as u32, 0)
    } else {
        (0, ids.unsigned_abs())
    };
    bump!(
        value,
        accepted += u64::from(accepted),
        aborted += u64::from(aborted)
    );
    if let Some(sender) = sender::account(sk) {
        bump!(
            sender,
            accepted += u64::from(accepted),
            aborted += u64::from(aborted)
        );
    }
}

/// Keeps a range, in place of the oldest one.
#[inline(always)]
pub fn remember(socket: SocketPtr, range: &Range) {
    // SAFETY: a live map value; `cursor` is masked to be in bounds.
    unsafe {
        let cursor = (*socket).cursor;
        (*socket).cursor = cursor.wrapping_add(1);
        (*socket).gone[cursor as usize & (SocketVal::GONE - 1)] = *range;
    }
}

/// The outcome of the remembered notification that the range is a part of.
#[inline(always)]
pub fn whole_of(socket: SocketPtr, part: &Range) -> Option<u32> {
    for i in 0..SocketVal::GONE {
        // SAFETY: a live map value; `i` is in bounds.
        let known = unsafe { (*socket).gone[i] };
        if known.kind == range::WHOLE && contains(&known, part) {
            return Some(known.outcome);
        }
    }
    None
}

/// Takes the remembered parts of a notification, and says how many ids they have whose
/// outcome is another one.
#[inline(always)]
pub fn take_parts(socket: SocketPtr, whole: &Range) -> u64 {
    let mut ids = 0;
    for i in 0..SocketVal::GONE {
        // SAFETY: a live map value; `i` is in bounds.
        let known = unsafe { &mut (*socket).gone[i] };
        if known.kind == range::PART && contains(whole, known) {
            if known.outcome != whole.outcome {
                ids += len(known);
            }
            known.kind = range::NONE;
        }
    }
    ids
}

/// Number of ids; ids wrap.
#[inline(always)]
pub fn len(range: &Range) -> u64 {
    u64::from(range.hi.wrapping_sub(range.lo)) + 1
}
