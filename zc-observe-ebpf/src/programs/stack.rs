//! Who called the traced function.

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_probe_read_kernel, generated::bpf_get_stack},
};

/// Frames looked at. Up to three lie above the caller: this program, the trampoline and
/// the traced function.
const FRAMES: usize = 10;
/// A direct call on x86-64: opcode and 32-bit displacement.
const CALL: u8 = 0xe8;
const CALL_LEN: u64 = 5;
/// The call may target the function's padding (call depth tracking) or skip its `endbr64`.
const BEFORE: u64 = 64;
const AFTER: u64 = 16;

/// The return addresses into the caller of `function` and into that one's caller.
///
/// How many frames lie above differs between methods and kernels, so the caller is the
/// first return address whose preceding instruction calls `function`. Both are 0 if none
/// does: then the caller is not known.
#[inline(always)]
pub fn callers<C: EbpfContext>(ctx: &C, function: u64) -> (u64, u64) {
    let mut frames = [0u64; FRAMES];
    // SAFETY: the buffer is as long as told.
    let len = unsafe {
        bpf_get_stack(
            ctx.as_ptr(),
            frames.as_mut_ptr().cast(),
            size_of_val(&frames) as u32,
            0,
        )
    };
    if len <= 0 || function == 0 {
        return (0, 0);
    }
    for i in 0..FRAMES - 1 {
        let address = frames[i];
        if address <= CALL_LEN {
            break;
        }
        // SAFETY: the helper checks the address.
        let Ok(code) = (unsafe { bpf_probe_read_kernel((address - CALL_LEN) as *const [u8; 5]) })
        else {
            continue;
        };
        let displacement = i32::from_le_bytes([code[1], code[2], code[3], code[4]]);
        let target = address.wrapping_add_signed(i64::from(displacement));
        if code[0] == CALL && target.wrapping_sub(function - BEFORE) <= BEFORE + AFTER {
            return (address, frames[i + 1]);
        }
    }
    (0, 0)
}
