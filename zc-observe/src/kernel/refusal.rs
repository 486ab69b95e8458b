//! Why the kernel refused something, in one sentence that names the real reason.

use std::io;

use super::capabilities::Capability;
use super::host::{Host, Lockdown, Version};

/// What was tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Making a map.
    Map,
    /// Loading an fentry or fexit program.
    LoadFentry,
    /// Loading a kprobe or kretprobe program.
    LoadKprobe,
    /// Loading a raw tracepoint program.
    LoadTracepoint,
    /// Attaching an fentry or fexit program.
    AttachFentry,
    /// Attaching a kprobe or kretprobe program.
    AttachKprobe,
    /// Attaching a raw tracepoint program.
    AttachTracepoint,
}

impl Step {
    const fn describe(self) -> &'static str {
        match self {
            Self::Map => "make the map",
            Self::LoadFentry => "load the fentry program for",
            Self::LoadKprobe => "load the kprobe program for",
            Self::LoadTracepoint => "load the raw tracepoint program for",
            Self::AttachFentry => "attach fentry to",
            Self::AttachKprobe => "attach a kprobe to",
            Self::AttachTracepoint => "attach to the raw tracepoint",
        }
    }

    const fn fentry(self) -> bool {
        matches!(self, Self::LoadFentry | Self::AttachFentry)
    }

    const fn kprobe(self) -> bool {
        matches!(self, Self::LoadKprobe | Self::AttachKprobe)
    }
}

/// Since then maps are charged to the memory control group, before to `RLIMIT_MEMLOCK`.
const MEMCG_ACCOUNTING: Version = Version(5, 11);

/// `ENOTSUPP`, which the kernel returns for BPF although user space has no name for it.
const ENOTSUPP: i32 = 524;

impl Host {
    /// Says what was tried, what the kernel said, why, and what helps.
    #[must_use]
    pub fn refusal(&self, step: Step, target: &str, error: &io::Error) -> String {
        let code = error.raw_os_error().unwrap_or(0);
        let said = if code == ENOTSUPP {
            "not supported (ENOTSUPP)".to_owned()
        } else {
            error.to_string()
        };
        format!(
            "cannot {} {target}: {said}: {}",
            step.describe(),
            self.reason(step, code)
        )
    }

    fn reason(&self, step: Step, code: i32) -> String {
        match code {
            libc::EPERM | libc::EACCES => self.permission(step, code),
            // The helper that reads kernel memory is then unknown to the verifier.
            libc::EINVAL if self.lockdown == Lockdown::Confidentiality => self.lockdown_reason(),
            ENOTSUPP | libc::EOPNOTSUPP if step.fentry() => {
                "this kernel cannot attach programs to function entries (no BPF trampolines: \
                 CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS); use --probes kprobe"
                    .into()
            }
            libc::ENOSYS => "this kernel was built without CONFIG_BPF_SYSCALL".into(),
            _ if step.kprobe() && !self.kprobes => {
                "this kernel has no kprobes (CONFIG_KPROBE_EVENTS is off)".into()
            }
            _ if self.ftrace_enabled == Some(0) && (step.fentry() || step.kprobe()) => {
                "ftrace is switched off on this host; sysctl kernel.ftrace_enabled=1 switches it on"
                    .into()
            }
            libc::ENOENT | libc::ESRCH if step != Step::Map => {
                format!("kernel {} does not have it", self.release)
            }
            libc::EBUSY if step.fentry() => {
                "another tracer or a live patch holds this function; use --probes kprobe".into()
            }
            libc::ENOMEM | libc::ENOSPC => {
                "the kernel has no memory for it, or a memory control group does not allow it"
                    .into()
            }
            _ => {
                "the reason is not one that we know; --log.level debug shows what the verifier said"
                    .into()
            }
        }
    }

    fn permission(&self, step: Step, code: i32) -> String {
        let missing = self.capabilities.missing_for_probes();
        if !missing.is_empty() {
            let names: Vec<_> = missing.into_iter().map(Capability::as_str).collect();
            return format!(
                "this process lacks {}; run as root or give it",
                names.join(" and ")
            );
        }
        if !self.initial_user_namespace {
            return "this process is in a user namespace, where capabilities do not count for BPF; \
                    run it in the host's user namespace"
                .into();
        }
        if self.lockdown == Lockdown::Confidentiality {
            return self.lockdown_reason();
        }
        if step == Step::Map
            && code == libc::EPERM
            && self.version < MEMCG_ACCOUNTING
            && let Some(limit) = self.memlock
        {
            return format!(
                "kernel {} counts maps as locked memory, of which this process may have {limit} \
                 bytes; raise the limit (systemd: LimitMEMLOCK=infinity)",
                self.release
            );
        }
        if step.kprobe() && !self.kprobes {
            return "this kernel has no kprobes (CONFIG_KPROBE_EVENTS is off)".into();
        }
        if self.seccomp {
            return "this process has the capabilities, but runs under a seccomp filter, as container runtimes \
                    set one; allow bpf(2) and perf_event_open(2) in its seccomp profile"
                .into();
        }
        let lockdown = match self.lockdown {
            Lockdown::Unknown => String::new(),
            mode => format!(" (lockdown: {})", mode.as_str()),
        };
        format!(
            "this process has every capability that it takes, so this kernel itself or a security module \
             refuses it{lockdown}"
        )
    }

    fn lockdown_reason(&self) -> String {
        "kernel lockdown is in confidentiality mode, in which no program may read kernel memory; \
         probes need lockdown=integrity or none at boot"
            .into()
    }
}

#[cfg(test)]
mod tests;
