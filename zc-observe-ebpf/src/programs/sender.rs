//! Senders: learnt when a socket sends, counted by from then on.

use aya_ebpf::helpers::{
    bpf_get_current_cgroup_id, bpf_get_current_comm, bpf_get_current_pid_tgid,
    bpf_get_current_uid_gid,
};
use zc_observe_ebpf::{MapId, SenderKey, SenderVal, known};

use super::{
    count,
    kernel::{offset, read},
    maps::{INODE_OWNERS, OWNERS, SENDERS},
    socket,
};

static UNKNOWN: SenderKey = key_of(known::NOTHING);
static OTHER: SenderKey = key_of(known::OTHER);
static ZERO: SenderVal = SenderVal {
    accepted: 0,
    aborted: 0,
    refused: 0,
    completed: [0; 2],
    completed_bytes: [0; 2],
    deep_copies: 0,
    deep_copy_bytes: 0,
};

const fn key_of(known: u32) -> SenderKey {
    SenderKey {
        known,
        tgid: 0,
        uid: 0,
        netns: 0,
        cgroup: 0,
        inode: 0,
        comm: [0; 16],
    }
}

/// Notes that the current task sends on the socket. Only in the sender's own context.
#[inline(always)]
pub fn learn(sk: u64) {
    let _ = learn_process(sk);
}

/// The same, noted for the socket's inode as well.
#[inline(always)]
pub fn learn_with_inode(sk: u64, inode: u64) {
    if let Some(owner) = learn_process(sk)
        && inode != 0
        && INODE_OWNERS.insert(inode, owner, 0).is_err()
    {
        count::failed(MapId::Owners);
    }
}

/// Forgets who owned a socket at this address before.
#[inline(always)]
pub fn forget(sk: u64) {
    let _ = OWNERS.remove(sk);
}

/// The sender, if it was not known yet.
#[inline(always)]
fn learn_process(sk: u64) -> Option<SenderKey> {
    let tgid = (bpf_get_current_pid_tgid() >> 32) as u32;
    let netns = socket::netns(sk);
    if let Some(owner) = OWNERS.get_ptr(sk) {
        // SAFETY: a live map value; a concurrent writer of the same process writes the same.
        let (old, old_netns) = unsafe { ((*owner).tgid, (*owner).netns) };
        if old == tgid && old_netns == netns {
            return None;
        }
    }
    let owner = SenderKey {
        known: known::PROCESS,
        tgid,
        uid: bpf_get_current_uid_gid() as u32,
        netns,
        // SAFETY: the helper takes nothing.
        cgroup: unsafe { bpf_get_current_cgroup_id() },
        inode: 0,
        comm: bpf_get_current_comm().unwrap_or_default(),
    };
    if OWNERS.insert(sk, owner, 0).is_err() {
        count::failed(MapId::Owners);
    }
    Some(owner)
}

/// Notes the socket by its inode, where nobody was seen sending on it.
#[inline(always)]
pub fn learn_inode(sk: u64, inode: u64) {
    if OWNERS.get_ptr(sk).is_some() {
        return;
    }
    if inode == 0 {
        return;
    }
    let owner = SenderKey {
        known: known::INODE,
        uid: read(sk, offset!(sk_uid)).unwrap_or(0),
        netns: socket::netns(sk),
        inode,
        ..key_of(known::INODE)
    };
    if OWNERS.insert(sk, owner, 0).is_err() {
        count::failed(MapId::Owners);
    }
}

/// The account of the socket's sender; a full map counts it as `other`.
#[inline(always)]
pub fn account(sk: u64) -> Option<*mut SenderVal> {
    let owner = match OWNERS.get_ptr(sk) {
        // SAFETY: a live map value; copied, since a key must not change under the lookup.
        Some(owner) => unsafe { *owner },
        None => UNKNOWN,
    };
    if let Some((value, _)) = count::entry(&SENDERS, MapId::Senders, &owner, &ZERO) {
        return Some(value);
    }
    // User space put this entry there before anything was attached.
    SENDERS.get_ptr_mut(OTHER)
}
