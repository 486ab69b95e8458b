//! Read-only globals: everything about the running kernel that the programs
//! cannot know when they are compiled.

/// An offset whose struct or field this kernel does not have.
pub const ABSENT: u32 = u32::MAX;

/// Byte offsets of kernel fields, from the running kernel's BTF; [`ABSENT`] where missing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Offsets {
    /// `sk_buff.dev`.
    pub skb_dev: u32,
    /// `sk_buff.sk`.
    pub skb_sk: u32,
    /// `sk_buff.cb`.
    pub skb_cb: u32,
    /// `sk_buff.len`.
    pub skb_len: u32,
    /// `sk_buff.data_len`.
    pub skb_data_len: u32,
    /// `sk_buff.protocol`, big endian.
    pub skb_protocol: u32,
    /// `sk_buff.end`, an offset from `head`.
    pub skb_end: u32,
    /// `sk_buff.head`.
    pub skb_head: u32,
    /// `sk_buff.destructor`.
    pub skb_destructor: u32,
    /// `skb_shared_info.flags`; absent up to 5.11.
    pub shinfo_flags: u32,
    /// `skb_shared_info.tx_flags`.
    pub shinfo_tx_flags: u32,
    /// `skb_shared_info.destructor_arg`.
    pub shinfo_destructor_arg: u32,
    /// `ubuf_info.callback`; absent from 6.10 on.
    pub ubuf_callback: u32,
    /// `ubuf_info.ops`; absent up to 6.9.
    pub ubuf_ops: u32,
    /// `ubuf_info_ops.complete`.
    pub ubuf_ops_complete: u32,
    /// `ubuf_info_msgzc.id`, or `ubuf_info.id` up to 6.0.
    pub msgzc_id: u32,
    /// `ubuf_info_msgzc.len`.
    pub msgzc_len: u32,
    /// Byte that holds the bit `ubuf_info_msgzc.zerocopy`.
    pub msgzc_zerocopy: u32,
    /// The bit within [`Self::msgzc_zerocopy`].
    pub msgzc_zerocopy_bit: u32,
    /// `ubuf_info_msgzc.bytelen`.
    pub msgzc_bytelen: u32,
    /// `sock_exterr_skb.ee`.
    pub exterr_ee: u32,
    /// `net_device.ifindex`.
    pub dev_ifindex: u32,
    /// `net_device.name`.
    pub dev_name: u32,
    /// `net_device.flags`.
    pub dev_flags: u32,
    /// `net_device.type`.
    pub dev_type: u32,
    /// `net_device.nd_net.net`.
    pub dev_net: u32,
    /// `net_device.rtnl_link_ops`.
    pub dev_rtnl_link_ops: u32,
    /// `rtnl_link_ops.kind`.
    pub rtnl_link_ops_kind: u32,
    /// `net.ns.inum`.
    pub net_inum: u32,
    /// `net.net_cookie`.
    pub net_cookie: u32,
    /// `sock_common.skc_family`.
    pub sk_family: u32,
    /// `sock_common.skc_net.net`.
    pub sk_net: u32,
    /// `sock.sk_protocol`.
    pub sk_protocol: u32,
    /// `sock.sk_uid`.
    pub sk_uid: u32,
    /// `sock.sk_socket`.
    pub sk_socket: u32,
    /// `sock_common.skc_flags`, the socket's flag word.
    pub sk_flags: u32,
    /// `sock.sk_zckey`, the next notification id.
    pub sk_zckey: u32,
    /// `sock.sk_error_queue`.
    pub sk_error_queue: u32,
    /// Inode number, seen from `struct socket` (`socket_alloc.vfs_inode.i_ino`).
    pub socket_ino: u32,
    /// `msghdr.msg_ubuf`; absent up to 5.19.
    pub msg_ubuf: u32,
    /// `io_notif_data.uarg`.
    pub notif_uarg: u32,
    /// `io_notif_data.next`; absent up to 6.9.
    pub notif_next: u32,
    /// `io_notif_data.zc_report`; absent up to 6.1.
    pub notif_zc_report: u32,
    /// `io_notif_data.zc_used`.
    pub notif_zc_used: u32,
    /// `io_notif_data.zc_copied`.
    pub notif_zc_copied: u32,
    /// `io_kiocb.cmd`: where a notification's `io_notif_data` lies in its request.
    pub kiocb_cmd: u32,
}

impl Offsets {
    /// Nothing known; what the object in the tree is compiled with.
    pub const NONE: Self = Self {
        skb_dev: ABSENT,
        skb_sk: ABSENT,
        skb_cb: ABSENT,
        skb_len: ABSENT,
        skb_data_len: ABSENT,
        skb_protocol: ABSENT,
        skb_end: ABSENT,
        skb_head: ABSENT,
        skb_destructor: ABSENT,
        shinfo_flags: ABSENT,
        shinfo_tx_flags: ABSENT,
        shinfo_destructor_arg: ABSENT,
        ubuf_callback: ABSENT,
        ubuf_ops: ABSENT,
        ubuf_ops_complete: ABSENT,
        msgzc_id: ABSENT,
        msgzc_len: ABSENT,
        msgzc_zerocopy: ABSENT,
        msgzc_zerocopy_bit: ABSENT,
        msgzc_bytelen: ABSENT,
        exterr_ee: ABSENT,
        dev_ifindex: ABSENT,
        dev_name: ABSENT,
        dev_flags: ABSENT,
        dev_type: ABSENT,
        dev_net: ABSENT,
        dev_rtnl_link_ops: ABSENT,
        rtnl_link_ops_kind: ABSENT,
        net_inum: ABSENT,
        net_cookie: ABSENT,
        sk_family: ABSENT,
        sk_net: ABSENT,
        sk_protocol: ABSENT,
        sk_uid: ABSENT,
        sk_socket: ABSENT,
        sk_flags: ABSENT,
        sk_zckey: ABSENT,
        sk_error_queue: ABSENT,
        socket_ino: ABSENT,
        notif_next: ABSENT,
        notif_zc_report: ABSENT,
        notif_zc_used: ABSENT,
        notif_zc_copied: ABSENT,
        msg_ubuf: ABSENT,
        notif_uarg: ABSENT,
        kiocb_cmd: ABSENT,
    };
}

/// Addresses and constants of the running kernel that are not field offsets. 0 where unknown.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Kernel {
    /// Address of `skb_copy_ubufs`, to recognise the call to it on the stack.
    pub skb_copy_ubufs: u64,
    /// Address of `__pskb_pull_tail`, for the same.
    pub pskb_pull_tail: u64,
    /// Where `__msg_zerocopy_callback` begins.
    pub completer: u64,
    /// Where it ends.
    pub completer_end: u64,
    /// Address of `sock_ofree`, the destructor of notification skbs.
    pub sock_ofree: u64,
    /// Address of `sock_zerocopy_callback`, `msg_zerocopy_callback` or `msg_zerocopy_complete`:
    /// the owner of `MSG_ZEROCOPY` buffers.
    pub msg_zerocopy_owner: u64,
    /// Address of `io_uring_tx_zerocopy_callback` or `io_tx_ubuf_complete`: the owner of
    /// `io_uring` buffers.
    pub io_uring_owner: u64,
    /// Mask of the zero-copy bit in `skb_shared_info.flags`, or in `tx_flags` up to 5.11.
    pub zerocopy_flag: u32,
    /// Bit number of `SOCK_ZEROCOPY` in the socket's flag word; 0 where unknown.
    pub sock_zerocopy_bit: u32,
}

impl Kernel {
    /// Nothing known.
    pub const NONE: Self = Self {
        skb_copy_ubufs: 0,
        pskb_pull_tail: 0,
        completer: 0,
        completer_end: 0,
        sock_ofree: 0,
        msg_zerocopy_owner: 0,
        io_uring_owner: 0,
        zerocopy_flag: 0,
        sock_zerocopy_bit: 0,
    };
}

pod!(Offsets, Kernel);
