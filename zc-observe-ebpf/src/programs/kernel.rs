//! Reads of kernel memory, at offsets that user space filled in.

use core::ffi::c_void;

use aya_ebpf::helpers::bpf_probe_read_kernel;
use zc_observe_ebpf::{ABSENT, Kernel, Offsets};

#[unsafe(no_mangle)]
pub static OFFSETS: Offsets = Offsets::NONE;

#[unsafe(no_mangle)]
pub static KERNEL: Kernel = Kernel::NONE;

/// The offset of a field; volatile, since the value in the object is not the one at run time.
macro_rules! offset {
    ($field:ident) => {{
        // SAFETY: a field of a static.
        unsafe { core::ptr::read_volatile(&raw const $crate::programs::kernel::OFFSETS.$field) }
    }};
}

/// A fact about the running kernel; volatile for the same reason.
macro_rules! fact {
    ($field:ident) => {{
        // SAFETY: a field of a static.
        unsafe { core::ptr::read_volatile(&raw const $crate::programs::kernel::KERNEL.$field) }
    }};
}

pub(crate) use {fact, offset};

/// Reads the field at `offset` of the struct at `base`.
#[inline(always)]
pub fn read<T>(base: u64, offset: u32) -> Option<T> {
    if base == 0 || offset == ABSENT {
        return None;
    }
    // SAFETY: the helper checks the address and fails on a bad one.
    unsafe { bpf_probe_read_kernel((base + u64::from(offset)) as *const T) }.ok()
}

/// Argument `n` of a traced function (fentry, fexit), or its return value at `n` = number
/// of arguments. Read through a helper so that the verifier sees a number, not a typed
/// pointer: the offsets are not known to its type information.
#[inline(always)]
pub fn traced_arg(ctx: *mut c_void, n: usize) -> u64 {
    // SAFETY: the context holds the arguments and the return value in u64 slots; the
    // helper checks the address.
    unsafe { bpf_probe_read_kernel((ctx as *const u64).wrapping_add(n)) }.unwrap_or(0)
}
