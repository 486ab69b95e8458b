//! Copied after the send whoever owns the buffer, and the completion says so.

use super::site::{Owners, Site, core, module, since, until};
use super::{Cause, Class, Need, Severity};

pub(super) const CAUSES: &[&Cause] = &[
    &LOCAL_DELIVERY,
    &RECEIVE_PATH,
    &PACKET_TAP_TX,
    &PACKET_TAP_RX,
    &TUN_XMIT,
    &TIMESTAMP,
    &SECOND_OWNER,
    &UNKNOWN,
];

const NEEDS: &[Need] = &[Need::DeepCopies];

/// Delivered to a socket of this host.
pub static LOCAL_DELIVERY: Cause = Cause {
    id: "local_delivery",
    class: Class::Copied,
    title: "delivered to a socket on this host",
    explanation: "A packet that ends at a socket (or tunnel) of this host can wait there for as long \
        as the reader likes. The kernel does not let it hold the sender's memory for that time and \
        copies it. This is so for loopback, veth and every other device of which the receiver is on \
        this host, containers included.",
    fix: "Send without zero-copy to peers on the same host; or use a Unix socket or shared memory.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[
        Site::orphan(core("ip_local_deliver_finish"), Owners::All).on(since(6, 17)),
        Site::orphan(module("ip6_input_finish", "ipv6"), Owners::All).on(since(6, 17)),
    ],
};

/// Entered the receive path of a kernel up to 6.16.
pub static RECEIVE_PATH: Cause = Cause {
    id: "receive_path",
    class: Class::Copied,
    title: "entered the receive path: local delivery, forwarding or a receive-side tap",
    explanation: "Up to 6.16 the receive core copies every zero-copy packet that enters it, before it \
        knows where the packet goes: to a socket of this host, on to another device (a container's \
        veth and then the network card), or to a packet socket. All three are calls from one function, \
        so the call site does not tell them apart; the device's kind often does. Since 6.17 only local \
        delivery and taps copy.",
    fix: "Traffic that stays on this host: send without zero-copy. Traffic that is only forwarded, such as \
        from containers: run kernel 6.17 or later, or give the sender the network card itself \
        (host network, SR-IOV, ipvlan).",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[Site::orphan(core("__netif_receive_skb_core"), Owners::All).on(until(6, 16))],
};

/// A packet socket sees what is sent.
pub static PACKET_TAP_TX: Cause = Cause {
    id: "packet_tap_tx",
    class: Class::Copied,
    title: "a packet socket (tcpdump, a DHCP client, a sniffer) sees what the device sends",
    explanation: "A packet socket for all protocols gets a clone of every packet sent, and the clone is \
        copied. The packet on the wire is still sent from the sender's memory, but the send is \
        reported copied: the application pays for zero-copy and for a copy.",
    fix: "End the capture, bind it to one protocol or another device, or set PACKET_IGNORE_OUTGOING on its \
        socket. /proc/net/packet lists the sockets.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[
        Site::orphan(core("dev_queue_xmit_nit"), Owners::All),
        Site::orphan(core("deliver_skb"), Owners::All).via(core("dev_queue_xmit_nit")),
    ],
};

/// A packet socket sees what is received.
pub static PACKET_TAP_RX: Cause = Cause {
    id: "packet_tap_rx",
    class: Class::Copied,
    title: "a packet socket or a second protocol handler sees what the device receives",
    explanation: "When more than one handler wants a received packet, all but the last get it copied. The \
        usual first one is a packet socket for all protocols on the receiving device, or on all devices. \
        Up to 6.16 such copies cannot be told from others on the receive path.",
    fix: "End the capture, or bind it to one protocol or another device. /proc/net/packet lists the sockets, \
        one file per network namespace.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[
        Site::orphan(core("deliver_skb"), Owners::All).via(core("__netif_receive_skb_core")),
        // Where the compiler has put deliver_skb into its caller.
        Site::orphan(core("__netif_receive_skb_core"), Owners::All).on(since(6, 17)),
    ],
};

/// Sent through tun or tap.
pub static TUN_XMIT: Cause = Cause {
    id: "tun_xmit",
    class: Class::Copied,
    title: "sent through a tun or tap device to a program or virtual machine",
    explanation: "The program behind the device reads the packet whenever it likes, so the kernel copies it \
        first, and the read copies it again.",
    fix: "Send without zero-copy through tun and tap.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[Site::orphan(module("tun_net_xmit", "tun"), Owners::All)],
};

/// Transmit timestamps with payload.
pub static TIMESTAMP: Cause = Cause {
    id: "timestamp",
    class: Class::Copied,
    title: "transmit timestamps return the payload to the sender",
    explanation: "With SO_TIMESTAMPING for transmit and without SOF_TIMESTAMPING_OPT_TSONLY, each timestamp \
        comes with a clone of the packet on the socket's error queue, and that clone is copied.",
    fix: "Set SOF_TIMESTAMPING_OPT_TSONLY together with SOF_TIMESTAMPING_OPT_ID.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[Site::orphan(core("__skb_tstamp_tx"), Owners::All)],
};

static SECOND_OWNER: Cause = Cause {
    id: "second_owner",
    class: Class::Copied,
    title: "pages of two senders met in one packet",
    explanation: "A packet can report to one owner only. When frags of another owner are joined to it, those \
        that are already there are copied. Rare: seen with packets that consist of lists of packets.",
    fix: "None needed; it is rare. If it is not, the device or tunnel that joins packets is worth a report.",
    severity: Severity::Info,
    needs: NEEDS,
    sites: &[Site::orphan(core("skb_zerocopy_clone"), Owners::All)],
};

/// Not known.
pub static UNKNOWN: Cause = Cause {
    id: "unknown",
    class: Class::Copied,
    title: "copied for a reason that could not be found out",
    explanation: "The call stack did not show who asked for the copy, its address has no symbol, or the caller \
        is not one that this version knows.",
    fix: "Give the daemon CAP_SYSLOG and kernel.kptr_restrict below 2, so that it sees symbols. A caller that \
        is named but not known is worth a report.",
    severity: Severity::Info,
    needs: NEEDS,
    sites: &[],
};
