//! The maps. User space sizes none of them; it reads them all.

use aya_ebpf::{
    macros::map,
    maps::{LruHashMap, PerCpuArray, PerCpuHashMap},
};
use zc_observe_ebpf::{
    AttemptKey, AttemptVal, Buffer, CallArgs, CompletionKey, CompletionVal, DeepCopyKey,
    DeepCopyVal, DeviceInfo, DeviceKey, DeviceVal, InFlight, MapId, Notification, NotificationKey,
    Probe, ProbeVal, ReleaseVal, SenderKey, SenderVal, SocketVal,
};

#[map]
pub static DEEP_COPIES: PerCpuHashMap<DeepCopyKey, DeepCopyVal> =
    PerCpuHashMap::with_max_entries(512, 0);

#[map]
pub static ATTEMPTS: PerCpuHashMap<AttemptKey, AttemptVal> = PerCpuHashMap::with_max_entries(64, 0);

#[map]
pub static COMPLETIONS: PerCpuHashMap<CompletionKey, CompletionVal> =
    PerCpuHashMap::with_max_entries(128, 0);

#[map]
pub static RELEASES: PerCpuArray<ReleaseVal> = PerCpuArray::with_max_entries(4, 0);

#[map]
pub static SENDERS: PerCpuHashMap<SenderKey, SenderVal> = PerCpuHashMap::with_max_entries(4096, 0);

/// Who owns a socket, by its address.
#[map]
pub static OWNERS: LruHashMap<u64, SenderKey> = LruHashMap::with_max_entries(16384, 0);

/// Who sends on a socket, by its inode (tracepoint tier): a send can complete before it is
/// known who sent, and is then counted by the inode. User space joins the two.
#[map]
pub static INODE_OWNERS: LruHashMap<u64, SenderKey> = LruHashMap::with_max_entries(16384, 0);

/// What is known of a buffer on its way, by the address of its `ubuf_info`.
#[map]
pub static BUFFERS: LruHashMap<u64, Buffer> = LruHashMap::with_max_entries(65536, 0);

#[map]
pub static DEVICES: LruHashMap<DeviceKey, DeviceInfo> = LruHashMap::with_max_entries(4096, 0);

#[map]
pub static DEVICE_BYTES: PerCpuHashMap<DeviceKey, DeviceVal> =
    PerCpuHashMap::with_max_entries(1024, 0);

/// Sockets by address (tracepoint tier).
#[map]
pub static SOCKETS: LruHashMap<u64, SocketVal> = LruHashMap::with_max_entries(16384, 0);

/// Notifications in error queues and lately read (tracepoint tier). None is taken out: a
/// report that comes late must find that its notification was counted.
#[map]
pub static NOTIFICATIONS: LruHashMap<NotificationKey, Notification> =
    LruHashMap::with_max_entries(65536, 0);

#[map]
pub static IN_FLIGHT: PerCpuArray<InFlight> = PerCpuArray::with_max_entries(1, 0);

/// Arguments of calls that have begun, by task (kretprobes).
#[map]
pub static CALLS: LruHashMap<u64, CallArgs> = LruHashMap::with_max_entries(4096, 0);

#[map]
pub static PROBES: PerCpuArray<ProbeVal> = PerCpuArray::with_max_entries(Probe::COUNT, 0);

#[map]
pub static MAP_FAILURES: PerCpuArray<u64> = PerCpuArray::with_max_entries(MapId::COUNT, 0);
