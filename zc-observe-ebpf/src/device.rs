//! Network devices as the kernel showed them when a packet was first counted on them.

/// A device in its network namespace: an index alone is not unique on a host.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DeviceKey {
    /// Cookie of the network namespace (`net.net_cookie`, its lower half), which is never
    /// given again as the inode is; the inode where there is no cookie yet, before 5.12.
    pub netns: u32,
    /// Index of the device in it.
    pub ifindex: u32,
}

/// What the device is called and what it is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DeviceInfo {
    /// `net_device.name`, NUL padded.
    pub name: [u8; 16],
    /// `rtnl_link_ops.kind`, NUL padded; empty for devices that no link type made.
    pub kind: [u8; 16],
    /// `net_device.flags`; bit 3 is `IFF_LOOPBACK`.
    pub flags: u32,
    /// `net_device.type`, an `ARPHRD_` value.
    pub kind_number: u32,
}

/// Zero-copy payload that a device took in or was given, before anything copied it
/// (tracepoints `netif_receive_skb` and `net_dev_start_xmit`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DeviceVal {
    /// Packets with zero-copy frags that entered the receive path.
    pub received: u64,
    /// Their `data_len`.
    pub received_bytes: u64,
    /// Packets with zero-copy frags handed to the driver.
    pub transmitted: u64,
    /// Their `data_len`.
    pub transmitted_bytes: u64,
}

pod!(DeviceKey, DeviceInfo, DeviceVal);
