//! Copied only for owners that cannot wait for their pages: vhost, `PACKET_TX_RING`,
//! xen-netback. `MSG_ZEROCOPY` and `io_uring` pass these places uncopied.

use super::site::{Call, Owners, Site, core, module, since};
use super::{Cause, Class, Need, Severity};

pub(super) const CAUSES: &[&Cause] = &[
    &DEVICE_FORWARD,
    &BPF_REDIRECT,
    &NETKIT,
    &CLONE,
    &SEGMENT,
    &UPCALL,
    &DRIVER_XMIT,
    &CARVE,
    &EXPAND_HEAD,
];

const NEEDS: &[Need] = &[Need::DeepCopies];

const fn orphan(caller: Call) -> Site {
    Site::orphan(caller, Owners::CannotWait)
}

const fn clone_for(caller2: Call, why: &'static str) -> Site {
    orphan(core("skb_clone")).via(caller2).because(why)
}

static DEVICE_FORWARD: Cause = Cause {
    id: "device_forward",
    class: Class::Copied,
    title: "handed to another device on this host (veth, macvlan, ipvlan)",
    explanation: "A packet that leaves one device of this host only to enter another one is copied on the way \
        if its owner, such as vhost, cannot wait until the far side has read it.",
    fix: "Connect virtual machines to the network card by macvtap or a bridge with the card as port, \
        without a veth pair in between.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[
        orphan(core("__dev_forward_skb")),
        orphan(core("__dev_forward_skb2")),
    ],
};

static BPF_REDIRECT: Cause = Cause {
    id: "bpf_redirect",
    class: Class::Copied,
    title: "redirected by a BPF program into a device's receive path",
    explanation: "bpf_redirect with BPF_F_INGRESS hands the packet to a device of this host as if received there.",
    fix: "Redirect to the egress of the device that the packet leaves by.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[orphan(core("__bpf_redirect"))],
};

static NETKIT: Cause = Cause {
    id: "netkit",
    class: Class::Copied,
    title: "crossed a netkit pair",
    explanation: "netkit hands the packet to its peer's receive path; what cannot wait is copied.",
    fix: "None for vhost and PACKET_TX_RING; MSG_ZEROCOPY and io_uring pass netkit uncopied.",
    severity: Severity::Info,
    needs: NEEDS,
    sites: &[orphan(module("netkit_xmit", "netkit")).on(since(6, 7))],
};

static CLONE: Cause = Cause {
    id: "clone",
    class: Class::Copied,
    title: "the packet was cloned for a second receiver",
    explanation: "A clone shares the payload, and an owner that cannot wait for two holders gets it copied. \
        Clones are made for packet sockets, for bridge ports when a frame is flooded, by traffic control \
        (mirred, netem duplicate), for multicast and for duplicates made by nftables.",
    fix: "By what made the clone: end the capture; give the bridge a forwarding entry so that it does not flood; \
        remove the mirroring.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[
        clone_for(core("dev_queue_xmit_nit"), "tap"),
        clone_for(module("maybe_deliver", "bridge"), "bridge_flood"),
        clone_for(module("deliver_clone", "bridge"), "bridge_flood"),
        clone_for(module("br_flood", "bridge"), "bridge_flood"),
        clone_for(module("tcf_mirred_act", "act_mirred"), "mirred"),
        clone_for(module("tcf_mirred_to_dev", "act_mirred"), "mirred"),
        clone_for(module("netem_enqueue", "sch_netem"), "duplicate"),
        clone_for(module("macvlan_broadcast", "macvlan"), "macvlan_broadcast"),
        clone_for(core("ip_mc_output"), "multicast"),
        orphan(core("skb_clone")),
        orphan(core("__pskb_copy_fclone"))
            .via(module("br_multicast_flood", "bridge"))
            .because("bridge_multicast"),
        orphan(core("__pskb_copy_fclone")),
    ],
};

static SEGMENT: Cause = Cause {
    id: "segment",
    class: Class::Copied,
    title: "segmented in software",
    explanation: "The device does not segment this kind of packet itself. The segments share the pages of the \
        packet, so an owner that cannot wait gets them copied.",
    fix: "Switch on tx-tcp-segmentation or tx-udp-segmentation on the device (ethtool -K).",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[orphan(core("skb_segment"))],
};

static UPCALL: Cause = Cause {
    id: "upcall",
    class: Class::Copied,
    title: "handed to a program by openvswitch or nfqueue",
    explanation: "A packet that a program in user space is to judge waits until it answers.",
    fix: "openvswitch: install flows so that packets do not go up. nfqueue: queue only the first packets of a \
        connection.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[
        orphan(core("skb_zerocopy"))
            .via(module("queue_userspace_packet", "openvswitch"))
            .because("openvswitch"),
        orphan(core("skb_zerocopy"))
            .via(module("__nfqnl_enqueue_packet", "nfnetlink_queue"))
            .because("nfqueue"),
        orphan(core("skb_zerocopy")),
    ],
};

static DRIVER_XMIT: Cause = Cause {
    id: "driver_xmit",
    class: Class::Copied,
    title: "sent by virtio_net without transmit interrupts",
    explanation: "virtio_net loaded with napi_tx=0 frees sent packets only when it sends the next ones.",
    fix: "Load virtio_net with napi_tx=1, the default.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[orphan(module("start_xmit", "virtio_net"))],
};

static CARVE: Cause = Cause {
    id: "carve",
    class: Class::Copied,
    title: "a part was carved out of the packet (RDS over TCP)",
    explanation: "RDS cuts messages out of received TCP data; the rest is rebuilt.",
    fix: "None needed.",
    severity: Severity::Info,
    needs: NEEDS,
    sites: &[
        orphan(core("pskb_carve_inside_header")),
        orphan(core("pskb_carve_inside_nonlinear")),
    ],
};

static EXPAND_HEAD: Cause = Cause {
    id: "expand_head",
    class: Class::Copied,
    title: "the head of a shared packet was made larger",
    explanation: "A header did not fit, and the packet was shared. Rare: what shares packets copies them first.",
    fix: "None known; if it is frequent, the device or tunnel that adds headers is worth a report.",
    severity: Severity::Info,
    needs: NEEDS,
    sites: &[orphan(core("pskb_expand_head"))],
};
