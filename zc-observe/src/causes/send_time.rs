//! Copied in the send call: never reaches a copying function.

use super::Severity::{Info, Warning};
use super::{Cause, Class, Need, Severity};

pub(super) const CAUSES: &[&Cause] = &[
    &NO_SCATTER_GATHER,
    &EXCEEDS_MTU,
    &NO_CHECKSUM_OFFLOAD,
    &CORKED,
    &UNARMED,
    &UNSUPPORTED,
    &VHOST_BACKOFF,
    &VHOST_SMALL,
    &VHOST_DISABLED,
    &SPLICE_REFUSED,
];

const fn cause(
    id: &'static str,
    severity: Severity,
    title: &'static str,
    explanation: &'static str,
    fix: &'static str,
) -> Cause {
    let needs = &[Need::SendCall];
    Cause {
        id,
        class: Class::SendTime,
        title,
        explanation,
        fix,
        severity,
        needs,
        sites: &[],
    }
}

static NO_SCATTER_GATHER: Cause = cause(
    "no_scatter_gather",
    Warning,
    "the route's device cannot gather a packet from several places",
    "The send looks at the device of the route. UDP copies whenever it has no scatter-gather. TCP does so only \
     where the socket cannot use segmentation offload either (TCP-MD5, TCP-AO, IPsec routes); otherwise it goes \
     on, and the packet is copied later.",
    "Switch on scatter-gather (ethtool -K DEVICE sg on tx on) on the device and on those it is stacked on.",
);

static EXCEEDS_MTU: Cause = cause(
    "exceeds_mtu",
    Warning,
    "a datagram is larger than the path allows in one packet",
    "UDP copies a datagram that it has to fragment; the completion says copied.",
    "Send at most the path MTU less headers, or use UDP_SEGMENT.",
);

static NO_CHECKSUM_OFFLOAD: Cause = cause(
    "no_checksum_offload",
    Warning,
    "the route's device does not compute UDP checksums",
    "UDP then has to read the payload in the send call and copies it on the way. VLAN, GRE and tun devices often \
     lack the offload; IPsec routes and IPv6 extension headers switch it off.",
    "Switch on tx-checksumming (ethtool -K DEVICE tx on) on the device and on those it is stacked on.",
);

static CORKED: Cause = cause(
    "corked",
    Warning,
    "UDP_CORK or MSG_MORE builds one datagram from several sends",
    "Without segmentation offload a corked datagram is copied, and so is what is appended to one.",
    "Send each datagram with one call (sendmsg with several buffers), or use UDP_SEGMENT.",
);

static UNARMED: Cause = cause(
    "unarmed",
    Warning,
    "MSG_ZEROCOPY without SO_ZEROCOPY",
    "The kernel ignores the flag on a socket that did not set SO_ZEROCOPY: it copies and sends no notification.",
    "Set SO_ZEROCOPY on the socket before sending.",
);

static UNSUPPORTED: Cause = cause(
    "unsupported",
    Warning,
    "this kind of socket has no zero-copy transmit",
    "Only TCP, UDP, vsock (since 6.7) and RDS have it. Others refuse SO_ZEROCOPY, or ignore the flag and copy; a \
     socket with kTLS refuses such sends.",
    "Send without zero-copy on such sockets.",
);

static VHOST_BACKOFF: Cause = cause(
    "vhost_backoff",
    Warning,
    "vhost-net gave up on zero-copy for a while after copies",
    "Each packet that had to be copied after all makes vhost-net copy the next ones in advance, up to 64 per copy.",
    "Remove what copies the packets that it still tries: deep copies with api=\"vhost\" name it.",
);

static VHOST_SMALL: Cause = cause(
    "vhost_small",
    Info,
    "vhost-net copies packets below 256 bytes",
    "Copying is cheaper for them.",
    "None needed.",
);

static VHOST_DISABLED: Cause = cause(
    "vhost_disabled",
    Info,
    "vhost-net has zero-copy switched off",
    "It is off unless the module is loaded with experimental_zcopytx=1.",
    "Load vhost_net with experimental_zcopytx=1 if guests mostly send to other hosts.",
);

static SPLICE_REFUSED: Cause = cause(
    "splice_refused",
    Warning,
    "sendfile or splice copies",
    "The device has no scatter-gather, or the pages may not be lent out; no notification exists that would tell.",
    "Switch on scatter-gather (ethtool -K DEVICE sg on tx on).",
);
