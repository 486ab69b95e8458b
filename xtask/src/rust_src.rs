//! The source of the compiler's own libraries, of exactly the compiler in use:
//! `core` for the eBPF target is built from it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::apt::Suite;
use crate::cache::Cache;
use crate::process::output;

/// Suite whose `rust-src` package has the versions of recent compilers.
const SUITE: &str = "trixie-backports";

/// The compiler in use.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// Its folder.
    pub(crate) sysroot: PathBuf,
    /// Its version, such as `1.95.0`.
    pub(crate) version: String,
}

impl Toolchain {
    /// Asks `rustc`.
    pub(crate) fn find() -> Result<Self> {
        let sysroot = output(
            Command::new("rustc").args(["--print", "sysroot"]),
            "ask the compiler where it is",
        )?;
        let version = output(
            Command::new("rustc").arg("-vV"),
            "ask the compiler its version",
        )?;
        let version = version
            .lines()
            .find_map(|line| line.strip_prefix("release: "))
            .context("`rustc -vV` has no line `release:`")?;
        Ok(Self {
            sysroot: sysroot.trim().into(),
            version: version.to_owned(),
        })
    }

    /// Where cargo looks for the source.
    pub(crate) fn source(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib/src/rust")
    }
}

/// Puts the source where cargo looks for it, from rustup or from Debian.
pub(crate) fn ensure(cache: &Cache, toolchain: &Toolchain) -> Result<()> {
    let link = toolchain.source();
    if has_core(&link) {
        return Ok(());
    }
    let _lock = cache.lock("rust-src")?;
    let kept = cache
        .path("rust-src/usr/src")
        .join(format!("rustc-{}", toolchain.version));
    if !has_core(&kept) {
        if from_rustup() && has_core(&link) {
            return Ok(());
        }
        from_debian(cache, &toolchain.version)?;
    }
    if has_core(&link) {
        return Ok(());
    }
    if link.is_symlink() {
        // It points to a cache that is gone.
        fs::remove_file(&link).with_context(|| format!("cannot replace {}", link.display()))?;
    }
    if let Some(parent) = link.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    symlink(&kept, &link).with_context(|| {
        format!(
            "cannot link {} to {}: the toolchain's folder must be writable",
            link.display(),
            kept.display()
        )
    })
}

fn has_core(source: &Path) -> bool {
    source.join("library/core/Cargo.toml").is_file()
}

/// Asks rustup, quietly and for a short time: many machines cannot reach it.
fn from_rustup() -> bool {
    Command::new("timeout")
        .args(["60", "rustup", "component", "add", "rust-src"])
        .env("RUSTUP_MAX_RETRIES", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn from_debian(cache: &Cache, version: &str) -> Result<()> {
    eprintln!("rustup has no rust-src for this toolchain; taking it from Debian");
    let suite = Suite::open(cache, SUITE)?;
    let mut found = None;
    if suite.is_fresh() {
        found = choose(&suite.versions("rust-src")?, version);
    }
    if found.is_none() {
        suite.update()?;
        found = choose(&suite.versions("rust-src")?, version);
    }
    let Some(package) = found else {
        bail!(
            "{SUITE} has no rust-src of {version}: the compiler's own source must match it. \
             Run `rustup component add rust-src`, or use a toolchain that {SUITE} has"
        );
    };
    let scratch = cache.scratch()?;
    suite.unpack("rust-src", &package, scratch.path())?;
    let name = format!("rust-src/usr/src/rustc-{version}");
    let made = scratch
        .path()
        .join("usr/src")
        .join(format!("rustc-{version}"));
    if !has_core(&made) {
        bail!("rust-src {package} of {SUITE} has no usr/src/rustc-{version}/library/core");
    }
    cache.place(&made, name).map(drop)
}

/// The package version that carries the compiler's version; apt lists the newest first.
fn choose(versions: &[String], rust: &str) -> Option<String> {
    let start = format!("{rust}+");
    versions
        .iter()
        .find(|version| version.starts_with(&start) || version.starts_with(&format!("{rust}-")))
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn only_the_same_version() {
        let versions = ["1.97.1+dfsg1-1", "1.95.0+dfsg1-2", "1.95.0+dfsg1-1"].map(str::to_owned);
        assert_eq!(
            choose(&versions, "1.95.0").as_deref(),
            Some("1.95.0+dfsg1-2")
        );
        assert_eq!(choose(&versions, "1.9"), None);
        assert_eq!(choose(&versions, "1.97.0"), None);
    }
}
