//! What a socket says of itself.

use zc_observe_ebpf::{AttemptKey, api};

use super::kernel::{fact, offset, read};

/// Inode of its network namespace; 0 if unreadable.
#[inline(always)]
pub fn netns(sk: u64) -> u32 {
    read::<u64>(sk, offset!(sk_net))
        .and_then(|net| read(net, offset!(net_inum)))
        .unwrap_or(0)
}

/// Inode of the socket; 0 once its file is closed.
#[inline(always)]
pub fn inode(sk: u64) -> u64 {
    read::<u64>(sk, offset!(sk_socket))
        .and_then(|socket| read(socket, offset!(socket_ino)))
        .unwrap_or(0)
}

/// `IPPROTO_` number.
#[inline(always)]
pub fn protocol(sk: u64) -> u16 {
    read(sk, offset!(sk_protocol)).unwrap_or(0)
}

/// `AF_` number.
#[inline(always)]
pub fn family(sk: u64) -> u16 {
    read(sk, offset!(sk_family)).unwrap_or(0)
}

/// What its `MSG_ZEROCOPY` sends are counted by.
#[inline(always)]
pub fn key(sk: u64) -> AttemptKey {
    AttemptKey {
        protocol: protocol(sk),
        family: family(sk),
        api: api::MSG_ZEROCOPY,
        pad: [0; 3],
    }
}

/// Whether `SO_ZEROCOPY` is on.
#[inline(always)]
pub fn zerocopy(sk: u64) -> bool {
    let flags: u64 = read(sk, offset!(sk_flags)).unwrap_or(0);
    flags >> (fact!(sock_zerocopy_bit) & 63) & 1 == 1
}
