//! Addresses and constants of the running kernel that the programs need.

use zc_observe_ebpf::Kernel;

use super::btf::KernelBtf;
use super::symbols::Symbols;

/// Owners of `MSG_ZEROCOPY` buffers: 5.10 and 5.11, then up to 6.9, then since 6.10.
pub const MSG_ZEROCOPY_OWNERS: &[&str] = &[
    "sock_zerocopy_callback",
    "msg_zerocopy_callback",
    "msg_zerocopy_complete",
];

/// Owners of `io_uring` buffers: 6.0 to 6.9, then since 6.10.
pub const IO_URING_OWNERS: &[&str] = &["io_uring_tx_zerocopy_callback", "io_tx_ubuf_complete"];

/// `SKBTX_DEV_ZEROCOPY` up to 5.11, in `skb_shared_info.tx_flags`.
const SKBTX_DEV_ZEROCOPY: u32 = 1 << 3;

/// `SKBFL_ZEROCOPY_ENABLE` since 5.12, in `skb_shared_info.flags`.
const SKBFL_ZEROCOPY_ENABLE: u32 = 1 << 0;

/// Looks up all that [`Kernel`] holds; 0 where unknown.
#[must_use]
pub fn globals(btf: &KernelBtf, symbols: &Symbols) -> Kernel {
    let address = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| symbols.address(name))
            .unwrap_or(0)
    };
    let flag = if btf.field("skb_shared_info", "flags").is_some() {
        btf.enumerator("", "SKBFL_ZEROCOPY_ENABLE")
            .map_or(SKBFL_ZEROCOPY_ENABLE, truncate)
    } else {
        btf.enumerator("", "SKBTX_DEV_ZEROCOPY")
            .map_or(SKBTX_DEV_ZEROCOPY, truncate)
    };
    let (completer, completer_end) = symbols
        .extent("__msg_zerocopy_callback")
        .unwrap_or_default();
    Kernel {
        completer,
        completer_end,
        skb_copy_ubufs: address(&["skb_copy_ubufs"]),
        pskb_pull_tail: address(&["__pskb_pull_tail"]),
        sock_ofree: address(&["sock_ofree"]),
        msg_zerocopy_owner: address(MSG_ZEROCOPY_OWNERS),
        io_uring_owner: address(IO_URING_OWNERS),
        zerocopy_flag: flag,
        sock_zerocopy_bit: btf
            .enumerator("sock_flags", "SOCK_ZEROCOPY")
            .map_or(0, truncate),
    }
}

/// Enumerators of flags and bits are small.
fn truncate(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernel_is_plausible() {
        let btf = KernelBtf::load().expect("BTF of this kernel");
        let symbols = Symbols::load().expect("symbols of this kernel");
        let kernel = globals(&btf, &symbols);
        assert!(kernel.sock_zerocopy_bit > 0 && kernel.sock_zerocopy_bit < 64);
        assert!(kernel.zerocopy_flag == 1 || kernel.zerocopy_flag == 8);
        if !symbols.hidden() {
            assert_ne!(kernel.skb_copy_ubufs, 0);
            assert_ne!(kernel.pskb_pull_tail, 0);
            assert_ne!(kernel.sock_ofree, 0);
            assert!(
                (kernel.completer + 1..kernel.completer + 4096).contains(&kernel.completer_end)
            );
            assert_ne!(kernel.msg_zerocopy_owner, 0);
        }
    }
}
