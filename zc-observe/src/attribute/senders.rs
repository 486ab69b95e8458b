//! Senders in words: process, user, control group, container.

use std::collections::HashMap;

use zc_observe_ebpf::{SenderKey, known};

use super::cgroups::{Cgroups, container};
use super::devices::text;
use super::sockets::Sockets;
use crate::kernel::host::Host;

/// Value of the labels `comm` and `cgroup` where it is not known.
pub const UNKNOWN: &str = "unknown";
/// Value of the labels `comm` and `cgroup` for all who had no room of their own.
pub const OTHER: &str = "other";

/// A sender in words.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Identity {
    /// Name of the process: label `comm`.
    pub comm: String,
    /// Path of the control group: label `cgroup`.
    pub cgroup: String,
    /// Process id, if it means anything here.
    pub pid: Option<u32>,
    /// User id.
    pub uid: Option<u32>,
    /// Id of the container.
    pub container: Option<String>,
}

impl Identity {
    /// Not one sender.
    fn nobody(label: &str) -> Self {
        Self {
            comm: label.to_owned(),
            cgroup: label.to_owned(),
            pid: None,
            uid: None,
            container: None,
        }
    }
}

/// Finds out who senders are.
#[derive(Debug)]
pub struct Senders {
    cgroups: Cgroups,
    sockets: Sockets,
    /// Whether the kernel's process ids are those of our `/proc`.
    pids_are_ours: bool,
    /// Those that were asked for. An answer stays as it was first given: counters that moved
    /// from one name to another would seem to have been reset.
    answers: HashMap<SenderKey, Identity>,
}

impl Senders {
    /// On this host.
    #[must_use]
    pub fn new(host: &Host) -> Self {
        Self::with(Cgroups::new(), Sockets::new(), host.initial_pid_namespace)
    }

    /// From given sources.
    #[must_use]
    pub fn with(cgroups: Cgroups, sockets: Sockets, pids_are_ours: bool) -> Self {
        Self {
            cgroups,
            sockets,
            pids_are_ours,
            answers: HashMap::new(),
        }
    }

    /// Looks at the host again for senders that are asked for the first time from now on; once
    /// per scrape.
    pub fn refresh(&mut self) {
        self.cgroups.forget_unknown();
        self.sockets.forget();
    }

    /// Who a sender is.
    pub fn identify(&mut self, key: &SenderKey) -> Identity {
        if let Some(identity) = self.answers.get(key) {
            return identity.clone();
        }
        let identity = self.look_up(key);
        self.answers.insert(*key, identity.clone());
        identity
    }

    fn look_up(&mut self, key: &SenderKey) -> Identity {
        match key.known {
            known::PROCESS => self.process(key),
            known::INODE => self.holder(key),
            known::OTHER => Identity::nobody(OTHER),
            _ => Identity::nobody(UNKNOWN),
        }
    }

    fn process(&mut self, key: &SenderKey) -> Identity {
        let comm = text(&key.comm);
        let cgroup = self.cgroups.path(key.cgroup);
        Identity {
            comm: if comm.is_empty() {
                UNKNOWN.to_owned()
            } else {
                comm.to_owned()
            },
            cgroup: cgroup.unwrap_or(UNKNOWN).to_owned(),
            pid: self.pids_are_ours.then_some(key.tgid),
            uid: Some(key.uid),
            container: cgroup.and_then(container).map(str::to_owned),
        }
    }

    /// Only the socket is known: the process that holds it now is the likely sender. From
    /// another pid namespace we would see some of the holders and might name the wrong one.
    fn holder(&mut self, key: &SenderKey) -> Identity {
        let unknown = Identity {
            uid: Some(key.uid),
            ..Identity::nobody(UNKNOWN)
        };
        if !self.pids_are_ours {
            return unknown;
        }
        let Some(holder) = self.sockets.holder(key.inode) else {
            return unknown;
        };
        let (comm, pid) = (holder.comm.clone(), holder.pid);
        let cgroup = cgroup_of(pid).unwrap_or_else(|| UNKNOWN.to_owned());
        let container = container(&cgroup).map(str::to_owned);
        Identity {
            comm,
            cgroup,
            pid: Some(pid),
            uid: Some(key.uid),
            container,
        }
    }
}

/// Path of a process's control group in the cgroup2 hierarchy.
fn cgroup_of(pid: u32) -> Option<String> {
    unified(&std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
}

/// The line of the cgroup2 hierarchy in the text of `/proc/PID/cgroup`. A path that begins
/// with `/..` lies outside of what we see.
fn unified(text: &str) -> Option<String> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    (!path.starts_with("/..")).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn key(known: u32, comm: &str) -> SenderKey {
        let mut key = SenderKey {
            known,
            tgid: 4711,
            uid: 1000,
            ..SenderKey::default()
        };
        key.comm[..comm.len()].copy_from_slice(comm.as_bytes());
        key
    }

    fn nothing() -> (Cgroups, Sockets) {
        (
            Cgroups::at(None),
            Sockets::at(std::path::Path::new("/nonexistent")),
        )
    }

    #[test]
    fn a_process_keeps_what_was_learnt_when_it_sent() {
        let root = tempfile::tempdir().unwrap();
        let id = "0123456789abcdef".repeat(4);
        let folder = root.path().join(format!("docker-{id}.scope"));
        std::fs::create_dir(&folder).unwrap();
        let cgroup = std::fs::metadata(&folder).unwrap().ino();
        let cgroups = Cgroups::at(Some(root.path().to_path_buf()));
        let mut senders = Senders::with(cgroups, nothing().1, true);
        let found = senders.identify(&SenderKey {
            cgroup,
            ..key(known::PROCESS, "nginx")
        });
        assert_eq!(
            found,
            Identity {
                comm: "nginx".into(),
                cgroup: format!("/docker-{id}.scope"),
                pid: Some(4711),
                uid: Some(1000),
                container: Some(id),
            }
        );
        let gone = senders.identify(&SenderKey {
            cgroup: cgroup + 1_000_000,
            ..key(known::PROCESS, "nginx")
        });
        assert_eq!(
            (gone.comm.as_str(), gone.cgroup.as_str()),
            ("nginx", "unknown")
        );
    }

    #[test]
    fn in_another_pid_namespace_ids_mean_nothing() {
        let (cgroups, sockets) = nothing();
        let mut senders = Senders::with(cgroups, sockets, false);
        assert_eq!(senders.identify(&key(known::PROCESS, "nginx")).pid, None);
        assert_eq!(senders.identify(&key(known::INODE, "")).comm, "unknown");
    }

    #[test]
    fn a_socket_leads_to_the_process_that_holds_it() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&socket));
        let inode = std::fs::metadata(link).unwrap().ino();
        let mut senders = Senders::with(Cgroups::at(None), Sockets::new(), true);
        let found = senders.identify(&SenderKey {
            inode,
            ..key(known::INODE, "")
        });
        assert_eq!(found.pid, Some(std::process::id()));
        assert_ne!(found.comm, "unknown");
        drop(socket);
        senders.refresh();
        let again = senders.identify(&SenderKey {
            inode,
            ..key(known::INODE, "")
        });
        assert_eq!(again, found, "an answer stays");
        let none = senders.identify(&SenderKey {
            inode: 1,
            ..key(known::INODE, "")
        });
        assert_eq!((none.comm.as_str(), none.uid), ("unknown", Some(1000)));
    }

    #[test]
    fn those_without_a_name_are_other_or_unknown() {
        let (cgroups, sockets) = nothing();
        let mut senders = Senders::with(cgroups, sockets, true);
        assert_eq!(
            senders.identify(&key(known::OTHER, "")),
            Identity::nobody("other")
        );
        assert_eq!(
            senders.identify(&key(known::NOTHING, "")),
            Identity::nobody("unknown")
        );
        assert_eq!(senders.identify(&key(99, "x")), Identity::nobody("unknown"));
    }

    #[test]
    fn the_unified_line_is_found_in_all_layouts() {
        assert_eq!(unified("0::/user.slice\n").as_deref(), Some("/user.slice"));
        assert_eq!(unified("4:memory:/x\n0::/y\n").as_deref(), Some("/y"));
        assert_eq!(unified("4:memory:/x\n"), None);
        assert_eq!(unified("0::/../other\n"), None);
    }
}
