//! Devices: what they are called, and the zero-copy bytes that pass them.

use aya_ebpf::{
    EbpfContext, bindings::BPF_NOEXIST, helpers::bpf_probe_read_kernel_str_bytes,
    macros::raw_tracepoint, programs::RawTracePointContext,
};
use aya_log_ebpf::debug;
use zc_observe_ebpf::{DeviceInfo, DeviceKey, DeviceVal, MapId, Probe};

use super::{
    count::{self, bump},
    kernel::{offset, read},
    maps::{DEVICE_BYTES, DEVICES},
    skb,
};

/// The key of a device, and a note of its name and kind if it is new.
#[inline(always)]
pub fn note<C: EbpfContext>(ctx: &C, dev: u64) -> Option<DeviceKey> {
    let net: u64 = read(dev, offset!(dev_net))?;
    let cookie: u64 = read(net, offset!(net_cookie)).unwrap_or(0);
    let key = DeviceKey {
        netns: match cookie as u32 {
            0 => read(net, offset!(net_inum))?,
            cookie => cookie,
        },
        ifindex: read(dev, offset!(dev_ifindex))?,
    };
    if DEVICES.get_ptr(key).is_none() {
        let info = DeviceInfo {
            name: read(dev, offset!(dev_name)).unwrap_or_default(),
            kind: kind(dev),
            flags: read(dev, offset!(dev_flags)).unwrap_or(0),
            kind_number: read::<u16>(dev, offset!(dev_type)).unwrap_or(0).into(),
        };
        debug!(ctx, "new device {} in namespace {}", key.ifindex, key.netns);
        if DEVICES.insert(key, info, u64::from(BPF_NOEXIST)).is_err()
            && DEVICES.get_ptr(key).is_none()
        {
            count::failed(MapId::Devices);
        }
    }
    Some(key)
}

/// `rtnl_link_ops.kind`.
#[inline(always)]
fn kind(dev: u64) -> [u8; 16] {
    let mut kind = [0u8; 16];
    let name = read::<u64>(dev, offset!(dev_rtnl_link_ops))
        .and_then(|ops| read::<u64>(ops, offset!(rtnl_link_ops_kind)));
    if let Some(name) = name {
        // SAFETY: the helper checks the address.
        let _ = unsafe { bpf_probe_read_kernel_str_bytes(name as *const u8, &mut kind) };
    }
    kind
}

static ZERO: DeviceVal = DeviceVal {
    received: 0,
    received_bytes: 0,
    transmitted: 0,
    transmitted_bytes: 0,
};

/// The account of a device for a zero-copy skb, and its payload bytes.
#[inline(always)]
fn account<C: EbpfContext>(
    ctx: &C,
    probe: Probe,
    skb: u64,
    dev: u64,
) -> Option<(*mut DeviceVal, u64)> {
    let bytes = u64::from(skb::data_len(skb));
    if bytes == 0 {
        return None;
    }
    skb::zerocopy(skb)?;
    count::hit(probe);
    let Some(key) = note(ctx, dev) else {
        count::unreadable(probe);
        return None;
    };
    let Some((value, _)) = count::entry(&DEVICE_BYTES, MapId::DeviceBytes, &key, &ZERO) else {
        count::lost(probe, bytes);
        return None;
    };
    Some((value, bytes))
}

/// Tracepoint `netif_receive_skb(skb)`: entry of the receive path.
#[raw_tracepoint]
pub fn device_receive(ctx: RawTracePointContext) -> i32 {
    let skb: u64 = ctx.arg(0);
    if skb::data_len(skb) != 0 {
        let dev = read(skb, offset!(skb_dev)).unwrap_or(0);
        if let Some((value, bytes)) = account(&ctx, Probe::DeviceReceive, skb, dev) {
            bump!(value, received += 1, received_bytes += bytes);
        }
    }
    0
}

/// Tracepoint `net_dev_start_xmit(skb, dev)`: just before the driver.
#[raw_tracepoint]
pub fn device_transmit(ctx: RawTracePointContext) -> i32 {
    let skb: u64 = ctx.arg(0);
    if let Some((value, bytes)) = account(&ctx, Probe::DeviceTransmit, skb, ctx.arg(1)) {
        bump!(value, transmitted += 1, transmitted_bytes += bytes);
    }
    0
}
