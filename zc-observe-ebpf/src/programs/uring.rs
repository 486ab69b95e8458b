//! `io_uring` `SEND_ZC` and `SENDMSG_ZC`: its notifications are requests of their own, and
//! their buffers know no socket.

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns},
    macros::{fentry, fexit, kprobe, kretprobe},
    programs::{FEntryContext, FExitContext, ProbeContext, RetProbeContext},
};
use zc_observe_ebpf::{
    ABSENT, AttemptKey, Buffer, CallArgs, CompletionKey, MapId, Probe, api, outcome,
};

use super::{
    complete,
    count::{self, bump},
    kernel::{fact, offset, read, traced_arg},
    maps::{ATTEMPTS, BUFFERS, CALLS},
    send::ZERO as NO_ATTEMPTS,
    sender, skb, socket,
};

/// Linked notifications that are walked at one completion.
const CHAIN: usize = 64;

/// Address of the `ubuf_info` in a notification request (`io_kiocb`).
#[inline(always)]
fn uarg_of(notif: u64) -> u64 {
    let (cmd, uarg) = (offset!(kiocb_cmd), offset!(notif_uarg));
    if notif == 0 || cmd == ABSENT || uarg == ABSENT {
        return 0;
    }
    notif + u64::from(cmd) + u64::from(uarg)
}

/// `io_alloc_notif(ctx)` returned a notification, or NULL.
#[inline(always)]
fn attempt(notif: u64) {
    count::hit(Probe::UringAttempt);
    let key = AttemptKey {
        protocol: 0,
        family: 0,
        api: api::IO_URING,
        pad: [0; 3],
    };
    let Some((value, _)) = count::entry(&ATTEMPTS, MapId::Attempts, &key, &NO_ATTEMPTS) else {
        count::lost(Probe::UringAttempt, 0);
        return;
    };
    let uarg = uarg_of(notif);
    if uarg == 0 {
        bump!(value, refused += 1);
        return;
    }
    bump!(value, accepted += 1);
    // SAFETY: the helper takes nothing.
    let start = unsafe { bpf_ktime_get_ns() };
    if BUFFERS
        .insert(
            uarg,
            Buffer {
                start,
                ..Buffer::default()
            },
            0,
        )
        .is_err()
    {
        count::failed(MapId::Buffers);
    }
}

/// `io_tx_ubuf_complete(skb, uarg, success)`: one reference is gone.
#[inline(always)]
fn release(uarg: u64, success: bool) {
    if !success && let Some(buffer) = BUFFERS.get_ptr_mut(uarg) {
        // SAFETY: a live map value; every writer writes 1.
        unsafe { (*buffer).reported_copied = 1 };
    }
}

/// A flag of `io_notif_data`; 0 where this kernel does not have it.
#[inline(always)]
fn flag(data: u64, offset: u32) -> u32 {
    read::<u8>(data, offset).unwrap_or(0).into()
}

/// What a notification's completion will say, or would if it were asked to report.
#[inline(always)]
fn copied(data: u64, reported: u32) -> bool {
    let report = flag(data, offset!(notif_zc_report));
    let copied = flag(data, offset!(notif_zc_copied));
    let used = flag(data, offset!(notif_zc_used));
    if report != 0 {
        copied != 0 || used == 0
    } else {
        reported != 0
    }
}

/// `io_notif_tw_complete(notif)`: the application is told, of this notification and of
/// those linked to it (from 6.10 on).
#[inline(always)]
fn finish(notif: u64) {
    let cmd = offset!(kiocb_cmd);
    let mut data = match uarg_of(notif) {
        0 => return count::unreadable(Probe::UringComplete),
        _ => notif + u64::from(cmd),
    };
    for _ in 0..CHAIN {
        count::hit(Probe::UringComplete);
        one(data);
        data = read(data, offset!(notif_next)).unwrap_or(0);
        if data == 0 {
            return;
        }
    }
    // A longer chain: the rest is not counted.
    count::lost(Probe::UringComplete, 0);
}

/// One notification of the chain. A function of its own in the kernel as well: the program
/// would be 64 times as long.
#[inline(never)]
fn one(data: u64) {
    let uarg = data + u64::from(offset!(notif_uarg));
    let (mut sk, mut start, mut bytes, mut reported) = (0, 0, 0, 0);
    if let Some(buffer) = BUFFERS.get_ptr(uarg) {
        // SAFETY: a live map value.
        let known = unsafe { *buffer };
        (sk, start, bytes, reported) = (known.sk, known.start, known.bytes, known.reported_copied);
    }
    let copied = copied(data, reported);
    if start != 0 {
        complete::time(api::IO_URING, start);
    }
    let key = CompletionKey {
        protocol: socket::protocol(sk),
        family: socket::family(sk),
        api: api::IO_URING,
        outcome: if copied {
            outcome::COPIED
        } else {
            outcome::ZEROCOPY
        },
        pad: [0; 2],
    };
    complete::count(Probe::UringComplete, &key, sk, 1, bytes, 1);
    if start != 0 {
        let _ = BUFFERS.remove(uarg);
    }
}

/// `__zerocopy_sg_from_iter(msg, sk, skb, …)` begins to put pages into an skb: keeps what
/// its return needs. By task: it may sleep.
#[inline(always)]
fn bind_enter(msg: u64, sk: u64, target: u64) {
    let uarg: u64 = read(msg, offset!(msg_ubuf)).unwrap_or(0);
    if uarg == 0 || skb::owner(uarg) != fact!(io_uring_owner) {
        return;
    }
    let len: u32 = read(target, offset!(skb_len)).unwrap_or(0);
    let mut sock = sk;
    if sock == 0 {
        sock = read(target, offset!(skb_sk)).unwrap_or(0);
    }
    sender::learn(sock);
    if let Some(buffer) = BUFFERS.get_ptr_mut(uarg) {
        // SAFETY: a live map value; a notification belongs to one socket.
        unsafe { (*buffer).sk = sock };
    }
    let args = [uarg, target, u64::from(len)];
    if CALLS
        .insert(bpf_get_current_pid_tgid(), CallArgs { args }, 0)
        .is_err()
    {
        count::unreadable(Probe::UringBind);
    }
}

/// It returns: the skb has grown by what was taken in.
#[inline(always)]
fn bind_leave() {
    let task = bpf_get_current_pid_tgid();
    let Some(call) = CALLS.get_ptr(task) else {
        return;
    };
    // SAFETY: a live map value of this task.
    let [uarg, target, before] = unsafe { (*call).args };
    let _ = CALLS.remove(task);
    count::hit(Probe::UringBind);
    let len: u32 = read(target, offset!(skb_len)).unwrap_or(0);
    let bytes = u64::from(len).saturating_sub(before);
    let Some(buffer) = BUFFERS.get_ptr_mut(uarg) else {
        return;
    };
    bump!(buffer, bytes += bytes);
    let key = AttemptKey {
        protocol: 0,
        family: 0,
        api: api::IO_URING,
        pad: [0; 3],
    };
    if let Some(value) = ATTEMPTS.get_ptr_mut(key) {
        bump!(value, bytes += bytes);
    }
}

/// `io_alloc_notif(ctx) -> io_kiocb *`.
#[fexit]
pub fn uring_attempt_fexit(ctx: FExitContext) -> i32 {
    attempt(traced_arg(ctx.as_ptr(), 1));
    0
}

#[kretprobe]
pub fn uring_attempt_kretprobe(ctx: RetProbeContext) -> u32 {
    attempt(ctx.ret());
    0
}

#[fentry]
pub fn uring_release_fentry(ctx: FEntryContext) -> i32 {
    release(
        traced_arg(ctx.as_ptr(), 1),
        traced_arg(ctx.as_ptr(), 2) as u8 != 0,
    );
    0
}

#[kprobe]
pub fn uring_release_kprobe(ctx: ProbeContext) -> u32 {
    release(
        ctx.arg(1).unwrap_or(0),
        ctx.arg::<u64>(2).unwrap_or(0) as u8 != 0,
    );
    0
}

#[fentry]
pub fn uring_complete_fentry(ctx: FEntryContext) -> i32 {
    finish(traced_arg(ctx.as_ptr(), 0));
    0
}

#[kprobe]
pub fn uring_complete_kprobe(ctx: ProbeContext) -> u32 {
    finish(ctx.arg(0).unwrap_or(0));
    0
}

#[fentry]
pub fn uring_bind_fentry(ctx: FEntryContext) -> i32 {
    let [msg, sk, target] = [0, 1, 2].map(|n| traced_arg(ctx.as_ptr(), n));
    bind_enter(msg, sk, target);
    0
}

#[fexit]
pub fn uring_bind_fexit(_ctx: FExitContext) -> i32 {
    bind_leave();
    0
}

#[kprobe]
pub fn uring_bind_kprobe(ctx: ProbeContext) -> u32 {
    let [msg, sk, target] = [0, 1, 2].map(|n| ctx.arg(n).unwrap_or(0));
    bind_enter(msg, sk, target);
    0
}

#[kretprobe]
pub fn uring_bind_kretprobe(_ctx: RetProbeContext) -> u32 {
    bind_leave();
    0
}
