//! Copied because a packet was made linear; the completion says so once the last paged
//! byte has moved.

use super::site::{Site, core, module};
use super::{Cause, Class, Need, Severity};

pub(super) const CAUSES: &[&Cause] = &[&CHECKSUM, &LINEARIZE, &XDP_GENERIC];

const NEEDS: &[Need] = &[Need::DeepCopies];

const fn checksum_for(caller2: super::Call, why: &'static str) -> Site {
    Site::pull(core("skb_checksum_help"))
        .via(caller2)
        .because(why)
}

static CHECKSUM: Cause = Cause {
    id: "checksum",
    class: Class::Copied,
    title: "the checksum is computed in software",
    explanation: "The pages of a zero-copy send can change while the kernel reads them, so a checksum over \
        them would not be safe: the kernel copies the whole packet first. Devices without checksum offload \
        need that, and so does everything that changes or hands on packets in software.",
    fix: "Switch on tx-checksumming (ethtool -K DEVICE tx on) on the device and on those it is stacked on. \
        Where tunnels or encryption do it, send without zero-copy.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[
        // skb_csum_hwoffload_help ends in a jump to it and leaves no frame.
        checksum_for(core("validate_xmit_skb"), "device"),
        checksum_for(core("xfrm_output"), "ipsec"),
        checksum_for(core("ip_do_fragment"), "fragmentation"),
        checksum_for(module("ip6_fragment", "ipv6"), "fragmentation"),
        checksum_for(module("netem_enqueue", "sch_netem"), "netem"),
        checksum_for(
            module("__nfqnl_enqueue_packet", "nfnetlink_queue"),
            "nfqueue",
        ),
        checksum_for(
            module("queue_userspace_packet", "openvswitch"),
            "openvswitch",
        ),
        checksum_for(module("encrypt_packet", "wireguard"), "wireguard"),
        checksum_for(module("tap_handle_frame", "tap"), "tap"),
        Site::pull(core("skb_checksum_help")),
        // Each segment of a packet that is segmented and checksummed in software.
        Site::pull(core("skb_segment")).because("segmentation"),
    ],
};

static LINEARIZE: Cause = Cause {
    id: "linearize",
    class: Class::Copied,
    title: "the packet had to be in one piece",
    explanation: "The device cannot gather a packet from several places (no scatter-gather), or the packet is \
        encrypted or changed in software, which works on linear data.",
    fix: "Switch on scatter-gather (ethtool -K DEVICE sg on tx on) on the device and on those it is stacked on. \
        Where encryption in software does it, send without zero-copy.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[
        Site::pull(core("validate_xmit_skb")).because("device"),
        Site::pull(core("skb_cow_data")).because("encryption"),
        Site::pull(module("netem_enqueue", "sch_netem")).because("netem"),
    ],
};

static XDP_GENERIC: Cause = Cause {
    id: "xdp_generic",
    class: Class::Copied,
    title: "an XDP program in generic mode sees the packet",
    explanation: "Generic XDP hands packets to its program in one piece, unless the program says that it \
        takes frags.",
    fix: "Load the program in native mode, mark it for frags (xdp.frags), or detach it.",
    severity: Severity::Warning,
    needs: NEEDS,
    sites: &[
        Site::pull(core("netif_receive_generic_xdp")),
        Site::pull(core("do_xdp_generic")),
    ],
};
