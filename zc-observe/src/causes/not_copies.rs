//! Not copies, yet worth a finding.

use super::Severity::{Info, Warning};
use super::{Cause, Class, Need, Severity};

pub(super) const CAUSES: &[&Cause] = &[
    &DEPTH_ONE,
    &NOT_REAPED,
    &STALLED,
    &HELD_BY_SOCKET,
    &SMALL_SENDS,
    &OPTED_OUT,
    &XSK_COPY_MODE,
];

const fn cause(
    id: &'static str,
    severity: Severity,
    needs: &'static [Need],
    title: &'static str,
    explanation: &'static str,
    fix: &'static str,
) -> Cause {
    Cause {
        id,
        class: Class::NotCopied,
        title,
        explanation,
        fix,
        severity,
        needs,
        sites: &[],
    }
}

static DEPTH_ONE: Cause = cause(
    "depth_one",
    Warning,
    &[Need::Completions],
    "the sender waits for each notification before it sends again",
    "With one send in flight, each waits for the round trip of the last: latency instead of throughput.",
    "Use several buffers, and reap notifications in batches.",
);

static NOT_REAPED: Cause = cause(
    "not_reaped",
    Warning,
    &[Need::Completions],
    "the sender does not read its notifications",
    "Notifications pile up in the error queue until option memory is used up and sends fail.",
    "Read the error queue (recvmsg with MSG_ERRQUEUE) regularly.",
);

static STALLED: Cause = cause(
    "stalled",
    Warning,
    &[Need::Completions],
    "sends do not complete",
    "Something holds the pages: a queue that does not drain, a peer that does not acknowledge, an unread socket.",
    "Look at the queues of the device (tc -s qdisc) and at the peer.",
);

static HELD_BY_SOCKET: Cause = cause(
    "held_by_socket",
    Warning,
    &[Need::Completions, Need::HostState],
    "an unread packet socket holds the pages",
    "Since 6.17 a packet whose only receiver is a packet socket for a non-IP protocol is not copied; it waits in \
     that socket until it is read.",
    "Read or close the socket; /proc/net/packet lists it.",
);

static SMALL_SENDS: Cause = cause(
    "small_sends",
    Info,
    &[Need::SendCall],
    "sends are too small to gain",
    "Pinning pages and notifications cost more than copying a few kilobytes.",
    "Use zero-copy from about 10 KB per send on; bench shows where it pays here.",
);

static OPTED_OUT: Cause = cause(
    "opted_out",
    Info,
    &[Need::HostState],
    "a program that could use zero-copy has it switched off",
    "It copies every send, as configured.",
    "See the program's configuration.",
);

static XSK_COPY_MODE: Cause = cause(
    "xsk_copy_mode",
    Warning,
    &[Need::HostState],
    "an AF_XDP socket runs in copy mode",
    "The driver has no zero-copy for AF_XDP, or the program asked for copies.",
    "Use a driver with XDP zero-copy and bind with XDP_ZEROCOPY.",
);
