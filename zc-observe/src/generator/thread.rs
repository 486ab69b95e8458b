//! Where a thread runs, and what it costs.

use std::io;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

use super::error::GenerateError;

/// Binds the calling thread to a CPU.
pub(super) fn pin(cpu: Option<usize>) -> Result<(), GenerateError> {
    let Some(cpu) = cpu else { return Ok(()) };
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|errno| {
            GenerateError::io(format!("run a thread on CPU {cpu}"))(io::Error::from(errno))
        })
}

/// CPU time of the calling thread so far, user and kernel.
pub(super) fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else {
        return Duration::ZERO;
    };
    let time = |value: nix::sys::time::TimeVal| {
        Duration::from_secs(u64::try_from(value.tv_sec()).unwrap_or(0))
            + Duration::from_micros(u64::try_from(value.tv_usec()).unwrap_or(0))
    };
    time(usage.user_time()) + time(usage.system_time())
}
