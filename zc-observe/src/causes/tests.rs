use std::collections::BTreeSet;

use super::*;

/// The closed list, by class.
const CLOSED_LIST: &[(Class, &str)] = &[
    (
        Class::Copied,
        "local_delivery receive_path packet_tap_tx packet_tap_rx tun_xmit timestamp checksum \
         linearize xdp_generic second_owner unknown device_forward bpf_redirect netkit clone \
         segment upcall driver_xmit carve expand_head",
    ),
    (
        Class::SendTime,
        "no_scatter_gather exceeds_mtu no_checksum_offload corked unarmed unsupported \
         vhost_backoff vhost_small vhost_disabled splice_refused",
    ),
    (
        Class::Hidden,
        "segmented_without_sg xdp_native partial_pull skb_copy skb_copy_expand fast_open \
         fragmented ipsec_out_of_place sockmap vsock_uring mtu_probe dma_bounce",
    ),
    (
        Class::FlagWrong,
        "merged_notification uring_linked failed_send",
    ),
    (
        Class::Refused,
        "memlock optmem frag_limit fault unreadable uring_memlock",
    ),
    (
        Class::NotCopied,
        "depth_one not_reaped stalled held_by_socket small_sends opted_out xsk_copy_mode",
    ),
];

#[test]
fn the_list_is_closed() {
    for &(class, ids) in CLOSED_LIST {
        let expected: BTreeSet<_> = ids.split_ascii_whitespace().collect();
        let found: BTreeSet<_> = all()
            .filter(|cause| cause.class == class)
            .map(|cause| cause.id)
            .collect();
        assert_eq!(found, expected, "{}", class.as_str());
    }
}

#[test]
fn ids_are_unique_and_fit_a_label() {
    let mut seen = BTreeSet::new();
    for cause in all() {
        assert!(seen.insert(cause.id), "{} is there twice", cause.id);
        assert!(
            cause
                .id
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{}",
            cause.id
        );
        assert!(std::ptr::eq(by_id(cause.id).unwrap(), cause));
    }
    assert!(by_id("other").is_none());
}

#[test]
fn every_cause_says_what_why_and_what_to_do() {
    for cause in all() {
        assert!(
            !cause.title.ends_with('.') && !cause.title.contains('\n'),
            "{}",
            cause.id
        );
        for text in [cause.explanation, cause.fix] {
            assert!(text.ends_with('.'), "{}: {text}", cause.id);
            assert!(
                !text.contains("  ") && !text.contains('\n'),
                "{}: {text}",
                cause.id
            );
        }
        assert!(!cause.needs.is_empty(), "{}", cause.id);
    }
}

/// Only these are proven by a call site; a site under another class would never be counted.
#[test]
fn sites_belong_to_copies_that_completions_report() {
    for cause in all() {
        let expected = cause.class == Class::Copied && cause.id != UNKNOWN.id;
        assert_eq!(!cause.sites.is_empty(), expected, "{}", cause.id);
    }
}
