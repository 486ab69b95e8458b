use super::*;
use crate::kernel::capabilities::Capabilities;

fn host() -> Host {
    Host {
        release: "6.12.1".into(),
        version: Version(6, 12),
        arch: "x86_64",
        lockdown: Lockdown::None,
        kptr_restrict: Some(0),
        unprivileged_bpf_disabled: Some(2),
        perf_event_paranoid: Some(3),
        ftrace_enabled: Some(1),
        btf: true,
        kprobes: true,
        capabilities: Capabilities(u64::MAX),
        seccomp: false,
        memlock: Some(65536),
        initial_pid_namespace: true,
        initial_user_namespace: true,
        initial_cgroup_namespace: true,
    }
}

fn says(host: &Host, step: Step, code: i32) -> String {
    let text = host.refusal(step, "skb_copy_ubufs", &io::Error::from_raw_os_error(code));
    assert!(text.contains("skb_copy_ubufs"), "{text}");
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn lockdown_is_named_whatever_the_error() {
    let locked = Host {
        lockdown: Lockdown::Confidentiality,
        ..host()
    };
    for step in [
        Step::LoadFentry,
        Step::LoadKprobe,
        Step::LoadTracepoint,
        Step::AttachKprobe,
    ] {
        for code in [libc::EPERM, libc::EACCES, libc::EINVAL] {
            assert!(
                says(&locked, step, code).contains("confidentiality"),
                "{step:?} {code}"
            );
        }
    }
    assert!(!says(&host(), Step::LoadKprobe, libc::EINVAL).contains("lockdown"));
}

#[test]
fn memory_limits_are_blamed_only_where_they_count() {
    let mut limited = host();
    for step in [
        Step::Map,
        Step::LoadFentry,
        Step::LoadKprobe,
        Step::AttachKprobe,
    ] {
        assert!(
            !says(&limited, step, libc::EPERM).contains("locked memory"),
            "{step:?}"
        );
    }
    limited.version = Version(5, 10);
    assert!(says(&limited, Step::Map, libc::EPERM).contains("locked memory"));
    assert!(!says(&limited, Step::LoadFentry, libc::EPERM).contains("locked memory"));
    limited.memlock = None;
    assert!(!says(&limited, Step::Map, libc::EPERM).contains("locked memory"));
}

#[test]
fn missing_capabilities_are_named_first() {
    let user = Host {
        capabilities: Capabilities(1 << Capability::Bpf as u8),
        lockdown: Lockdown::Confidentiality,
        ..host()
    };
    let text = says(&user, Step::LoadFentry, libc::EPERM);
    assert!(
        text.contains("CAP_PERFMON") && !text.contains("CAP_BPF"),
        "{text}"
    );
}

#[test]
fn containers_are_told_what_holds_them() {
    let namespaced = Host {
        initial_user_namespace: false,
        ..host()
    };
    assert!(says(&namespaced, Step::LoadFentry, libc::EPERM).contains("user namespace"));
    let filtered = Host {
        seccomp: true,
        ..host()
    };
    assert!(says(&filtered, Step::LoadFentry, libc::EPERM).contains("seccomp"));
}

#[test]
fn a_policy_of_the_kernel_is_not_mistaken_for_something_else() {
    let hardened = Host {
        lockdown: Lockdown::Integrity,
        ..host()
    };
    let text = says(&hardened, Step::LoadFentry, libc::EPERM);
    assert!(
        text.contains("every capability") && text.contains("integrity"),
        "{text}"
    );
    let silent = Host {
        lockdown: Lockdown::Unknown,
        ..host()
    };
    assert!(!says(&silent, Step::LoadFentry, libc::EPERM).contains("lockdown"));
}

#[test]
fn what_the_kernel_was_built_without_is_named() {
    let without = Host {
        kprobes: false,
        ..host()
    };
    for code in [libc::ENOENT, libc::EPERM, libc::EINVAL] {
        assert!(
            says(&without, Step::AttachKprobe, code).contains("CONFIG_KPROBE_EVENTS"),
            "{code}"
        );
    }
    assert!(says(&host(), Step::AttachKprobe, libc::ENOENT).contains("6.12.1 does not have it"));
    assert!(says(&host(), Step::AttachFentry, ENOTSUPP).contains("DIRECT_CALLS"));
    let off = Host {
        ftrace_enabled: Some(0),
        ..host()
    };
    assert!(says(&off, Step::AttachFentry, libc::ENODEV).contains("kernel.ftrace_enabled=1"));
}
