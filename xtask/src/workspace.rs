//! Where things are in this workspace.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The workspace's folder: the one that holds the `Cargo.toml` with `[workspace]`.
pub(crate) fn root() -> Result<PathBuf> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .parent()
        .map(Path::to_path_buf)
        .with_context(|| format!("{} has no parent folder", manifest.display()))
}

/// Cargo's target folder, or a folder of that name in it for builds that must not
/// disturb each other.
pub(crate) fn target(name: &str) -> Result<PathBuf> {
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root()?.join(dir),
        None => root()?.join("target"),
    };
    Ok(target.join(name))
}
