//! Counting: atomic adds to per-CPU values, and the observer's own accounts.

use core::intrinsics::{AtomicOrdering, atomic_xadd};

use aya_ebpf::{bindings::BPF_NOEXIST, maps::PerCpuHashMap};
use zc_observe_ebpf::{MapId, Probe, ProbeVal};

use super::maps::{MAP_FAILURES, PROBES};

/// Adds to a counter. Atomic, since an interrupt may count in between; the result is not
/// used, so that kernels before 5.12 accept it.
#[inline(always)]
pub fn add(counter: *mut u64, n: u64) {
    // SAFETY: callers pass the address of an aligned u64 in a map value.
    let _ = unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(counter, n) };
}

/// Takes from a counter.
#[inline(always)]
pub fn sub(counter: *mut u64, n: u64) {
    add(counter, n.wrapping_neg());
}

/// The value of `key`, made from `zero` if it is new; `None` when the map is full.
/// The flag says whether it is new.
#[inline(always)]
pub fn entry<K, V>(
    map: &PerCpuHashMap<K, V>,
    id: MapId,
    key: &K,
    zero: &V,
) -> Option<(*mut V, bool)> {
    if let Some(value) = map.get_ptr_mut(key) {
        return Some((value, false));
    }
    // A failure is either a full map or another CPU being first; the lookup tells.
    let _ = map.insert(key, zero, u64::from(BPF_NOEXIST));
    let Some(value) = map.get_ptr_mut(key) else {
        failed(id);
        return None;
    };
    Some((value, true))
}

/// Counts an insert that failed.
#[inline(always)]
pub fn failed(id: MapId) {
    if let Some(failures) = MAP_FAILURES.get_ptr_mut(id as u32) {
        add(failures, 1);
    }
}

/// A field of a probe's own account.
#[inline(always)]
fn account(probe: Probe) -> Option<*mut ProbeVal> {
    PROBES.get_ptr_mut(probe as u32)
}

/// The probe had something to count.
#[inline(always)]
pub fn hit(probe: Probe) {
    if let Some(value) = account(probe) {
        // SAFETY: a field of the map value.
        add(unsafe { &raw mut (*value).hits }, 1);
    }
}

/// A count was lost because a map had no room.
#[inline(always)]
pub fn lost(probe: Probe, bytes: u64) {
    if let Some(value) = account(probe) {
        // SAFETY: a field of the map value.
        add(unsafe { &raw mut (*value).lost }, 1);
        // SAFETY: a field of the map value.
        add(unsafe { &raw mut (*value).lost_bytes }, bytes);
    }
}

/// An event could not be read.
#[inline(always)]
pub fn unreadable(probe: Probe) {
    if let Some(value) = account(probe) {
        // SAFETY: a field of the map value.
        add(unsafe { &raw mut (*value).unreadable }, 1);
    }
}

/// Adds to fields of a map value.
macro_rules! bump {
    ($value:expr, $($field:ident $(. $sub:ident)? $([$index:expr])? += $n:expr),+ $(,)?) => {{
        let value = $value;
        $(
            // SAFETY: a field of a live map value.
            $crate::programs::count::add(
                unsafe { &raw mut (*value).$field $([$index])? },
                $n,
            );
        )+
    }};
}

pub(crate) use bump;
