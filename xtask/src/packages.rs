//! Debian packages that this tool needs on the host.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::process::{retry, run};

/// What guests need: the machine, what runs in it, and what prepares modules.
pub(crate) const GUEST: &[&str] = &[
    "qemu-system-x86",
    "seabios",
    "busybox-static",
    "kmod",
    "xz-utils",
    "zstd",
];

/// What the tests need besides.
pub(crate) const TEST: &[&str] = &["prometheus", "iproute2", "ethtool"];

/// Installs those of `wanted` that are missing.
pub(crate) fn ensure(wanted: &[&str]) -> Result<()> {
    let missing: Vec<&str> = wanted
        .iter()
        .copied()
        .filter(|package| !is_installed(package))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "these Debian packages are missing: {0}. Run `sudo apt-get install {0}`",
            missing.join(" ")
        );
    }
    eprintln!("installing {}", missing.join(" "));
    retry(4, || {
        // Old lists name archives that the mirror has replaced since.
        run(
            apt_get().args(["--quiet=2", "update"]),
            "fetch the package lists",
        )?;
        run(
            apt_get()
                .args(["--quiet=2", "--yes", "--no-install-recommends", "install"])
                .args(&missing)
                .stdout(Stdio::null()),
            "install the packages that are missing",
        )
    })
}

/// Whether dpkg knows it as installed; a host without dpkg has nothing installed.
fn is_installed(package: &str) -> bool {
    Command::new("dpkg-query")
        .args(["--show", "--showformat=${db:Status-Status}", package])
        .stderr(Stdio::null())
        .output()
        .is_ok_and(|output| output.stdout == b"installed")
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    command
}
