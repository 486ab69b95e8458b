//! The names that this host gives to what a snapshot holds.

use std::collections::HashMap;

use zc_observe_ebpf::{DeviceInfo, DeviceKey, SenderKey, known};

use super::{Attribution, DeviceLabel, SenderLabel};
use crate::snapshot::{DeepCopies, Snapshot};

/// Names as the kernel's programs saw them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    devices: HashMap<DeviceKey, DeviceLabel>,
}

impl Names {
    /// Names of the devices in a snapshot.
    #[must_use]
    pub fn of(snapshot: &Snapshot) -> Self {
        let devices = snapshot
            .devices
            .iter()
            .map(|device| (device.key, label(&device.info)));
        Self {
            devices: devices.collect(),
        }
    }
}

impl Attribution for Names {
    fn cause(&self, _copies: &DeepCopies) -> &'static str {
        "unknown"
    }

    fn device(&self, key: Option<DeviceKey>) -> DeviceLabel {
        key.map_or_else(DeviceLabel::none, |key| {
            let known = self.devices.get(&key).cloned();
            known.unwrap_or_else(|| DeviceLabel::new("unknown", "unknown"))
        })
    }

    fn sender(&self, key: &SenderKey) -> SenderLabel {
        let comm = match key.known {
            known::PROCESS => text(&key.comm),
            known::OTHER => "other".to_owned(),
            _ => "unknown".to_owned(),
        };
        SenderLabel {
            comm,
            cgroup: String::new(),
        }
    }
}

fn label(info: &DeviceInfo) -> DeviceLabel {
    let kind = text(&info.kind);
    let kind = match kind.as_str() {
        "" if info.flags & libc::IFF_LOOPBACK.unsigned_abs() != 0 => "loopback".to_owned(),
        "" => "physical".to_owned(),
        _ => kind,
    };
    DeviceLabel::new(text(&info.name), kind)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
