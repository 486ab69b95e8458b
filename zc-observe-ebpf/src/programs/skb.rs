//! What an skb carries.

use super::kernel::{fact, offset, read};

/// A zero-copy skb.
#[derive(Clone, Copy)]
pub struct Zerocopy {
    /// Address of its `ubuf_info`; bit 0 set if it has none.
    pub uarg: u64,
    /// The callback that releases it; 1 without `ubuf_info`, 0 if unreadable.
    pub owner: u64,
}

/// Bit of `destructor_arg` for buffers without `ubuf_info` (`skb_zcopy_set_nouarg`).
const NO_UARG: u64 = 1;

/// Whether the skb has zero-copy frags, and whose they are (`skb_zcopy`).
#[inline(always)]
pub fn zerocopy(skb: u64) -> Option<Zerocopy> {
    let head: u64 = read(skb, offset!(skb_head))?;
    let end: u32 = read(skb, offset!(skb_end))?;
    let shinfo = head + u64::from(end);
    let flags: u8 = match offset!(shinfo_flags) {
        zc_observe_ebpf::ABSENT => read(shinfo, offset!(shinfo_tx_flags))?,
        flags => read(shinfo, flags)?,
    };
    if u32::from(flags) & fact!(zerocopy_flag) == 0 {
        return None;
    }
    let uarg: u64 = read(shinfo, offset!(shinfo_destructor_arg))?;
    Some(Zerocopy {
        uarg,
        owner: owner(uarg),
    })
}

/// The callback of a `ubuf_info`.
#[inline(always)]
pub fn owner(uarg: u64) -> u64 {
    if uarg & NO_UARG != 0 {
        return NO_UARG;
    }
    let callback = match offset!(ubuf_ops) {
        zc_observe_ebpf::ABSENT => read(uarg, offset!(ubuf_callback)),
        ops => read::<u64>(uarg, ops).and_then(|ops| read(ops, offset!(ubuf_ops_complete))),
    };
    callback.unwrap_or(0)
}

/// Payload bytes outside the linear part.
#[inline(always)]
pub fn data_len(skb: u64) -> u32 {
    read(skb, offset!(skb_data_len)).unwrap_or(0)
}

/// 4, 6 or 0.
#[inline(always)]
pub fn family(skb: u64) -> u8 {
    match read::<u16>(skb, offset!(skb_protocol)).map(u16::from_be) {
        Some(0x0800) => 4,
        Some(0x86dd) => 6,
        _ => 0,
    }
}

/// The socket that a `MSG_ZEROCOPY` buffer belongs to: its `ubuf_info` lies in the control
/// block of the notification skb, which holds the socket (`skb_from_uarg`).
#[inline(always)]
pub fn sock_of_uarg(uarg: u64) -> u64 {
    let cb = offset!(skb_cb);
    if cb == zc_observe_ebpf::ABSENT || uarg < u64::from(cb) {
        return 0;
    }
    read(uarg - u64::from(cb), offset!(skb_sk)).unwrap_or(0)
}

/// Whether the bit `zerocopy` of a `MSG_ZEROCOPY` buffer is still set.
#[inline(always)]
pub fn still_zerocopy(uarg: u64) -> Option<bool> {
    let byte: u8 = read(uarg, offset!(msgzc_zerocopy))?;
    Some(byte >> (offset!(msgzc_zerocopy_bit) & 7) & 1 == 1)
}
