//! Which process holds a socket, by the socket's inode.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::sys::stat;

/// Descriptors looked at in one scan; a host with more has their rest unknown.
const MAX_DESCRIPTORS: usize = 1_000_000;

/// A process that holds a socket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holder {
    /// Its id, as this process sees it.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Its user.
    pub uid: u32,
}

/// Sockets by inode, from one scan of all processes. Several can hold one socket; the one
/// of the lowest id counts, as parents come before those that they hand sockets to.
#[derive(Debug, Default)]
pub struct Sockets {
    proc: PathBuf,
    holders: Option<HashMap<u64, Holder>>,
}

impl Sockets {
    /// Scans `/proc` when first asked.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Path::new("/proc"))
    }

    /// Scans another folder.
    #[must_use]
    pub fn at(proc: &Path) -> Self {
        Self {
            proc: proc.to_path_buf(),
            holders: None,
        }
    }

    /// The process that held a socket at the time of the scan; `None` if none that we may
    /// look into (`CAP_SYS_PTRACE`) did.
    pub fn holder(&mut self, inode: u64) -> Option<&Holder> {
        let proc = &self.proc;
        self.holders.get_or_insert_with(|| scan(proc)).get(&inode)
    }

    /// Forgets the scan, so that the next question makes a new one: once per scrape.
    pub fn forget(&mut self) {
        self.holders = None;
    }
}

fn scan(proc: &Path) -> HashMap<u64, Holder> {
    let mut holders = HashMap::new();
    let mut left = MAX_DESCRIPTORS;
    let mut pids: Vec<u32> = fs::read_dir(proc)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    for pid in pids {
        let process = proc.join(pid.to_string());
        // Processes come and go, and others are not ours to look into.
        let Ok(descriptors) = fs::read_dir(process.join("fd")) else {
            continue;
        };
        let mut holder = None;
        for descriptor in descriptors.flatten() {
            if left == 0 {
                return holders;
            }
            left -= 1;
            let Ok(target) = fs::read_link(descriptor.path()) else {
                continue;
            };
            let Some(inode) = socket_inode(target.as_os_str().as_bytes()) else {
                continue;
            };
            let holder = holder.get_or_insert_with(|| Holder {
                pid,
                comm: fs::read_to_string(process.join("comm"))
                    .unwrap_or_default()
                    .trim_end()
                    .to_owned(),
                uid: stat::stat(&process).map_or(u32::MAX, |stat| stat.st_uid),
            });
            holders.entry(inode).or_insert_with(|| holder.clone());
        }
    }
    holders
}

/// The inode in a link such as `socket:[4711]`.
fn socket_inode(link: &[u8]) -> Option<u64> {
    std::str::from_utf8(link)
        .ok()?
        .strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(proc: &Path, pid: u32, comm: &str, links: &[&str]) {
        let fd = proc.join(pid.to_string()).join("fd");
        fs::create_dir_all(&fd).unwrap();
        fs::write(proc.join(pid.to_string()).join("comm"), format!("{comm}\n")).unwrap();
        for (number, link) in links.iter().enumerate() {
            std::os::unix::fs::symlink(link, fd.join(number.to_string())).unwrap();
        }
    }

    #[test]
    fn sockets_are_found_and_the_first_holder_counts() {
        let proc = tempfile::tempdir().unwrap();
        process(proc.path(), 30, "worker", &["socket:[7]", "socket:[8]"]);
        process(
            proc.path(),
            4,
            "parent",
            &["/dev/null", "pipe:[8]", "socket:[7]"],
        );
        fs::create_dir(proc.path().join("sys")).unwrap();
        let mut sockets = Sockets::at(proc.path());
        let comm = |holder: Option<&Holder>| holder.map(|holder| (holder.pid, holder.comm.clone()));
        assert_eq!(comm(sockets.holder(7)), Some((4, "parent".into())));
        assert_eq!(comm(sockets.holder(8)), Some((30, "worker".into())));
        assert_eq!(sockets.holder(9), None);

        process(proc.path(), 31, "late", &["socket:[9]"]);
        assert_eq!(sockets.holder(9), None, "one scan");
        sockets.forget();
        assert_eq!(comm(sockets.holder(9)), Some((31, "late".into())));
    }

    #[test]
    fn our_own_socket_is_found() {
        use std::os::unix::fs::MetadataExt;
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&socket));
        let inode = fs::metadata(path).unwrap().ino();
        let mut sockets = Sockets::new();
        assert_eq!(
            sockets.holder(inode).map(|holder| holder.pid),
            Some(std::process::id())
        );
    }
}
