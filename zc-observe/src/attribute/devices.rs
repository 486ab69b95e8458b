//! Devices by name and kind.

use std::collections::HashMap;

use zc_observe_ebpf::{DeviceInfo, DeviceKey};

use crate::snapshot::Device;

/// `IFF_LOOPBACK` in [`DeviceInfo::flags`].
const IFF_LOOPBACK: u32 = 1 << 3;

/// Value of the label `device_kind` where a packet had no device.
pub const NONE: &str = "none";
/// Value of the labels `device` and `device_kind` where the device could not be read.
pub const UNKNOWN: &str = "unknown";
/// Value of the label `device_kind` for devices that no link type made: hardware.
pub const PHYSICAL: &str = "physical";
/// Value of the label `device_kind` for link types that are not in the list.
pub const OTHER: &str = "other";

/// Link types that are told apart, as `ip -details link` names them. tun and tap are both
/// `tun`; macvtap and ipvtap are what vhost uses.
const KINDS: &[&str] = &[
    "bond",
    "bridge",
    "dummy",
    "erspan",
    "geneve",
    "gre",
    "gretap",
    "ifb",
    "ip6gre",
    "ip6gretap",
    "ip6tnl",
    "ipip",
    "ipvlan",
    "ipvtap",
    "macsec",
    "macvlan",
    "macvtap",
    "netkit",
    "openvswitch",
    "sit",
    "team",
    "tun",
    "veth",
    "vlan",
    "vrf",
    "vti",
    "vti6",
    "vxlan",
    "wireguard",
    "xfrm",
];

/// Value of the label `device`: the device's name.
#[must_use]
pub fn name(info: &DeviceInfo) -> String {
    let name = text(&info.name);
    if name.is_empty() {
        UNKNOWN.to_owned()
    } else {
        name.to_owned()
    }
}

/// Value of the label `device_kind`, one of a closed set.
#[must_use]
pub fn kind(info: &DeviceInfo) -> &'static str {
    if info.flags & IFF_LOOPBACK != 0 {
        return "loopback";
    }
    if text(&info.name).is_empty() {
        return UNKNOWN;
    }
    match text(&info.kind) {
        "" => PHYSICAL,
        kind => KINDS
            .iter()
            .find(|known| **known == kind)
            .copied()
            .unwrap_or(OTHER),
    }
}

/// Name and kind of the devices of one snapshot.
#[derive(Debug, Default)]
pub struct Devices(HashMap<DeviceKey, (String, &'static str)>);

impl Devices {
    /// Takes the devices of a snapshot.
    #[must_use]
    pub fn new(devices: &[Device]) -> Self {
        Self(
            devices
                .iter()
                .map(|device| (device.key, (name(&device.info), kind(&device.info))))
                .collect(),
        )
    }

    /// Labels `device` and `device_kind` for a packet's device.
    #[must_use]
    pub fn labels(&self, key: Option<DeviceKey>) -> (&str, &'static str) {
        match key {
            None => (NONE, NONE),
            Some(key) => self
                .0
                .get(&key)
                .map_or((UNKNOWN, UNKNOWN), |(name, kind)| (name, kind)),
        }
    }
}

/// A NUL-padded string; empty if it is not text.
pub(super) fn text(bytes: &[u8]) -> &str {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    bytes
        .get(..end)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, kind: &str, flags: u32) -> DeviceInfo {
        let mut info = DeviceInfo {
            flags,
            ..DeviceInfo::default()
        };
        info.name[..name.len()].copy_from_slice(name.as_bytes());
        info.kind[..kind.len()].copy_from_slice(kind.as_bytes());
        info
    }

    #[test]
    fn kinds_are_a_closed_set() {
        assert_eq!(kind(&device("lo", "", 0x49)), "loopback");
        assert_eq!(kind(&device("eth0", "", 0x1043)), "physical");
        assert_eq!(kind(&device("veth0", "veth", 0x1043)), "veth");
        assert_eq!(kind(&device("tap0", "tun", 0x1043)), "tun");
        assert_eq!(kind(&device("new0", "made_up", 0x1043)), "other");
        assert_eq!(kind(&device("", "", 0)), "unknown");
        assert!(KINDS.is_sorted());
    }

    #[test]
    fn names_end_at_the_first_nul() {
        assert_eq!(
            name(&device("exactly15chars_", "veth", 0)),
            "exactly15chars_"
        );
        assert_eq!(name(&device("", "", 0)), "unknown");
        let broken = DeviceInfo {
            name: [0xff; 16],
            ..DeviceInfo::default()
        };
        assert_eq!(name(&broken), "unknown");
    }

    #[test]
    fn one_index_in_two_namespaces_is_two_devices() {
        let key = |netns| DeviceKey { netns, ifindex: 2 };
        let devices = Devices::new(&[
            Device {
                key: key(1),
                info: device("eth0", "", 0),
            },
            Device {
                key: key(2),
                info: device("eth0", "veth", 0),
            },
        ]);
        assert_eq!(devices.labels(Some(key(1))), ("eth0", "physical"));
        assert_eq!(devices.labels(Some(key(2))), ("eth0", "veth"));
        assert_eq!(devices.labels(Some(key(3))), ("unknown", "unknown"));
        assert_eq!(devices.labels(None), ("none", "none"));
    }
}
