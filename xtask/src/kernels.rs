//! Debian kernels for guests, fetched once and kept in the cache by package version.

use std::cmp::Ordering;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt::Suite;
use crate::cache::Cache;
use crate::image;
use crate::process::run;

/// A series and the suite that carries it.
const SERIES: &[(&str, &str)] = &[
    ("5.10", "bullseye"),
    ("6.1", "bookworm"),
    ("6.12", "trixie"),
    ("7.3", "trixie-backports"),
];

/// A kernel in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// What `uname -r` says.
    pub(crate) release: String,
    /// The image to boot, unpacked.
    pub(crate) vmlinux: PathBuf,
    /// Its modules, with `modules.dep`.
    pub(crate) modules: PathBuf,
}

/// The kernel that `wanted` (a series such as `6.12`, or a package) means, from the
/// cache if it is there and `refresh` does not ask for the newest.
pub(crate) fn ensure(cache: &Cache, wanted: &str, refresh: bool) -> Result<Kernel> {
    let choice = cache.path("kernels").join(format!("{wanted}.choice"));
    fs::create_dir_all(cache.path("kernels")).context("cannot make the folder of kernels")?;
    let _lock = cache.lock("kernels")?;
    if !refresh
        && let Ok(name) = fs::read_to_string(&choice)
        && let Ok(kernel) = open(&cache.path("kernels").join(name.trim()))
    {
        return Ok(kernel);
    }
    let (suite, release) = find(cache, wanted, refresh)?;
    let version = suite
        .versions(&package(&release))?
        .into_iter()
        .next()
        .with_context(|| format!("{} has no version", package(&release)))?;
    let name = format!("{release}_{version}");
    let dir = cache.path("kernels").join(&name);
    if open(&dir).is_err() {
        fetch(cache, &suite, &release, &version, &name)?;
    }
    fs::write(&choice, &name).with_context(|| format!("cannot write {}", choice.display()))?;
    open(&dir)
}

fn open(dir: &Path) -> Result<Kernel> {
    let read = |name: &str| {
        let path = dir.join(name);
        path.exists()
            .then_some(path)
            .with_context(|| format!("{} has no {name}", dir.display()))
    };
    let release = fs::read_to_string(read("release")?).context("cannot read the release")?;
    Ok(Kernel {
        vmlinux: read("vmlinux")?,
        modules: read("modules")?,
        release,
    })
}

/// The suite and the release: in lists of today, or in fresh ones.
fn find(cache: &Cache, wanted: &str, refresh: bool) -> Result<(Suite, String)> {
    let series = SERIES.iter().find(|(series, _)| *series == wanted);
    let suites: Vec<&str> = match series {
        Some((_, suite)) => vec![suite],
        None => SERIES.iter().map(|(_, suite)| *suite).collect(),
    };
    for name in suites {
        let suite = Suite::open(cache, name)?;
        if refresh || !suite.is_fresh() {
            suite.update()?;
        }
        let packages = suite.names("linux-image-")?;
        let found = match series {
            Some((series, _)) => newest(&packages, series),
            None => exact(&packages, wanted),
        };
        if let Some(release) = found {
            return Ok((suite, release));
        }
    }
    let known: Vec<&str> = SERIES.iter().map(|(series, _)| *series).collect();
    bail!(
        "no Debian kernel `{wanted}`: give {} or a package such as linux-image-6.1.0-50-amd64",
        known.join(", ")
    )
}

fn package(release: &str) -> String {
    format!("linux-image-{release}")
}

/// The release that a package of exactly this name, or its release, stands for.
fn exact(packages: &[String], wanted: &str) -> Option<String> {
    let release = ["linux-image-", "linux-binary-"]
        .iter()
        .find_map(|start| wanted.strip_prefix(start))
        .unwrap_or(wanted);
    packages
        .contains(&package(release))
        .then(|| release.to_owned())
}

/// The newest release of a series among package names; only stock amd64 kernels.
fn newest(packages: &[String], series: &str) -> Option<String> {
    packages
        .iter()
        .filter_map(|package| package.strip_prefix("linux-image-"))
        .filter(|release| is_stock(release) && release.starts_with(&format!("{series}.")))
        .max_by(|a, b| compare(a, b))
        .map(str::to_owned)
}

/// A release such as `6.1.0-50-amd64` or `7.3.4+deb13-amd64`: no rt, cloud, dbg, unsigned.
fn is_stock(release: &str) -> bool {
    release.strip_suffix("-amd64").is_some_and(|version| {
        version.starts_with(|c: char| c.is_ascii_digit())
            && ["rt", "cloud", "unsigned", "dbg", "~rc"]
                .iter()
                .all(|part| !version.contains(part))
    })
}

/// Compares numbers as numbers and the rest as text.
fn compare(a: &str, b: &str) -> Ordering {
    let key = |text: &str| -> Vec<u64> {
        text.split(|c: char| !c.is_ascii_digit())
            .filter_map(|part| part.parse().ok())
            .collect()
    };
    key(a).cmp(&key(b)).then_with(|| a.cmp(b))
}

/// Fetches and unpacks a kernel and puts it into the cache as one.
fn fetch(cache: &Cache, suite: &Suite, release: &str, version: &str, name: &str) -> Result<()> {
    let scratch = cache.scratch()?;
    let root = scratch.path().join("root");
    fs::create_dir(&root).context("cannot make a folder to unpack in")?;
    // From about 6.19 on `linux-image` only names the packages that have the files.
    let binary = format!("linux-binary-{release}");
    if suite.names(&binary)?.contains(&binary) {
        for part in ["binary", "modules", "base"] {
            suite.unpack(&format!("linux-{part}-{release}"), version, &root)?;
        }
    } else {
        suite.unpack(&package(release), version, &root)?;
    }

    // Before /usr was merged the modules were in /lib.
    let old = root.join("lib/modules");
    let modules = root.join("usr/lib/modules");
    if old.join(release).is_dir() {
        fs::create_dir_all(root.join("usr/lib")).context("cannot make usr/lib")?;
        fs::rename(&old, &modules).context("cannot move the modules")?;
    }
    fs::create_dir_all(root.join("lib")).context("cannot make lib")?;
    symlink("../usr/lib/modules", &old).context("cannot link lib/modules")?;
    let mut depmod = Command::new("depmod");
    depmod.arg("--basedir").arg(&root).arg(release);
    run(
        &mut depmod,
        &format!("find out how the modules of {release} depend on each other"),
    )?;

    let made = scratch.path().join("made");
    fs::create_dir(&made).context("cannot make the kernel's folder")?;
    let modules = modules.join(release);
    let image = [
        root.join(format!("boot/vmlinuz-{release}")),
        modules.join("vmlinuz"),
    ]
    .into_iter()
    .find(|path| path.is_file())
    .with_context(|| format!("the packages of {release} have no vmlinuz"))?;
    let moved = "cannot move the kernel's files";
    let image = fs::read(&image).with_context(|| format!("cannot read {}", image.display()))?;
    fs::write(made.join("vmlinux"), image::unpack(&image)?).context("cannot write the kernel")?;
    fs::rename(modules, made.join("modules")).context(moved)?;
    fs::write(made.join("release"), release).context("cannot write the release")?;
    cache
        .place(&made, Path::new("kernels").join(name))
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::{exact, newest};

    fn packages() -> Vec<String> {
        [
            "linux-image-6.1.0-9-amd64",
            "linux-image-6.1.0-50-amd64",
            "linux-image-6.1.0-51-cloud-amd64",
            "linux-image-6.1.0-52-rt-amd64",
            "linux-image-6.1.0-53-amd64-dbg",
            "linux-image-6.1.0-54-amd64-unsigned",
            "linux-image-6.12.107+deb13-amd64",
            "linux-image-6.12.9+deb13-amd64",
            "linux-image-amd64",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    #[test]
    fn newest_stock_kernel_of_a_series() {
        let found = |series| newest(&packages(), series);
        assert_eq!(found("6.1").as_deref(), Some("6.1.0-50-amd64"));
        assert_eq!(found("6.12").as_deref(), Some("6.12.107+deb13-amd64"));
        assert_eq!(found("6"), Some("6.12.107+deb13-amd64".to_owned()));
        assert_eq!(found("7.3"), None);
    }

    #[test]
    fn package_or_release_by_name() {
        let found = |name| exact(&packages(), name);
        assert_eq!(
            found("linux-image-6.1.0-9-amd64").as_deref(),
            Some("6.1.0-9-amd64")
        );
        assert_eq!(found("6.1.0-9-amd64").as_deref(), Some("6.1.0-9-amd64"));
        assert_eq!(found("6.1.0-8-amd64"), None);
    }
}
