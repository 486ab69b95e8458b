//! The send failed because of a zero-copy limit.

use super::Severity::{Critical, Warning};
use super::{Cause, Class, Need, Severity};

pub(super) const CAUSES: &[&Cause] = &[
    &MEMLOCK,
    &OPTMEM,
    &FRAG_LIMIT,
    &FAULT,
    &UNREADABLE,
    &URING_MEMLOCK,
];

const fn cause(
    id: &'static str,
    severity: Severity,
    title: &'static str,
    explanation: &'static str,
    fix: &'static str,
) -> Cause {
    let needs = &[Need::Refusals];
    Cause {
        id,
        class: Class::Refused,
        title,
        explanation,
        fix,
        severity,
        needs,
        sites: &[],
    }
}

static MEMLOCK: Cause = cause(
    "memlock",
    Critical,
    "locked memory is used up (ENOBUFS)",
    "Pages of sends that have not completed count against the user's RLIMIT_MEMLOCK.",
    "Raise the limit (ulimit -l, LimitMEMLOCK=), give CAP_IPC_LOCK, or have less in flight.",
);

static OPTMEM: Cause = cause(
    "optmem",
    Critical,
    "the socket's option memory is used up (ENOBUFS)",
    "Each buffer in flight and each notification that is not read takes option memory: net.core.optmem_max allows \
     some 20 of them at 20480, the default of 5.10 and 6.1.",
    "Raise net.core.optmem_max (on newer kernels one per network namespace), and read the error queue more often.",
);

static FRAG_LIMIT: Cause = cause(
    "frag_limit",
    Warning,
    "a datagram touches more than 17 pages (EMSGSIZE)",
    "A packet holds at most 17 fragments. TCP starts a new packet; a UDP datagram cannot.",
    "Send from fewer, larger, aligned buffers.",
);

static FAULT: Cause = cause(
    "fault",
    Warning,
    "the memory cannot be lent out (EFAULT)",
    "The address is wrong, or the memory is a device's.",
    "Send such memory without zero-copy.",
);

static UNREADABLE: Cause = cause(
    "unreadable",
    Critical,
    "device memory met something that has to read it",
    "Packets of device memory (devmem) can only be sent by a device that takes them; where they would have to be \
     copied they are dropped.",
    "Keep taps, tunnels and local receivers off such traffic.",
);

static URING_MEMLOCK: Cause = cause(
    "uring_memlock",
    Critical,
    "io_uring's locked memory is used up (ENOMEM)",
    "Sends without registered buffers count against RLIMIT_MEMLOCK.",
    "Register the buffers, or raise the limit.",
);
