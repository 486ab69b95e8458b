//! What zc-observe's programs in the kernel and its daemon in user space share:
//! map keys and values, and the read-only globals that the daemon fills in
//! before it loads the programs. Plain data, no padding left uninitialised.
//!
//! Counters live in per-CPU maps; a total is the sum over the CPUs. All byte
//! counts are payload bytes, all times nanoseconds, all ids are notification
//! ids (one per send that asked for zero-copy).
#![no_std]

/// Implements [`aya::Pod`] for layouts when user space asks for it.
macro_rules! pod {
    ($($name:ty),+ $(,)?) => {
        $(
            // SAFETY: repr(C), only integers and arrays of them, explicit padding.
            #[cfg(feature = "user")]
            unsafe impl aya::Pod for $name {}
        )+
    };
}

mod complete;
mod copy;
mod device;
mod globals;
mod probe;
mod send;
mod sender;
mod socket;

pub use complete::*;
pub use copy::*;
pub use device::*;
pub use globals::*;
pub use probe::*;
pub use send::*;
pub use sender::*;
pub use socket::*;

/// Buckets of the histograms: bucket `n` counts values up to `2^(FIRST_BUCKET_LOG2 + n)` ns.
pub const BUCKETS: usize = 24;
/// Upper bound of the first bucket, as a power of two of nanoseconds.
pub const FIRST_BUCKET_LOG2: u32 = 8;

/// The bucket that a time falls in; the last one also takes everything above.
#[must_use]
pub const fn bucket(nanos: u64) -> usize {
    let log2 = u64::BITS - nanos.saturating_sub(1).leading_zeros();
    let index = log2.saturating_sub(FIRST_BUCKET_LOG2) as usize;
    if index < BUCKETS { index } else { BUCKETS - 1 }
}

/// Interface through which a send asked for zero-copy.
pub mod api {
    /// `MSG_ZEROCOPY` on a socket with `SO_ZEROCOPY`.
    pub const MSG_ZEROCOPY: u8 = 1;
    /// `io_uring` `SEND_ZC` and `SENDMSG_ZC`.
    pub const IO_URING: u8 = 2;
}

/// How a completion came out, as its flag says.
pub mod outcome {
    /// The kernel says that it did not copy.
    pub const ZEROCOPY: u8 = 0;
    /// The kernel says that it copied.
    pub const COPIED: u8 = 1;
}
