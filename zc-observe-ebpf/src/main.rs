//! zc-observe's programs in the kernel: one file per group of probes.
//!
//! The event path allocates nothing and takes no lock of its own: every count is an
//! atomic add to a per-CPU value, since a program can be interrupted by another one.
#![no_std]
#![no_main]
// The target has atomic adds and exchanges, yet no compare-and-swap, and `core` gives atomic
// types only to targets that have it. The toolchain is pinned when this is built.
#![feature(core_intrinsics)]
#![expect(internal_features, reason = "see above")]
#![expect(
    unreachable_pub,
    reason = "the programs and maps are named by their macros and used by name only"
)]

mod programs;

/// The helpers that read kernel memory want a licence compatible with the GPL.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[cfg(not(test))]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
