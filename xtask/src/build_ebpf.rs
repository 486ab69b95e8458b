//! `build-ebpf`: builds the programs and keeps the object in the tree, so that
//! ordinary builds need stable Rust alone.
//!
//! The object is the same, byte for byte, wherever it is built: paths are remapped,
//! toolchain and linker are of one version, DWARF is taken out.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, str};

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::process::run as run_program;
use crate::rust_src::{self, Toolchain};
use crate::{bpf_linker, strip, workspace};

/// The object in the tree. Little endian; the programs read x86_64 registers.
const OBJECT: &str = "zc-observe-ebpf/prebuilt/zc-observe.x86_64.o";
const TARGET: &str = "bpfel-unknown-none";
const ARCH: &str = "x86_64";
const PACKAGE: &str = "zc-observe-ebpf";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Build elsewhere and compare with the object in the tree, bit for bit.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.check { check() } else { build() }
}

/// Builds the object and puts it into the tree.
fn build() -> Result<()> {
    let built = compile(&workspace::target("ebpf")?)?;
    let path = workspace::root()?.join(OBJECT);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    fs::write(&path, &built).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{OBJECT}: {} bytes", built.len());
    Ok(())
}

/// Builds the object from nothing and compares it with the one in the tree.
pub(crate) fn check() -> Result<()> {
    let path = workspace::root()?.join(OBJECT);
    let kept = fs::read(&path).with_context(|| {
        format!(
            "cannot read {}; run `cargo xtask build-ebpf` and commit it",
            path.display()
        )
    })?;
    let target = tempfile::tempdir().context("cannot make a folder to build in")?;
    let built = compile(target.path())?;
    if let Some(at) = first_difference(&kept, &built) {
        let rejected = workspace::target("zc-observe.rebuilt.o")?;
        fs::write(&rejected, &built)
            .with_context(|| format!("cannot write {}", rejected.display()))?;
        bail!(
            "{OBJECT} is not what the source builds: {} bytes in the tree, {} built, first \
             difference at byte {at} (kept as {}). Run `cargo xtask build-ebpf` and commit the object",
            kept.len(),
            built.len(),
            rejected.display()
        );
    }
    println!("{OBJECT}: {} bytes, as built from source", kept.len());
    Ok(())
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    if a == b {
        return None;
    }
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    Some(same)
}

/// Compiles, links and strips the programs.
fn compile(target_dir: &Path) -> Result<Vec<u8>> {
    let cache = Cache::open()?;
    let toolchain = Toolchain::find()?;
    let linker = bpf_linker::ensure(&cache)?;
    rust_src::ensure(&cache, &toolchain)?;
    let root = workspace::root()?;
    let flags = rustflags(&root, &toolchain)?;

    let mut command = Command::new("cargo");
    command
        .current_dir(&root)
        .args([
            "build",
            "--locked",
            "--release",
            "--package",
            PACKAGE,
            "--bin",
            PACKAGE,
        ])
        .args([
            "--features",
            "programs",
            "--target",
            TARGET,
            "-Zbuild-std=core",
            "--target-dir",
        ])
        .arg(target_dir)
        // The stable compiler, allowed to build `core` for a target that ships none.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        .env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", &linker)
        // What is set for the build of this tool is not for that one.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_BUILD_TARGET");
    run_program(&mut command, "build the programs for the kernel")?;

    let linked = target_dir.join(TARGET).join("release").join(PACKAGE);
    let object = fs::read(&linked).with_context(|| format!("cannot read {}", linked.display()))?;
    strip::strip_debug(&object)
}

/// Flags for the compiler, in cargo's encoding.
fn rustflags(root: &Path, toolchain: &Toolchain) -> Result<OsString> {
    let mut flags: Vec<OsString> = vec![
        "-Cdebuginfo=2".into(),
        "-Clink-arg=--btf".into(),
        format!("--cfg=bpf_target_arch=\"{ARCH}\"").into(),
    ];
    for (path, name) in remaps(root, toolchain)? {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(path);
        flag.push("=");
        flag.push(name);
        flags.push(flag);
    }
    let separator = str::from_utf8(&[0x1f]).context("no separator")?;
    Ok(flags.join(OsString::from(separator).as_os_str()))
}

/// Folders that differ between machines, and what they are called in the object.
/// The compiler takes the last one that matches.
fn remaps(root: &Path, toolchain: &Toolchain) -> Result<Vec<(PathBuf, &'static str)>> {
    let cargo_home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(env::var_os("HOME").context("HOME is not set")?).join(".cargo"),
    };
    let mut remaps = vec![
        (cargo_home.clone(), "/cargo"),
        (toolchain.sysroot.clone(), "/rust"),
        (toolchain.source(), "/rust-src"),
    ];
    if let Ok(source) = toolchain.source().canonicalize() {
        remaps.push((source, "/rust-src"));
    }
    // Each registry has a folder named after its host.
    let registries = cargo_home.join("registry/src");
    if let Ok(entries) = fs::read_dir(&registries) {
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", registries.display()))?;
            remaps.push((entry.path(), "/registry"));
        }
    }
    remaps.push((root.to_path_buf(), "/zc-observe"));
    Ok(remaps)
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn difference_is_found_at_its_byte() {
        assert_eq!(first_difference(b"abc", b"abc"), None);
        assert_eq!(first_difference(b"abc", b"abd"), Some(2));
        assert_eq!(first_difference(b"abc", b"abcd"), Some(3));
        assert_eq!(first_difference(b"", b"x"), Some(0));
    }
}
