//! Copied, and the completion says zero-copy.

use super::Severity::{Info, Warning};
use super::{Cause, Class, Need, Severity};

pub(super) const CAUSES: &[&Cause] = &[
    &SEGMENTED_WITHOUT_SG,
    &XDP_NATIVE,
    &PARTIAL_PULL,
    &SKB_COPY,
    &SKB_COPY_EXPAND,
    &FAST_OPEN,
    &FRAGMENTED,
    &IPSEC_OUT_OF_PLACE,
    &SOCKMAP,
    &VSOCK_URING,
    &MTU_PROBE,
    &DMA_BOUNCE,
];

const fn cause(
    id: &'static str,
    severity: Severity,
    title: &'static str,
    explanation: &'static str,
    fix: &'static str,
) -> Cause {
    let needs = &[Need::CopyFunction];
    Cause {
        id,
        class: Class::Hidden,
        title,
        explanation,
        fix,
        severity,
        needs,
        sites: &[],
    }
}

static SEGMENTED_WITHOUT_SG: Cause = cause(
    "segmented_without_sg",
    Warning,
    "segmented in software for a device that cannot gather",
    "TCP assumes that it can segment later. If the device then has no scatter-gather, skb_segment copies all \
     payload into linear segments and releases the pages as if they had been sent. WireGuard, IPsec and nfqueue \
     without NFQA_CFG_F_GSO ask for such segments too.",
    "Switch on scatter-gather (ethtool -K DEVICE sg on tx on); behind WireGuard and IPsec send without zero-copy.",
);

static XDP_NATIVE: Cause = cause(
    "xdp_native",
    Warning,
    "an XDP program in native mode on veth sees the packet",
    "veth copies packets into pages that the program may change.",
    "Detach the program, or send without zero-copy through that veth.",
);

static PARTIAL_PULL: Cause = cause(
    "partial_pull",
    Info,
    "a part of the payload was copied to be changed",
    "Traffic control (pedit), BPF programs, NAT helpers and some drivers copy the start of the payload into the \
     packet's head.",
    "Change headers only.",
);

static SKB_COPY: Cause = cause(
    "skb_copy",
    Warning,
    "the whole packet was copied to be changed",
    "netem corrupt, macsec and some drivers make their own copy of a packet that is shared.",
    "Remove what changes the packets, or send without zero-copy through it.",
);

static SKB_COPY_EXPAND: Cause = cause(
    "skb_copy_expand",
    Warning,
    "the whole packet was copied to make room for headers",
    "macsec and drivers of USB network cards need more room than the packet has.",
    "Send without zero-copy through such devices.",
);

static FAST_OPEN: Cause = cause(
    "fast_open",
    Info,
    "data sent with TCP Fast Open was copied into the SYN",
    "The data of a SYN is always copied.",
    "None needed: it is one packet per connection.",
);

static FRAGMENTED: Cause = cause(
    "fragmented",
    Warning,
    "fragmented on the way to a smaller MTU",
    "Each fragment is a copy.",
    "Use the same MTU along the path, or path MTU discovery.",
);

static IPSEC_OUT_OF_PLACE: Cause = cause(
    "ipsec_out_of_place",
    Warning,
    "ESP encrypted into new pages",
    "Encryption reads the sender's pages and writes others, which are sent.",
    "Send without zero-copy through IPsec that is not offloaded.",
);

static SOCKMAP: Cause = cause(
    "sockmap",
    Warning,
    "the socket is in a sockmap",
    "The payload is copied for the BPF program. The flag is lost, or (on 6.12 and later) the copy itself is sent with \
     zero-copy and reported so.",
    "Send without zero-copy on sockets in a sockmap.",
);

static VSOCK_URING: Cause = cause(
    "vsock_uring",
    Warning,
    "io_uring over vsock copied and reported zero-copy",
    "Where vsock cannot lend pages, it copies; io_uring's notification does not say so.",
    "Send whole pages that the credit of the peer allows, or without zero-copy.",
);

static MTU_PROBE: Cause = cause(
    "mtu_probe",
    Info,
    "TCP built a probe for a larger MTU",
    "On kernels such as 5.10 and 6.1, a probe packet is a copy of queued data (net.ipv4.tcp_mtu_probing).",
    "None needed: probes are rare.",
);

static DMA_BOUNCE: Cause = cause(
    "dma_bounce",
    Warning,
    "the device cannot reach the memory, and a bounce buffer is used",
    "In confidential virtual machines (SEV, TDX), with swiotlb=force and with devices of few address bits, all \
     payload goes through bounce buffers.",
    "None in confidential virtual machines; else a device or IOMMU that reaches all memory.",
);
