//! What the kernel says of a program beside its maps: hits that it did not deliver, and the
//! time that it took.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use aya::programs::{Program, ProgramFd, loaded_links};
use aya_obj::generated::{bpf_attr, bpf_cmd, bpf_link_info, bpf_link_type, bpf_prog_info};

/// What is known of one program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    /// Hits not delivered; `None` where the kernel does not say.
    pub(super) missed: Option<u64>,
    /// Time, while the kernel's BPF statistics are on.
    pub(super) time: Option<Duration>,
}

/// Asks for an attached program. `link` is its kprobe link, if it is one.
pub(super) fn of(program: &Program, link: Option<u32>) -> Kept {
    let Ok(fd) = fd(program) else {
        return Kept::default();
    };
    let Some((info, len)) = info::<bpf_prog_info>(fd.as_fd().as_raw_fd()) else {
        return Kept::default();
    };
    let recursion = (len >= std::mem::offset_of!(bpf_prog_info, recursion_misses) + 8)
        .then_some(info.recursion_misses);
    let missed = match (program, link) {
        (Program::KProbe(_), Some(link)) => recursion.zip(kprobe_missed(link)).map(|(a, b)| a + b),
        (Program::KProbe(_), None) => None,
        _ => recursion,
    };
    Kept {
        missed,
        time: (info.run_time_ns > 0).then(|| Duration::from_nanos(info.run_time_ns)),
    }
}

/// The link that holds a program, found once after it is attached.
pub(super) fn link_of(program: &Program) -> Option<u32> {
    let Program::KProbe(kprobe) = program else {
        return None;
    };
    let id = kprobe.info().ok()?.id();
    loaded_links()
        .filter_map(Result::ok)
        .find(|link| link.program_id() == id)
        .map(|link| link.id())
}

fn fd(program: &Program) -> Result<&ProgramFd, aya::programs::ProgramError> {
    program.fd()
}

/// `bpf_link_info.perf_event.kprobe.missed` (from 6.7 on).
fn kprobe_missed(link: u32) -> Option<u64> {
    // SAFETY: all zeroes is a valid bpf_attr.
    let mut attr: bpf_attr = unsafe { std::mem::zeroed() };
    attr.__bindgen_anon_6.__bindgen_anon_1.link_id = link;
    let fd = bpf(bpf_cmd::BPF_LINK_GET_FD_BY_ID, &mut attr)?;
    // SAFETY: the kernel has just given us this descriptor.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let (info, len) = info::<bpf_link_info>(fd.as_raw_fd())?;
    if info.type_ != bpf_link_type::BPF_LINK_TYPE_PERF_EVENT as u32 {
        return None;
    }
    // SAFETY: the type says that this is the member in use.
    let perf = unsafe { info.__bindgen_anon_1.perf_event };
    // SAFETY: we attach kprobes only, so this is the member in use.
    let kprobe = unsafe { perf.__bindgen_anon_1.kprobe };
    let end = std::mem::offset_of!(bpf_link_info, __bindgen_anon_1)
        + size_of_val(&perf.type_) * 2
        + size_of_val(&kprobe);
    // A kernel that does not know the kind of event leaves its type at 0.
    (len >= end && perf.type_ != 0).then_some(kprobe.missed)
}

/// `BPF_OBJ_GET_INFO_BY_FD`, with the number of bytes that the kernel knows of.
fn info<T>(fd: i32) -> Option<(T, usize)> {
    // SAFETY: the kernel's info structs are plain data, for which all zeroes is valid.
    let mut value: T = unsafe { std::mem::zeroed() };
    // SAFETY: as for every bpf_attr.
    let mut attr: bpf_attr = unsafe { std::mem::zeroed() };
    attr.info.bpf_fd = fd.try_into().ok()?;
    attr.info.info_len = size_of::<T>().try_into().ok()?;
    attr.info.info = std::ptr::from_mut(&mut value) as u64;
    bpf(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
    // SAFETY: the member in use.
    let len = unsafe { attr.info.info_len };
    Some((value, len as usize))
}

/// The system call.
fn bpf(command: bpf_cmd, attr: &mut bpf_attr) -> Option<i32> {
    // SAFETY: `attr` is a live bpf_attr of the size given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_long,
            std::ptr::from_mut(attr),
            size_of::<bpf_attr>(),
        )
    };
    (result >= 0).then_some(i32::try_from(result).ok()?)
}
