//! The machine that a guest runs on.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::init::{CONTROL_PORT, STDERR_PORT, STDOUT_PORT};

/// A port of this host's loopback that leads to a port of the guest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Forward {
    /// Port on 127.0.0.1 here.
    pub(crate) host: u16,
    /// Port in the guest.
    pub(crate) guest: u16,
}

/// Size of the machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Memory, as QEMU writes it: `1G`.
    pub(crate) memory: String,
    /// Processors.
    pub(crate) cpus: u32,
    /// Ports; a network is there only if some are.
    pub(crate) forwards: Vec<Forward>,
}

/// Where QEMU connects the guest's streams to us.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// The kernel's console.
    pub(crate) console: PathBuf,
    /// The commands' standard output.
    pub(crate) stdout: PathBuf,
    /// The commands' standard error.
    pub(crate) stderr: PathBuf,
    /// What init and we say to each other.
    pub(crate) control: PathBuf,
}

/// The command that boots the machine and ends when it powers off. It dies with the
/// thread that starts it, and a Ctrl-C typed here does not reach it.
pub(crate) fn command(
    machine: &Machine,
    vmlinux: &Path,
    initramfs: &Path,
    sockets: &Sockets,
) -> Command {
    // setpriv: a killed xtask leaves no QEMU behind.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
    command
        .args([
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-display",
            "none",
        ])
        // KVM is not asked for: where it is only emulated, stock kernels do not boot.
        // One thread for all processors: with one each, QEMU 7.2 at times runs code that
        // another processor has just patched, and the kernel dies of a stray int3.
        .args(["-accel", "tcg,thread=single", "-cpu", "max"])
        .args(["-m", &machine.memory])
        .args(["-smp", &machine.cpus.to_string()])
        .arg("-kernel")
        .arg(vmlinux)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", KERNEL_COMMAND_LINE]);
    let mut socket = |name: &str, path: &Path| {
        command
            .arg("-chardev")
            .arg(format!("socket,id={name},path={}", path.display()));
    };
    socket("console", &sockets.console);
    socket("stdout", &sockets.stdout);
    socket("stderr", &sockets.stderr);
    socket("control", &sockets.control);
    command.args(["-serial", "chardev:console", "-device", "virtio-serial-pci"]);
    for (name, number) in [
        ("stdout", STDOUT_PORT),
        ("stderr", STDERR_PORT),
        ("control", CONTROL_PORT),
    ] {
        command
            .arg("-device")
            .arg(format!("virtserialport,chardev={name},nr={number}"));
    }
    if !machine.forwards.is_empty() {
        let mut network = "user,id=network".to_owned();
        for Forward { host, guest } in &machine.forwards {
            network.push_str(&format!(",hostfwd=tcp:127.0.0.1:{host}-:{guest}"));
        }
        command
            .args(["-netdev", &network])
            .args(["-device", "virtio-net-pci,netdev=network,romfile="]);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0);
    command
}

/// An oops or panic ends the machine at once; warnings reach the console. The watchdog
/// is off: on a busy host an emulated processor may rest for long without any fault.
const KERNEL_COMMAND_LINE: &str = "console=ttyS0 loglevel=7 panic=-1 oops=panic nowatchdog \
     net.ifnames=0 random.trust_cpu=on rdinit=/init";
