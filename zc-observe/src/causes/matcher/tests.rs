use super::*;

/// Every call of `skb_copy_ubufs` in four kernels that we looked into, as
/// "caller [module] <- second caller = cause/why".
const CALLS: &[(Version, &[&str])] = &[
    (
        Version(5, 10),
        &[
            "skb_zerocopy_clone = second_owner",
            "skb_clone = clone",
            "__skb_tstamp_tx = timestamp",
            "skb_zerocopy = upcall",
            "pskb_carve_inside_header = carve",
            "__pskb_copy_fclone = clone",
            "pskb_expand_head = expand_head",
            "pskb_carve_inside_nonlinear = carve",
            "skb_segment = segment",
            "__dev_forward_skb = device_forward",
            "dev_queue_xmit_nit = packet_tap_tx",
            "__netif_receive_skb_core = receive_path",
            "__bpf_redirect = bpf_redirect",
            "tun_net_xmit [tun] = tun_xmit",
        ],
    ),
    (
        Version(6, 1),
        &[
            "pskb_expand_head = expand_head",
            "skb_zerocopy_clone = second_owner",
            "skb_clone <- dev_queue_xmit_nit = clone/tap",
            "__skb_tstamp_tx = timestamp",
            "skb_zerocopy <- __nfqnl_enqueue_packet [nfnetlink_queue] = upcall/nfqueue",
            "__pskb_copy_fclone = clone",
            "pskb_carve_inside_header = carve",
            "pskb_carve_inside_nonlinear = carve",
            "skb_segment = segment",
            "__dev_forward_skb2 = device_forward",
            "dev_queue_xmit_nit <- dev_hard_start_xmit = packet_tap_tx",
            "__netif_receive_skb_core.constprop.0 <- __netif_receive_skb_one_core = receive_path",
            "__bpf_redirect = bpf_redirect",
            "tun_net_xmit [tun] <- dev_hard_start_xmit = tun_xmit",
        ],
    ),
    (
        Version(6, 12),
        &[
            "netkit_xmit = netkit",
            "pskb_expand_head = expand_head",
            "skb_zerocopy_clone = second_owner",
            "skb_clone <- maybe_deliver [bridge] = clone/bridge_flood",
            "skb_zerocopy <- queue_userspace_packet [openvswitch] = upcall/openvswitch",
            "pskb_carve_inside_header = carve",
            "__pskb_copy_fclone <- br_multicast_flood [bridge] = clone/bridge_multicast",
            "__skb_tstamp_tx = timestamp",
            "pskb_carve_inside_nonlinear = carve",
            "skb_segment = segment",
            "__dev_forward_skb2 = device_forward",
            "dev_queue_xmit_nit = packet_tap_tx",
            "__netif_receive_skb_core.constprop.0 = receive_path",
            "__bpf_redirect = bpf_redirect",
            "start_xmit [virtio_net] = driver_xmit",
            "tun_net_xmit [tun] = tun_xmit",
        ],
    ),
    (
        Version(7, 3),
        &[
            "netkit_xmit = netkit",
            "pskb_expand_head = expand_head",
            "skb_zerocopy_clone = second_owner",
            "skb_clone <- skb_share_check = clone",
            "skb_zerocopy = upcall",
            "pskb_carve_inside_header = carve",
            "__pskb_copy_fclone = clone",
            "__skb_tstamp_tx = timestamp",
            "pskb_carve_inside_nonlinear = carve",
            "skb_segment = segment",
            "__dev_forward_skb2 = device_forward",
            "deliver_skb <- dev_queue_xmit_nit = packet_tap_tx",
            "deliver_skb <- __netif_receive_skb_core.constprop.0 = packet_tap_rx",
            "dev_queue_xmit_nit = packet_tap_tx",
            "__bpf_redirect = bpf_redirect",
            "ip_local_deliver_finish <- ip_local_deliver = local_delivery",
            "ip6_input_finish = local_delivery",
            "ip6_input_finish [ipv6] = local_delivery",
            "start_xmit [virtio_net] = driver_xmit",
            "tun_net_xmit [tun] = tun_xmit",
        ],
    ),
];

/// Calls of `__pskb_pull_tail` that take all payload.
const PULLS: &[&str] = &[
    "validate_xmit_skb = linearize/device",
    "skb_checksum_help <- validate_xmit_skb = checksum/device",
    "skb_checksum_help <- xfrm_output = checksum/ipsec",
    "skb_checksum_help <- encrypt_packet [wireguard] = checksum/wireguard",
    "skb_checksum_help <- something_new = checksum",
    "skb_segment = checksum/segmentation",
    "skb_cow_data = linearize/encryption",
    "netem_enqueue [sch_netem] = linearize/netem",
    "netif_receive_generic_xdp = xdp_generic",
    "do_xdp_generic = xdp_generic",
];

fn frame(text: &str) -> Frame {
    let mut words = text.split_ascii_whitespace();
    Frame {
        address: 0xffff_ffff_8100_0000,
        function: words.next().map(str::to_owned),
        offset: 0x10,
        module: words
            .next()
            .map(|module| module.trim_matches(['[', ']']).to_owned()),
    }
}

fn check(function: CopyFunction, kernel: Version, line: &str) {
    let (stack, expected) = line.split_once(" = ").unwrap();
    let (caller, caller2) = stack
        .split_once(" <- ")
        .map_or((stack, None), |(first, second)| (first, Some(second)));
    let caller2 = caller2.map(frame);
    let verdict = classify(
        function,
        Some(&frame(caller)),
        caller2.as_ref(),
        Api::Unknown,
        kernel,
    );
    let (id, why) = expected
        .split_once('/')
        .map_or((expected, None), |(id, why)| (id, Some(why)));
    assert_eq!(
        (verdict.cause.id, verdict.why),
        (id, why),
        "{kernel}: {line}"
    );
    assert_eq!(verdict.why_unknown, None, "{kernel}: {line}");
}

#[test]
fn every_call_in_the_kernels_has_its_cause() {
    for &(kernel, lines) in CALLS {
        for line in lines {
            check(CopyFunction::SkbCopyUbufs, kernel, line);
        }
    }
}

#[test]
fn every_pull_has_its_cause() {
    for line in PULLS {
        check(CopyFunction::PskbPullTail, Version(6, 12), line);
    }
}

#[test]
fn the_receive_core_means_something_else_since_the_copy_moved() {
    let core = "__netif_receive_skb_core.constprop.0";
    let copy = CopyFunction::SkbCopyUbufs;
    check(copy, Version(6, 16), &format!("{core} = receive_path"));
    check(copy, Version(6, 17), &format!("{core} = packet_tap_rx"));
    // Ported back: the site itself is proof enough.
    check(
        copy,
        Version(6, 6),
        "ip_local_deliver_finish = local_delivery",
    );
}

fn why(function: CopyFunction, caller: Option<Frame>, caller2: Option<Frame>) -> WhyUnknown {
    let verdict = classify(
        function,
        caller.as_ref(),
        caller2.as_ref(),
        Api::MsgZerocopy,
        Version(7, 3),
    );
    assert_eq!(verdict.cause.id, "unknown");
    verdict.why_unknown.unwrap()
}

#[test]
fn what_is_not_known_is_unknown_and_says_why() {
    let copy = CopyFunction::SkbCopyUbufs;
    assert_eq!(why(copy, None, None), WhyUnknown::NoStack);
    let nameless = Frame {
        function: None,
        ..frame("x")
    };
    assert_eq!(
        why(copy, Some(nameless.clone()), None),
        WhyUnknown::NoSymbol
    );
    let second = WhyUnknown::NoSecondCaller {
        caller: "deliver_skb".into(),
    };
    assert_eq!(why(copy, Some(frame("deliver_skb")), None), second);
    assert_eq!(
        why(copy, Some(frame("deliver_skb")), Some(nameless)),
        second
    );
    let unmatched = |caller: &str| WhyUnknown::Unmatched {
        caller: caller.into(),
    };
    assert_eq!(
        why(copy, Some(frame("deliver_skb")), Some(frame("somebody"))),
        unmatched("deliver_skb called by somebody")
    );
    assert_eq!(
        why(copy, Some(frame("my_xmit.isra.0 [my_nic]")), None),
        unmatched("my_xmit.isra.0 [my_nic]")
    );
}

#[test]
fn a_site_counts_for_its_own_copying_function_and_module_only() {
    let pull = CopyFunction::PskbPullTail;
    let copy = CopyFunction::SkbCopyUbufs;
    let unmatched = |caller: &str| WhyUnknown::Unmatched {
        caller: caller.into(),
    };
    assert_eq!(
        why(pull, Some(frame("skb_clone")), None),
        unmatched("skb_clone")
    );
    assert_eq!(
        why(copy, Some(frame("skb_checksum_help")), None),
        unmatched("skb_checksum_help")
    );
    assert_eq!(
        why(copy, Some(frame("start_xmit [other]")), None),
        unmatched("start_xmit [other]")
    );
    assert_eq!(
        why(copy, Some(frame("dev_queue_xmit_nit [fake]")), None),
        unmatched("dev_queue_xmit_nit [fake]")
    );
}

#[test]
fn owners_that_are_spared_on_known_kernels_are_marked() {
    let verdict = |caller: &str, api| {
        let kernel = Version(6, 12);
        classify(
            CopyFunction::SkbCopyUbufs,
            Some(&frame(caller)),
            None,
            api,
            kernel,
        )
    };
    assert!(verdict("skb_clone", Api::MsgZerocopy).unexpected_owner);
    assert!(verdict("skb_clone", Api::IoUring).unexpected_owner);
    assert!(!verdict("skb_clone", Api::Vhost).unexpected_owner);
    assert!(!verdict("skb_clone", Api::Unknown).unexpected_owner);
    assert!(!verdict("dev_queue_xmit_nit", Api::MsgZerocopy).unexpected_owner);
}
