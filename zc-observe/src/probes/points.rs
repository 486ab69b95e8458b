//! The probe points, as data: what each is for, the kernel functions that it may be under,
//! newest first, and the programs that attach to it.

use zc_observe_ebpf::Probe;

use crate::snapshot::Method;

/// A place in the kernel that is observed.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Its account in the kernel.
    pub probe: Probe,
    /// Label `probe`.
    pub name: &'static str,
    /// What is lost without it.
    pub purpose: &'static str,
    /// Kernel functions or tracepoints, in the order tried.
    pub symbols: &'static [&'static str],
    /// Programs per method; all of a method's are attached.
    pub programs: &'static [Program],
}

/// A program and how it attaches.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name in the object.
    pub name: &'static str,
    /// Method.
    pub method: Method,
    /// Number of arguments of the function, where the program depends on it.
    pub args: Option<usize>,
}

const fn on(method: Method, name: &'static str) -> Program {
    Program {
        name,
        method,
        args: None,
    }
}

const fn fentry(name: &'static str) -> Program {
    on(Method::Fentry, name)
}

const fn kprobe(name: &'static str) -> Program {
    on(Method::Kprobe, name)
}

const fn tracepoint(name: &'static str) -> Program {
    on(Method::Tracepoint, name)
}

/// All points, in the order of [`Probe`].
pub const POINTS: [Point; Probe::COUNT as usize] = [
    Point {
        probe: Probe::CopyUbufs,
        name: "copy_ubufs",
        purpose: "deep copies by cause, device and sender",
        symbols: &["skb_copy_ubufs"],
        programs: &[fentry("copy_ubufs_fentry"), kprobe("copy_ubufs_kprobe")],
    },
    Point {
        probe: Probe::CopyUbufsReturn,
        name: "copy_ubufs_return",
        purpose: "time and failures of deep copies",
        symbols: &["skb_copy_ubufs"],
        programs: &[fentry("copy_ubufs_fexit"), kprobe("copy_ubufs_kretprobe")],
    },
    Point {
        probe: Probe::PullTail,
        name: "pull_tail",
        purpose: "deep copies by linearising",
        symbols: &["__pskb_pull_tail"],
        programs: &[fentry("pull_tail_fentry"), kprobe("pull_tail_kprobe")],
    },
    Point {
        probe: Probe::PullTailReturn,
        name: "pull_tail_return",
        purpose: "time and failures of deep copies by linearising",
        symbols: &["__pskb_pull_tail"],
        programs: &[fentry("pull_tail_fexit")],
    },
    Point {
        probe: Probe::Attempt,
        name: "attempt",
        purpose: "attempts and refusals with their bytes",
        symbols: &["msg_zerocopy_realloc", "sock_zerocopy_realloc"],
        programs: &[
            Program {
                args: Some(3),
                ..fentry("attempt_fexit3")
            },
            Program {
                args: Some(4),
                ..fentry("attempt_fexit4")
            },
            kprobe("attempt_kretprobe"),
        ],
    },
    Point {
        probe: Probe::AttemptEntry,
        name: "attempt_entry",
        purpose: "attempts and refusals with their bytes",
        symbols: &["msg_zerocopy_realloc", "sock_zerocopy_realloc"],
        programs: &[kprobe("attempt_kprobe")],
    },
    Point {
        probe: Probe::Abort,
        name: "abort",
        purpose: "attempts that failed later on",
        symbols: &["msg_zerocopy_put_abort", "sock_zerocopy_put_abort"],
        programs: &[fentry("abort_fentry"), kprobe("abort_kprobe")],
    },
    Point {
        probe: Probe::Complete,
        name: "complete",
        purpose: "completions with their bytes and times",
        symbols: &["__msg_zerocopy_callback", "sock_zerocopy_callback"],
        programs: &[fentry("complete_fentry"), kprobe("complete_kprobe")],
    },
    Point {
        probe: Probe::UringAttempt,
        name: "uring_attempt",
        purpose: "io_uring attempts",
        symbols: &["io_alloc_notif"],
        programs: &[
            fentry("uring_attempt_fexit"),
            kprobe("uring_attempt_kretprobe"),
        ],
    },
    Point {
        probe: Probe::UringRelease,
        name: "uring_release",
        purpose: "outcome of io_uring completions",
        symbols: &["io_tx_ubuf_complete", "io_uring_tx_zerocopy_callback"],
        programs: &[
            fentry("uring_release_fentry"),
            kprobe("uring_release_kprobe"),
        ],
    },
    Point {
        probe: Probe::UringComplete,
        name: "uring_complete",
        purpose: "io_uring completions",
        symbols: &["io_notif_tw_complete", "__io_notif_complete_tw"],
        programs: &[
            fentry("uring_complete_fentry"),
            kprobe("uring_complete_kprobe"),
        ],
    },
    Point {
        probe: Probe::UringBind,
        name: "uring_bind",
        purpose: "bytes and senders of io_uring",
        symbols: &["__zerocopy_sg_from_iter"],
        programs: &[
            fentry("uring_bind_fentry"),
            fentry("uring_bind_fexit"),
            kprobe("uring_bind_kprobe"),
            kprobe("uring_bind_kretprobe"),
        ],
    },
    Point {
        probe: Probe::ErrorReport,
        name: "error_report",
        purpose: "completions by outcome",
        symbols: &["inet_sk_error_report"],
        programs: &[tracepoint("error_report")],
    },
    Point {
        probe: Probe::ConsumeSkb,
        name: "consume_skb",
        purpose: "completions merged into others",
        symbols: &["consume_skb"],
        programs: &[tracepoint("consume_skb")],
    },
    Point {
        probe: Probe::KfreeSkb,
        name: "kfree_skb",
        purpose: "completions that nobody read",
        symbols: &["kfree_skb"],
        programs: &[tracepoint("kfree_skb")],
    },
    Point {
        probe: Probe::SendLength,
        name: "send_length",
        purpose: "senders of short life, and attempts before they complete",
        symbols: &["sock_send_length"],
        programs: &[tracepoint("send_length")],
    },
    Point {
        probe: Probe::DeviceReceive,
        name: "device_receive",
        purpose: "zero-copy bytes received per device",
        symbols: &["netif_receive_skb"],
        programs: &[tracepoint("device_receive")],
    },
    Point {
        probe: Probe::DeviceTransmit,
        name: "device_transmit",
        purpose: "zero-copy bytes transmitted per device",
        symbols: &["net_dev_start_xmit"],
        programs: &[tracepoint("device_transmit")],
    },
];

/// Whether a kretprobe or fexit program: attaches to the return.
#[must_use]
pub fn at_return(program: &str) -> bool {
    ["_fexit", "_fexit3", "_fexit4", "_kretprobe"]
        .iter()
        .any(|suffix| program.ends_with(suffix))
}

/// Points that stand or fall together and use one method.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Without these the group is not attached.
    pub required: &'static [Probe],
    /// These are attached where possible.
    pub optional: &'static [Probe],
}

/// Deep copies. Entry and return find each other by what their method shows of both.
pub const DEEP_COPY: Group = Group {
    required: &[Probe::CopyUbufs],
    optional: &[Probe::CopyUbufsReturn],
};
/// Deep copies by linearising.
pub const PULL_TAIL: Group = Group {
    required: &[Probe::PullTail],
    optional: &[Probe::PullTailReturn],
};
/// `MSG_ZEROCOPY` at its functions. The completion comes first: nothing can be attempted
/// and then complete unseen.
pub const MSG_ZEROCOPY: Group = Group {
    required: &[Probe::Complete, Probe::Abort, Probe::Attempt],
    optional: &[],
};
/// `MSG_ZEROCOPY` at the tracepoints, instead.
pub const QUEUE: Group = Group {
    required: &[Probe::ErrorReport, Probe::ConsumeSkb, Probe::KfreeSkb],
    optional: &[Probe::SendLength],
};
/// `io_uring`.
pub const IO_URING: Group = Group {
    required: &[Probe::UringComplete, Probe::UringAttempt],
    optional: &[Probe::UringRelease, Probe::UringBind],
};
/// Zero-copy bytes through devices.
pub const DEVICES: Group = Group {
    required: &[Probe::DeviceReceive],
    optional: &[Probe::DeviceTransmit],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_in_the_order_of_their_accounts() {
        for (index, point) in POINTS.iter().enumerate() {
            assert_eq!(point.probe as usize, index, "{}", point.name);
        }
    }

    #[test]
    fn every_program_is_in_the_object() {
        use aya_obj::Object;
        let object = Object::parse(super::super::load::OBJECT).unwrap();
        let mut unused: std::collections::BTreeSet<String> =
            object.programs.keys().cloned().collect();
        for program in POINTS.iter().flat_map(|point| point.programs) {
            assert!(
                object.programs.contains_key(program.name),
                "{}",
                program.name
            );
            unused.remove(program.name);
        }
        assert!(unused.is_empty(), "no point attaches {unused:?}");
    }

    #[test]
    fn every_point_is_in_one_group() {
        let groups = [DEEP_COPY, PULL_TAIL, MSG_ZEROCOPY, QUEUE, IO_URING, DEVICES];
        for point in POINTS {
            // Attached with `Attempt`, for its arguments.
            if point.probe == Probe::AttemptEntry {
                continue;
            }
            let found = groups
                .iter()
                .flat_map(|group| group.required.iter().chain(group.optional))
                .filter(|&&probe| probe == point.probe)
                .count();
            assert_eq!(found, 1, "{}", point.name);
        }
    }
}
