//! Where the kernel's structs keep what the programs read, as one table.

use zc_observe_ebpf::{ABSENT, Offsets};

use super::btf::KernelBtf;

/// The offsets of this kernel, and what could not be found.
#[derive(Clone, Debug)]
pub struct ResolvedOffsets {
    /// As the programs take them.
    pub offsets: Offsets,
    /// Fields that this kernel should have and does not.
    pub missing: Vec<MissingField>,
}

/// A field that was not found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MissingField {
    /// The name in [`Offsets`].
    pub name: &'static str,
    /// The struct that was looked in.
    pub strukt: &'static str,
    /// The field that was looked for, as a path.
    pub field: &'static str,
    /// What is lost without it.
    pub feature: &'static str,
}

/// When a kernel has a field.
#[derive(Clone, Copy, Debug)]
enum Presence {
    /// Always.
    Always,
    /// Unless it has this other one in its place.
    Unless(&'static str, &'static str),
    /// If it has this struct: without it, the whole feature is not in the kernel.
    With(&'static str),
    /// Only newer kernels, and older ones do not need it.
    Newer,
}

/// One line of the table.
struct Row {
    name: &'static str,
    slot: fn(&mut Offsets) -> &mut u32,
    /// Struct and path, the newest kernel's first.
    places: &'static [(&'static str, &'static str)],
    presence: Presence,
    feature: &'static str,
}

macro_rules! rows {
    ($($feature:literal { $($slot:ident: $($strukt:literal $path:literal)|+, $presence:expr;)+ })+) => {
        &[$($(Row {
            name: stringify!($slot),
            slot: |offsets| &mut offsets.$slot,
            places: &[$(($strukt, $path)),+],
            presence: $presence,
            feature: $feature,
        }),+),+]
    };
}

use Presence::{Always, Newer, Unless, With};

/// Every field but those that are computed from two, see [`offsets`].
const TABLE: &[Row] = rows! {
    "recognising zero-copy packets, thus all deep copies and bytes per device" {
        skb_len: "sk_buff" "len", Always;
        skb_data_len: "sk_buff" "data_len", Always;
        skb_end: "sk_buff" "end", Always;
        skb_head: "sk_buff" "head", Always;
        // Up to 5.11 the flag is in tx_flags.
        shinfo_flags: "skb_shared_info" "flags", Unless("skb_shared_info", "tx_flags");
        shinfo_tx_flags: "skb_shared_info" "tx_flags", Unless("skb_shared_info", "flags");
        shinfo_destructor_arg: "skb_shared_info" "destructor_arg", Always;
    }
    "the API behind a deep copy" {
        // `ops` replaced `callback` in 6.10.
        ubuf_callback: "ubuf_info" "callback", Unless("ubuf_info", "ops");
        ubuf_ops: "ubuf_info" "ops", Unless("ubuf_info", "callback");
        ubuf_ops_complete: "ubuf_info_ops" "complete", Unless("ubuf_info", "callback");
    }
    "the address family of a deep copy" {
        skb_protocol: "sk_buff" "protocol", Always;
    }
    "completions of MSG_ZEROCOPY on the fentry and kprobe tiers" {
        // `ubuf_info_msgzc` was split off `ubuf_info` in 6.1.
        msgzc_id: "ubuf_info_msgzc" "id" | "ubuf_info" "id", Always;
        msgzc_len: "ubuf_info_msgzc" "len" | "ubuf_info" "len", Always;
        msgzc_bytelen: "ubuf_info_msgzc" "bytelen" | "ubuf_info" "bytelen", Always;
    }
    "completions of MSG_ZEROCOPY on the tracepoint tier" {
        skb_destructor: "sk_buff" "destructor", Always;
        exterr_ee: "sock_exterr_skb" "ee", Always;
        sk_error_queue: "sock" "sk_error_queue", Always;
    }
    "the socket of a completion: its protocol, family and sender" {
        skb_sk: "sk_buff" "sk", Always;
        skb_cb: "sk_buff" "cb", Always;
    }
    "the device of a deep copy, and bytes per device" {
        skb_dev: "sk_buff" "dev", Always;
        dev_ifindex: "net_device" "ifindex", Always;
        dev_net: "net_device" "nd_net.net", Always;
        net_inum: "net" "ns.inum", Always;
        net_cookie: "net" "net_cookie", Always;
    }
    "names of devices" {
        dev_name: "net_device" "name", Always;
    }
    "kinds of devices" {
        dev_flags: "net_device" "flags", Always;
        dev_type: "net_device" "type", Always;
        dev_rtnl_link_ops: "net_device" "rtnl_link_ops", Always;
        rtnl_link_ops_kind: "rtnl_link_ops" "kind", Always;
    }
    "transport and family of attempts and completions" {
        sk_family: "sock" "__sk_common.skc_family", Always;
        sk_protocol: "sock" "sk_protocol", Always;
    }
    "the network namespace of a sender" {
        sk_net: "sock" "__sk_common.skc_net.net", Always;
    }
    "the user of a sender that was not seen sending" {
        sk_uid: "sock" "sk_uid", Always;
    }
    "the process of a sender that was not seen sending" {
        sk_socket: "sock" "sk_socket", Always;
    }
    "attempts of MSG_ZEROCOPY on the tracepoint tier" {
        sk_flags: "sock" "__sk_common.skc_flags", Always;
        sk_zckey: "sock" "sk_zckey", Always;
    }
    "attempts and completions of io_uring" {
        msg_ubuf: "msghdr" "msg_ubuf", With("io_notif_data");
        notif_uarg: "io_notif_data" "uarg", With("io_notif_data");
        kiocb_cmd: "io_kiocb" "cmd", With("io_notif_data");
        // Linked notifications: since 6.10.
        notif_next: "io_notif_data" "next", Newer;
    }
    "outcomes of io_uring" {
        // A kernel without these does not tell the application either.
        notif_zc_report: "io_notif_data" "zc_report", Newer;
        notif_zc_used: "io_notif_data" "zc_used", Newer;
        notif_zc_copied: "io_notif_data" "zc_copied", Newer;
    }
};

/// Looks up every offset that the programs use.
#[must_use]
pub fn offsets(btf: &KernelBtf) -> ResolvedOffsets {
    let mut offsets = Offsets::NONE;
    let mut missing = Vec::new();
    for row in TABLE {
        if let Some(offset) = row
            .places
            .iter()
            .find_map(|(strukt, path)| btf.offset(strukt, path))
        {
            *(row.slot)(&mut offsets) = offset;
            continue;
        }
        let lost = match row.presence {
            Always => true,
            Unless(strukt, path) => btf.field(strukt, path).is_none(),
            With(strukt) => btf.size(strukt).is_some(),
            Newer => false,
        };
        if let (true, Some(&(strukt, field))) = (lost, row.places.first()) {
            missing.push(MissingField {
                name: row.name,
                strukt,
                field,
                feature: row.feature,
            });
        }
    }

    // A bit field: which byte, which bit.
    let outcome = ["ubuf_info_msgzc", "ubuf_info"]
        .into_iter()
        .find_map(|strukt| btf.bit_offset(strukt, "zerocopy"));
    if let Some(bits) = outcome {
        (offsets.msgzc_zerocopy, offsets.msgzc_zerocopy_bit) = (bits / 8, bits % 8);
    } else {
        missing.push(MissingField {
            name: "msgzc_zerocopy",
            strukt: "ubuf_info_msgzc",
            field: "zerocopy",
            feature: "outcomes of MSG_ZEROCOPY, and whether a copied send was copied before",
        });
    }

    // A socket and its inode lie in one `socket_alloc`; the programs hold the socket.
    let inode = btf
        .offset("socket_alloc", "vfs_inode.i_ino")
        .zip(btf.offset("socket_alloc", "socket"))
        .and_then(|(inode, socket)| inode.checked_sub(socket));
    if let Some(inode) = inode {
        offsets.socket_ino = inode;
    } else {
        missing.push(MissingField {
            name: "socket_ino",
            strukt: "socket_alloc",
            field: "vfs_inode.i_ino",
            feature: "the process of a sender that was not seen sending",
        });
    }
    ResolvedOffsets { offsets, missing }
}

/// Whether an offset is known.
#[must_use]
pub const fn known(offset: u32) -> bool {
    offset != ABSENT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots that [`offsets`] computes itself.
    const COMPUTED: usize = 3;

    #[test]
    fn every_slot_is_filled_by_one_row() {
        let mut seen = Offsets::NONE;
        for row in TABLE {
            let slot = (row.slot)(&mut seen);
            assert_eq!(*slot, ABSENT, "{} is set by two rows", row.name);
            *slot = 0;
        }
        let slots = size_of::<Offsets>() / size_of::<u32>();
        assert_eq!(TABLE.len() + COMPUTED, slots, "a slot has no row");
        assert_eq!(seen.msgzc_zerocopy, ABSENT);
        assert_eq!(seen.msgzc_zerocopy_bit, ABSENT);
        assert_eq!(seen.socket_ino, ABSENT);
    }

    /// What holds on every kernel, whatever its layout, checked on the one that runs the test.
    #[test]
    fn this_kernel_is_plausible() {
        let btf = KernelBtf::load().expect("BTF of this kernel");
        let ResolvedOffsets { offsets, missing } = offsets(&btf);
        assert_eq!(missing, []);
        assert_eq!(offsets.skb_len + 4, offsets.skb_data_len);
        assert!(offsets.skb_end < offsets.skb_head);
        assert!(offsets.skb_cb + 48 <= offsets.skb_len);
        assert!(known(offsets.ubuf_callback) != known(offsets.ubuf_ops));
        assert_eq!(known(offsets.ubuf_ops), known(offsets.ubuf_ops_complete));
        assert!(offsets.msgzc_zerocopy_bit < 8);
        assert_eq!(
            offsets.sk_family, 16,
            "skc_family has not moved in ten years"
        );
        let sock = btf.size("sock").expect("struct sock");
        assert!(
            offsets.sk_zckey < sock && offsets.sk_error_queue < sock && offsets.sk_flags < sock
        );
        assert!(offsets.socket_ino > btf.size("socket").expect("struct socket"));
        assert!(offsets.dev_name < btf.size("net_device").expect("struct net_device"));
    }
}
