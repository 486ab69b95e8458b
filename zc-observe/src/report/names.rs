//! The names that this host gives to what snapshots hold.

use std::collections::HashMap;

use zc_observe_ebpf::{DeviceKey, SenderKey};

use super::{Attribution, DeviceLabel, SenderLabel};
use crate::attribute::devices::Devices;
use crate::attribute::senders::Senders;
use crate::causes::matcher;
use crate::kernel::host::{Host, Version};
use crate::snapshot::{DeepCopies, Snapshot};

/// Names for one snapshot after the other.
#[derive(Debug)]
pub struct Names {
    kernel: Version,
    devices: Devices,
    senders: Senders,
    /// A sender keeps the name that its counts were first shown under: a counter that
    /// moved to another name would be counted twice.
    named: HashMap<SenderKey, SenderLabel>,
}

impl Names {
    /// Names on this host.
    #[must_use]
    pub fn new(host: &Host) -> Self {
        Self {
            kernel: host.version,
            devices: Devices::default(),
            senders: Senders::new(host),
            named: HashMap::new(),
        }
    }

    /// Takes the next snapshot.
    pub fn next(&mut self, snapshot: &Snapshot) {
        self.devices = Devices::new(&snapshot.devices);
        self.senders.refresh();
        let mut before = std::mem::take(&mut self.named);
        for sender in &snapshot.senders {
            let name = before.remove(&sender.key).unwrap_or_else(|| {
                let identity = self.senders.identify(&sender.key);
                SenderLabel {
                    comm: identity.comm,
                    cgroup: identity.cgroup,
                }
            });
            self.named.insert(sender.key, name);
        }
    }
}

impl Attribution for Names {
    fn cause(&self, copies: &DeepCopies) -> &'static str {
        matcher::classify_copies(copies, self.kernel).cause.id
    }

    fn device(&self, key: Option<DeviceKey>) -> DeviceLabel {
        let (name, kind) = self.devices.labels(key);
        DeviceLabel::new(name, kind)
    }

    fn sender(&self, key: &SenderKey) -> SenderLabel {
        self.named.get(key).cloned().unwrap_or_else(|| SenderLabel {
            comm: "unknown".to_owned(),
            cgroup: "unknown".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{deep_copies, snapshot};
    use super::*;
    use crate::snapshot::Sender;

    fn names() -> Names {
        Names {
            kernel: Version(6, 18),
            ..Names::new(&Host::read())
        }
    }

    #[test]
    fn causes_come_from_the_closed_list() {
        let names = names();
        let copies = |caller| deep_copies(caller, 1, 1);
        let known = names.cause(&copies("skb_orphan_frags_rx"));
        assert!(crate::causes::by_id(known).is_some(), "{known}");
        assert_eq!(names.cause(&copies("no_such_function")), "unknown");
    }

    #[test]
    fn a_sender_keeps_its_name_while_it_is_counted() {
        let mut names = names();
        let mut snapshot = snapshot();
        let key = SenderKey {
            known: zc_observe_ebpf::known::INODE,
            inode: 1,
            ..SenderKey::default()
        };
        snapshot.senders.push(Sender {
            key,
            ..snapshot.senders[0]
        });
        names.next(&snapshot);
        let first = names.sender(&key);
        names.named.insert(
            key,
            SenderLabel {
                comm: "found".to_owned(),
                ..first
            },
        );
        names.next(&snapshot);
        assert_eq!(names.sender(&key).comm, "found", "not looked up again");
        snapshot.senders.pop();
        names.next(&snapshot);
        assert_eq!(
            names.named.len(),
            snapshot.senders.len(),
            "and forgotten with its counts"
        );
        assert_eq!(names.sender(&snapshot.senders[0].key).comm, "sender");
    }
}
