//! The linker for eBPF objects, built once and kept in the cache.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::cache::Cache;
use crate::process::run;

/// Version that the object in the tree is linked with.
const VERSION: &str = "0.10.4";
/// Links with the LLVM that the compiler ships; must be the compiler's LLVM version.
const LLVM: &str = "rust-llvm-22";

/// Path of bpf-linker, which is built if the cache does not have it.
pub(crate) fn ensure(cache: &Cache) -> Result<PathBuf> {
    let _lock = cache.lock("bpf-linker")?;
    let root = cache.path("bpf-linker");
    let program = root.join("bin/bpf-linker");
    if program.is_file() && is_wanted(&program) {
        return Ok(program);
    }
    eprintln!("building bpf-linker {VERSION} (about a minute, once)");
    let mut command = Command::new("cargo");
    command
        .args([
            "install",
            "bpf-linker",
            "--locked",
            "--force",
            "--version",
            VERSION,
        ])
        .args(["--no-default-features", "--features", LLVM, "--root"])
        .arg(&root)
        // Not in the workspace: its settings and flags are not for this.
        .current_dir(cache.path(""))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS");
    run(&mut command, "build bpf-linker")?;
    Ok(program)
}

fn is_wanted(program: &PathBuf) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(VERSION))
}
