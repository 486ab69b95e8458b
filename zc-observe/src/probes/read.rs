//! Maps into a snapshot: sums over the CPUs, addresses into names.

use std::collections::BTreeSet;
use std::time::Duration;

use aya::maps::{HashMap, Map, MapData, MapError, PerCpuArray, PerCpuHashMap, PerCpuValues};
use aya::{Ebpf, Pod};
use zc_observe_ebpf::{
    AttemptKey, AttemptVal, CompletionKey, CompletionVal, DeepCopyKey, DeepCopyVal, DeviceInfo,
    DeviceKey, DeviceVal, MapId, Probe, ReleaseVal, SenderKey, SenderVal, api, function, known,
    outcome,
};

use super::ReadError;
use super::load::Facts;
use super::plan::Plan;
use crate::snapshot::{
    Api, Attempts, Completions, CopyFunction, DeepCopies, Device, DeviceBytes, Frame, Histogram,
    MapStatus, Outcome, Releases, Sender, Snapshot,
};

/// Maps with an account, in the order of [`MapId`]: the name in the object and the label.
const MAPS: [(&str, &str); MapId::COUNT as usize] = [
    ("DEEP_COPIES", "deep_copies"),
    ("ATTEMPTS", "attempts"),
    ("COMPLETIONS", "completions"),
    ("SENDERS", "senders"),
    ("OWNERS", "owners"),
    ("BUFFERS", "buffers"),
    ("DEVICES", "devices"),
    ("DEVICE_BYTES", "device_bytes"),
    ("SOCKETS", "sockets"),
    ("NOTIFICATIONS", "notifications"),
    ("IN_FLIGHT", "in_flight"),
];

/// Puts in place what the programs expect to find.
pub(super) fn prepare(ebpf: &mut Ebpf) -> Result<(), ReadError> {
    let map = "SENDERS";
    let fail = |error| ReadError::Map { map, error };
    let senders = ebpf.map_mut(map).ok_or(ReadError::NoMap { map })?;
    let mut senders = PerCpuHashMap::<_, SenderKey, SenderVal>::try_from(senders).map_err(fail)?;
    let other = SenderKey {
        known: known::OTHER,
        ..SenderKey::default()
    };
    let cpus = aya::util::nr_cpus().map_err(|(_, error)| fail(MapError::IoError(error)))?;
    let zero = PerCpuValues::try_from(vec![SenderVal::default(); cpus])
        .map_err(|error| fail(MapError::IoError(error)))?;
    senders.insert(other, zero, 0).map_err(fail)
}

fn map<'a, T>(ebpf: &'a Ebpf, map: &'static str) -> Result<T, ReadError>
where
    T: TryFrom<&'a Map, Error = MapError>,
{
    let found = ebpf.map(map).ok_or(ReadError::NoMap { map })?;
    T::try_from(found).map_err(|error| ReadError::Map { map, error })
}

/// Keys and values summed over the CPUs.
fn sums<K: Pod, V: Pod, S>(
    ebpf: &Ebpf,
    name: &'static str,
    sum: impl Fn(&[V]) -> S,
) -> Result<Vec<(K, S)>, ReadError> {
    let map: PerCpuHashMap<&MapData, K, V> = map(ebpf, name)?;
    let mut found = Vec::new();
    for entry in map.iter() {
        let (key, values) = entry.map_err(|error| ReadError::Map { map: name, error })?;
        found.push((key, sum(&values)));
    }
    Ok(found)
}

/// Sum of one field; a field that is taken from wraps on one CPU and is whole in the sum.
macro_rules! total {
    ($values:expr, $($field:tt)+) => {
        $values.iter().fold(0u64, |sum, value| sum.wrapping_add(value.$($field)+))
    };
}

/// Fills the snapshot.
pub(super) fn fill(
    snapshot: &mut Snapshot,
    ebpf: &Ebpf,
    facts: &Facts,
    plan: &Plan,
) -> Result<(), ReadError> {
    // What happens while the maps are read must not look like more completions than
    // attempts: read against the flow.
    let completions = sums(ebpf, "COMPLETIONS", |v: &[CompletionVal]| {
        (total!(v, ids), total!(v, bytes))
    })?;
    let attempts = sums(ebpf, "ATTEMPTS", |v: &[AttemptVal]| AttemptVal {
        accepted: total!(v, accepted),
        bytes: total!(v, bytes),
        refused: total!(v, refused),
        aborted: total!(v, aborted),
        aborted_bytes: total!(v, aborted_bytes),
    })?;
    // Byte counts and refusals come from the functions alone.
    let functions = plan.has(Probe::Complete);
    let seen = |api: Api| api != Api::MsgZerocopy || functions;
    snapshot.completions = completions
        .iter()
        .map(|(key, (ids, bytes)): &(CompletionKey, _)| Completions {
            api: api_of(key.api),
            protocol: key.protocol,
            family: key.family,
            outcome: if key.outcome == outcome::COPIED {
                Outcome::Copied
            } else {
                Outcome::Zerocopy
            },
            ids: *ids,
            bytes: seen(api_of(key.api)).then_some(*bytes),
        })
        .collect();
    snapshot.attempts = attempts
        .iter()
        .map(|(key, value): &(AttemptKey, _)| Attempts {
            api: api_of(key.api),
            protocol: key.protocol,
            family: key.family,
            accepted: value.accepted.saturating_sub(value.aborted),
            bytes: seen(api_of(key.api)).then_some(value.bytes.saturating_sub(value.aborted_bytes)),
            refused: seen(api_of(key.api)).then_some(value.refused),
        })
        .collect();
    snapshot.deep_copies = deep_copies(ebpf, facts)?;
    snapshot.device_bytes = device_bytes(ebpf)?;
    snapshot.releases = releases(ebpf)?;
    snapshot.senders = senders(ebpf)?;
    snapshot.devices = devices(ebpf, snapshot)?;
    snapshot.maps = maps(ebpf, snapshot, completions.len(), attempts.len())?;
    Ok(())
}

const fn api_of(number: u8) -> Api {
    match number {
        api::MSG_ZEROCOPY => Api::MsgZerocopy,
        api::IO_URING => Api::IoUring,
        _ => Api::Unknown,
    }
}

fn deep_copies(ebpf: &Ebpf, facts: &Facts) -> Result<Vec<DeepCopies>, ReadError> {
    let found = sums(ebpf, "DEEP_COPIES", |v: &[DeepCopyVal]| DeepCopyVal {
        runs: total!(v, runs),
        bytes: total!(v, bytes),
        errors: total!(v, errors),
        error_bytes: total!(v, error_bytes),
        timed: total!(v, timed),
        nanos: total!(v, nanos),
        hist: std::array::from_fn(|i| total!(v, hist[i])),
    })?;
    let copies = found.into_iter().map(|(key, value): (DeepCopyKey, _)| {
        let device = DeviceKey {
            netns: key.netns,
            ifindex: key.ifindex,
        };
        DeepCopies {
            function: if key.function == function::PSKB_PULL_TAIL {
                CopyFunction::PskbPullTail
            } else {
                CopyFunction::SkbCopyUbufs
            },
            caller: frame(facts, key.caller),
            caller2: frame(facts, key.caller2),
            api: owner(facts, key.owner),
            device: (key.ifindex != 0).then_some(device),
            family: key.family,
            again: key.again != 0,
            copies: value.runs.saturating_sub(value.errors),
            bytes: value.bytes.saturating_sub(value.error_bytes),
            errors: value.errors,
            time: Histogram {
                count: value.timed,
                sum: Duration::from_nanos(value.nanos),
                buckets: value.hist,
            },
        }
    });
    Ok(copies.collect())
}

/// A return address with the name of its function.
fn frame(facts: &Facts, address: u64) -> Option<Frame> {
    (address != 0).then(|| match facts.symbols.resolve(address) {
        Some(found) => Frame {
            address,
            function: Some(found.function.to_owned()),
            offset: found.offset,
            module: found.module.map(str::to_owned),
        },
        None => Frame {
            address,
            function: None,
            offset: 0,
            module: None,
        },
    })
}

/// The interface that a buffer's callback belongs to.
fn owner(facts: &Facts, callback: u64) -> Api {
    match callback {
        0 => Api::Unknown,
        // A buffer without ubuf_info (skb_zcopy_set_nouarg): TX_RING up to 6.11.
        1 => Api::PacketTxRing,
        _ if callback == facts.kernel.msg_zerocopy_owner => Api::MsgZerocopy,
        _ if callback == facts.kernel.io_uring_owner => Api::IoUring,
        // The callback's own address, not one behind a call.
        _ => match facts.symbols.resolve(callback + 1).map(|one| one.function) {
            Some("vhost_zerocopy_callback" | "vhost_zerocopy_complete") => Api::Vhost,
            Some("xenvif_zerocopy_callback") => Api::Xen,
            Some("tpacket_ubuf_complete") => Api::PacketTxRing,
            Some(_) => Api::Other,
            None => Api::Unknown,
        },
    }
}

fn device_bytes(ebpf: &Ebpf) -> Result<Vec<DeviceBytes>, ReadError> {
    let found = sums(ebpf, "DEVICE_BYTES", |v: &[DeviceVal]| {
        (
            (total!(v, received), total!(v, received_bytes)),
            (total!(v, transmitted), total!(v, transmitted_bytes)),
        )
    })?;
    let bytes = found
        .into_iter()
        .map(|(device, (received, transmitted))| DeviceBytes {
            device,
            received,
            transmitted,
        });
    Ok(bytes.collect())
}

fn releases(ebpf: &Ebpf) -> Result<Vec<Releases>, ReadError> {
    let name = "RELEASES";
    let map: PerCpuArray<_, ReleaseVal> = map(ebpf, name)?;
    let mut found = Vec::new();
    for number in [api::MSG_ZEROCOPY, api::IO_URING] {
        let values = map
            .get(&u32::from(number), 0)
            .map_err(|error| ReadError::Map { map: name, error })?;
        let time = Histogram {
            count: total!(values, count),
            sum: Duration::from_nanos(total!(values, nanos)),
            buckets: std::array::from_fn(|i| total!(values, hist[i])),
        };
        if time.count > 0 {
            found.push(Releases {
                api: api_of(number),
                time,
            });
        }
    }
    Ok(found)
}

fn senders(ebpf: &Ebpf) -> Result<Vec<Sender>, ReadError> {
    let found: Vec<(SenderKey, _)> = sums(ebpf, "SENDERS", |v: &[SenderVal]| Sender {
        key: SenderKey::default(),
        accepted: total!(v, accepted).saturating_sub(total!(v, aborted)),
        refused: total!(v, refused),
        zerocopy: (total!(v, completed[0]), total!(v, completed_bytes[0])),
        copied: (total!(v, completed[1]), total!(v, completed_bytes[1])),
        deep_copies: (total!(v, deep_copies), total!(v, deep_copy_bytes)),
    })?;
    let name = "INODE_OWNERS";
    let owners: HashMap<_, u64, SenderKey> = map(ebpf, name)?;
    let mut senders = std::collections::HashMap::<SenderKey, Sender>::new();
    for (mut key, sender) in found {
        if key.known == known::INODE {
            // It completed before it was known who sent, and now it is.
            match owners.get(&key.inode, 0) {
                Ok(owner) => key = owner,
                Err(MapError::KeyNotFound) => {}
                Err(error) => return Err(ReadError::Map { map: name, error }),
            }
        }
        let sum = senders.entry(key).or_insert_with(|| Sender::none(key));
        sum.add(&sender);
    }
    Ok(senders.into_values().collect())
}

/// The devices that the snapshot speaks of.
fn devices(ebpf: &Ebpf, snapshot: &Snapshot) -> Result<Vec<Device>, ReadError> {
    let map: HashMap<_, DeviceKey, DeviceInfo> = map(ebpf, "DEVICES")?;
    let copied = snapshot.deep_copies.iter().filter_map(|copy| copy.device);
    let keys: BTreeSet<DeviceKey> = copied
        .chain(snapshot.device_bytes.iter().map(|bytes| bytes.device))
        .collect();
    let mut found = Vec::new();
    for key in keys {
        match map.get(&key, 0) {
            Ok(info) => found.push(Device { key, info }),
            // Forgotten for others; it stays unnamed.
            Err(MapError::KeyNotFound) => {}
            Err(error) => {
                return Err(ReadError::Map {
                    map: "DEVICES",
                    error,
                });
            }
        }
    }
    Ok(found)
}

/// The fill of the maps that are read through anyway, and the failures of all.
fn maps(
    ebpf: &Ebpf,
    snapshot: &Snapshot,
    completions: usize,
    attempts: usize,
) -> Result<Vec<MapStatus>, ReadError> {
    let name = "MAP_FAILURES";
    let failures: PerCpuArray<_, u64> = map(ebpf, name)?;
    let mut found = Vec::new();
    for (index, (map, label)) in (0..).zip(MAPS) {
        let values = failures
            .get(&index, 0)
            .map_err(|error| ReadError::Map { map: name, error })?;
        let entries = match label {
            "deep_copies" => Some(snapshot.deep_copies.len()),
            "attempts" => Some(attempts),
            "completions" => Some(completions),
            "senders" => Some(snapshot.senders.len()),
            "device_bytes" => Some(snapshot.device_bytes.len()),
            _ => None,
        };
        found.push(MapStatus {
            name: label,
            entries: entries.map(|entries| entries as u64),
            capacity: capacity(ebpf, map),
            failures: values.iter().sum(),
        });
    }
    Ok(found)
}

/// Entries that fit into a map.
fn capacity(ebpf: &Ebpf, name: &str) -> u64 {
    let info = match ebpf.map(name) {
        Some(
            Map::HashMap(map)
            | Map::LruHashMap(map)
            | Map::PerCpuHashMap(map)
            | Map::PerCpuArray(map),
        ) => map.info().ok(),
        _ => None,
    };
    info.map_or(0, |info| info.max_entries().into())
}
