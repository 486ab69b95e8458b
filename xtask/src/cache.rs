//! The cache folder: what was fetched or built once and is used again. Everything
//! enters it whole (made elsewhere in it, then renamed), under a lock.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// The cache folder.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// `$ZC_OBSERVE_CACHE`, else `zc-observe` in the user's cache folder.
    pub(crate) fn open() -> Result<Self> {
        let set = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let dir = set("ZC_OBSERVE_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|dir| dir.join("zc-observe")))
            .or_else(|| set("HOME").map(|dir| dir.join(".cache/zc-observe")))
            .context("no place for the cache: set ZC_OBSERVE_CACHE to a folder")?;
        fs::create_dir_all(&dir)
            .with_context(|| format!("cannot make the cache folder {}", dir.display()))?;
        let dir = dir
            .canonicalize()
            .with_context(|| format!("cannot resolve the cache folder {}", dir.display()))?;
        Ok(Self { dir })
    }

    /// A path in the cache.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.join(name)
    }

    /// Waits until no other run works on `name`; released on drop, or when we die.
    pub(crate) fn lock(&self, name: &str) -> Result<File> {
        let path = self.path(format!("{name}.lock"));
        let file = File::create(&path)
            .with_context(|| format!("cannot make the lock file {}", path.display()))?;
        file.lock()
            .with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(file)
    }

    /// A folder on the cache's file system to make things in before they are renamed.
    pub(crate) fn scratch(&self) -> Result<TempDir> {
        tempfile::Builder::new()
            .prefix("making-")
            .tempdir_in(&self.dir)
            .with_context(|| format!("cannot make a folder in {}", self.dir.display()))
    }

    /// Moves a finished folder to its place in the cache, replacing what was there.
    pub(crate) fn place(&self, made: &Path, name: impl AsRef<Path>) -> Result<PathBuf> {
        let place = self.path(name);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("cannot make {}", parent.display()))?;
        }
        if place.exists() {
            fs::remove_dir_all(&place)
                .with_context(|| format!("cannot replace {}", place.display()))?;
        }
        fs::rename(made, &place)
            .with_context(|| format!("cannot move {} to {}", made.display(), place.display()))?;
        Ok(place)
    }
}
