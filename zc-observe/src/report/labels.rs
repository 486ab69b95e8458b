//! Label values that are derived from numbers, and who supplies the others.

use crate::snapshot::DeepCopies;
use zc_observe_ebpf::{DeviceKey, SenderKey};

/// A device in two labels: `device` and `device_kind`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DeviceLabel {
    /// Name, such as `eth0`; `none` for an skb without a device.
    pub name: String,
    /// Kind, such as `loopback` or `veth`; `none` for an skb without a device.
    pub kind: String,
}

impl DeviceLabel {
    /// A device from its name and kind.
    pub fn new(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
        }
    }

    /// The skb had no device.
    #[must_use]
    pub fn none() -> Self {
        Self::new("none", "none")
    }
}

/// A sender in two labels: `comm` and `cgroup`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SenderLabel {
    /// Name of the process; `unknown` or `other`.
    pub comm: String,
    /// Path of its control group; empty where unknown.
    pub cgroup: String,
}

/// Names what a snapshot holds as addresses, indexes and ids.
pub trait Attribution {
    /// Id of the cause of these deep copies.
    fn cause(&self, copies: &DeepCopies) -> &'static str;
    /// The device, by the name that it has (or had when it was first seen).
    fn device(&self, key: Option<DeviceKey>) -> DeviceLabel;
    /// The sender.
    fn sender(&self, key: &SenderKey) -> SenderLabel;
}

/// Label `transport` of an `IPPROTO_` number and an `AF_` number.
#[must_use]
pub fn transport(protocol: u16, family: u16) -> &'static str {
    match (i32::from(family), i32::from(protocol)) {
        (libc::AF_VSOCK, _) => "vsock",
        (libc::AF_RDS, _) => "rds",
        (libc::AF_INET | libc::AF_INET6, libc::IPPROTO_TCP) => "tcp",
        (libc::AF_INET | libc::AF_INET6, libc::IPPROTO_UDP) => "udp",
        _ => "other",
    }
}

/// Label `family` of an `AF_` number.
#[must_use]
pub fn family(family: u16) -> &'static str {
    match i32::from(family) {
        libc::AF_INET => "4",
        libc::AF_INET6 => "6",
        _ => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_and_families() {
        assert_eq!((transport(6, 2), family(2)), ("tcp", "4"));
        assert_eq!((transport(17, 10), family(10)), ("udp", "6"));
        assert_eq!((transport(0, 40), family(40)), ("vsock", "none"));
        assert_eq!((transport(0, 21), family(21)), ("rds", "none"));
        assert_eq!((transport(6, 0), family(0)), ("other", "none"));
        assert_eq!(transport(255, 2), "other", "raw sockets");
    }
}
