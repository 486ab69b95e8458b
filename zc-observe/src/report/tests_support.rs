//! A snapshot made by hand, and names for it.

use std::time::{Duration, UNIX_EPOCH};

use zc_observe_ebpf::{BUCKETS, DeviceInfo, DeviceKey, SenderKey};

use super::{Attribution, DeviceLabel, Flow, SenderLabel};
use crate::snapshot::{
    Api, Attempts, Completions, CopyFunction, DeepCopies, Device, DeviceBytes, Frame, Histogram,
    MapStatus, Method, Outcome, ProbeState, ProbeStatus, Releases, Sender, Snapshot,
};

/// Names for what [`snapshot`] holds.
pub(crate) struct Names;

impl Attribution for Names {
    fn cause(&self, copies: &DeepCopies) -> &'static str {
        match copies
            .caller
            .as_ref()
            .and_then(|frame| frame.function.as_deref())
        {
            Some("__netif_receive_skb_core") => "local_delivery",
            _ => "unknown",
        }
    }

    fn device(&self, key: Option<DeviceKey>) -> DeviceLabel {
        key.map_or_else(DeviceLabel::none, |_| DeviceLabel::new("lo", "loopback"))
    }

    fn sender(&self, key: &SenderKey) -> SenderLabel {
        let comm = String::from_utf8_lossy(&key.comm);
        SenderLabel {
            comm: comm.trim_end_matches('\0').to_owned(),
            cgroup: "/user".to_owned(),
        }
    }
}

pub(crate) fn times(count: u64, bucket: usize) -> Histogram {
    let mut buckets = [0; BUCKETS];
    buckets[bucket] = count;
    Histogram {
        count,
        sum: Duration::from_micros(count),
        buckets,
    }
}

pub(crate) fn deep_copies(caller: &str, copies: u64, bytes: u64) -> DeepCopies {
    DeepCopies {
        function: CopyFunction::SkbCopyUbufs,
        caller: Some(Frame {
            address: 0xffff_ffff_8100_0010,
            function: Some(caller.to_owned()),
            offset: 0x10,
            module: None,
        }),
        caller2: None,
        api: Api::MsgZerocopy,
        device: Some(DeviceKey {
            netns: 1,
            ifindex: 1,
        }),
        family: 4,
        again: false,
        copies,
        bytes,
        errors: 1,
        time: times(copies, 3),
    }
}

/// A probe with nothing to complain of.
pub(crate) fn probe(name: &'static str, method: Method) -> ProbeStatus {
    ProbeStatus {
        name,
        purpose: "completions",
        method: Some(method),
        target: Some(format!("{name}_target")),
        state: ProbeState::Attached,
        hits: 40,
        missed: Some(0),
        lost: 0,
        seconds: Some(Duration::from_millis(2)),
    }
}

/// 100 sends of 10 kB over loopback in 10 seconds; 6 are on their way.
pub(crate) fn snapshot() -> Snapshot {
    let key = DeviceKey {
        netns: 1,
        ifindex: 1,
    };
    let mut comm = [0; 16];
    comm[..6].copy_from_slice(b"sender");
    let completions = |outcome, ids: u64| Completions {
        api: Api::MsgZerocopy,
        protocol: 6,
        family: 2,
        outcome,
        ids,
        bytes: Some(ids * 10_000),
    };
    Snapshot {
        taken: UNIX_EPOCH + Duration::from_secs(1_000_010),
        since: UNIX_EPOCH + Duration::from_secs(1_000_000),
        attempts: vec![Attempts {
            api: Api::MsgZerocopy,
            protocol: 6,
            family: 2,
            accepted: 100,
            bytes: Some(1_000_000),
            refused: Some(4),
        }],
        completions: vec![
            completions(Outcome::Copied, 90),
            completions(Outcome::Zerocopy, 4),
        ],
        deep_copies: vec![deep_copies("__netif_receive_skb_core", 180, 900_000)],
        releases: vec![Releases {
            api: Api::MsgZerocopy,
            time: times(94, 8),
        }],
        device_bytes: vec![DeviceBytes {
            device: key,
            received: (180, 900_000),
            transmitted: (180, 900_000),
        }],
        devices: vec![Device {
            key,
            info: DeviceInfo::default(),
        }],
        senders: vec![Sender {
            key: SenderKey {
                known: 1,
                tgid: 7,
                comm,
                ..SenderKey::default()
            },
            accepted: 100,
            refused: 4,
            zerocopy: (4, 40_000),
            copied: (90, 900_000),
            deep_copies: (180, 900_000),
        }],
        probes: vec![
            probe("complete", Method::Kprobe),
            ProbeStatus {
                method: None,
                target: None,
                state: ProbeState::Absent {
                    reason: "no such function".to_owned(),
                },
                hits: 0,
                missed: None,
                seconds: None,
                ..probe("uring_complete", Method::Kprobe)
            },
        ],
        maps: vec![MapStatus {
            name: "completions",
            entries: Some(2),
            capacity: 64,
            failures: 0,
        }],
    }
}

/// A flow that sent what [`snapshot`] counted.
pub(crate) fn flow() -> Flow {
    Flow {
        spec: "tcp4".to_owned(),
        sends: 100,
        bytes: 1_000_000,
        zerocopy: 4,
        copied: 90,
        refused: 4,
        delivered_bytes: Some(940_000),
        verify_failures: Some(0),
        release: None,
        error: None,
    }
}
