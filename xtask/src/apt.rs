//! Packages of another Debian suite, without touching the machine's own apt
//! configuration: lists and archives of their own, on the mirror that the machine uses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::process::{output, retry, run};

/// One suite's package lists.
#[derive(Debug)]
pub(crate) struct Suite {
    name: String,
    dir: PathBuf,
}

impl Suite {
    /// Opens the lists of a suite in the cache; nothing is fetched yet.
    pub(crate) fn open(cache: &Cache, name: &str) -> Result<Self> {
        let dir = cache.path("apt").join(name);
        for part in ["lists/partial", "archives/partial"] {
            let part = dir.join(part);
            fs::create_dir_all(&part).with_context(|| format!("cannot make {}", part.display()))?;
        }
        Ok(Self {
            name: name.to_owned(),
            dir,
        })
    }

    /// Whether the lists were fetched less than a day ago.
    pub(crate) fn is_fresh(&self) -> bool {
        fs::metadata(self.stamp())
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|time| time.elapsed().ok())
            .is_some_and(|age| age < Duration::from_hours(24))
    }

    /// Fetches the lists.
    pub(crate) fn update(&self) -> Result<()> {
        let line = format!("deb {} {} main\n", mirror()?, self.name);
        let list = self.dir.join("sources.list");
        fs::write(&list, line).with_context(|| format!("cannot write {}", list.display()))?;
        eprintln!("fetching the package lists of {}", self.name);
        retry(4, || {
            let mut command = self.command("apt-get");
            command.args(["--quiet=2", "--error-on=any", "update"]);
            run(
                &mut command,
                &format!("fetch the package lists of {}", self.name),
            )
        })?;
        fs::write(self.stamp(), "").context("cannot note when the package lists were fetched")
    }

    /// Versions of a package, as apt lists them.
    pub(crate) fn versions(&self, package: &str) -> Result<Vec<String>> {
        let mut command = self.command("apt-cache");
        let table = output(
            command.args(["madison", package]),
            &format!("list the versions of {package} in {}", self.name),
        )?;
        Ok(table
            .lines()
            .filter_map(|line| line.split('|').nth(1))
            .map(|version| version.trim().to_owned())
            .collect())
    }

    /// Names of packages that begin with `start`.
    pub(crate) fn names(&self, start: &str) -> Result<Vec<String>> {
        let mut command = self.command("apt-cache");
        let names = output(
            command.args(["pkgnames", start]),
            &format!("list the packages of {}", self.name),
        )?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Fetches one version of a package and unpacks it into `into`.
    pub(crate) fn unpack(&self, package: &str, version: &str, into: &Path) -> Result<()> {
        let archives = self.dir.join("archives");
        let wanted = format!("{package}={version}");
        eprintln!("fetching {package} {version} from {}", self.name);
        retry(4, || {
            let mut command = self.command("apt-get");
            command
                .args(["--quiet=2", "download", &wanted])
                .current_dir(&archives);
            run(&mut command, &format!("fetch {wanted} from {}", self.name))
        })?;
        let archive = archives.join(archive_name(package, version, &archives)?);
        let mut command = Command::new("dpkg-deb");
        command.arg("--extract").arg(&archive).arg(into);
        run(&mut command, &format!("unpack {}", archive.display()))?;
        fs::remove_file(&archive).with_context(|| format!("cannot remove {}", archive.display()))
    }

    fn stamp(&self) -> PathBuf {
        self.dir.join("fetched")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let mut option = |name: &str, value: &Path| {
            command.arg("-o").arg(format!("{name}={}", value.display()));
        };
        option("Dir::Etc::sourcelist", &self.dir.join("sources.list"));
        option("Dir::Etc::sourceparts", Path::new("/dev/null"));
        option("Dir::Etc::preferences", Path::new("/dev/null"));
        option("Dir::Etc::preferencesparts", Path::new("/dev/null"));
        option("Dir::State::Lists", &self.dir.join("lists"));
        option("Dir::State::status", Path::new("/dev/null"));
        option("Dir::Cache", &self.dir);
        option("APT::Sandbox::User", Path::new("root"));
        option("Acquire::Retries", Path::new("3"));
        option("Acquire::Languages", Path::new("none"));
        command
    }
}

/// The mirror that this machine's apt takes Debian from.
fn mirror() -> Result<String> {
    let targets = output(
        Command::new("apt-get").args(["indextargets", "--format", "$(LABEL)|$(REPO_URI)"]),
        "ask apt for its mirror (this needs a Debian host)",
    )?;
    choose_mirror(&targets).with_context(|| {
        "apt names no Debian mirror: is this a Debian host with sources in /etc/apt?".to_owned()
    })
}

/// The mirror among lines of `label|uri`. Labels are empty before a first `apt-get update`.
fn choose_mirror(targets: &str) -> Option<String> {
    let lines = || targets.lines().filter_map(|line| line.split_once('|'));
    lines()
        .find(|(label, _)| *label == "Debian")
        .or_else(|| lines().find(|(_, uri)| uri.trim_end_matches('/').ends_with("/debian")))
        .map(|(_, uri)| uri.to_owned())
}

/// The name of the archive that apt has just stored: it escapes some characters of the version.
fn archive_name(package: &str, version: &str, dir: &Path) -> Result<String> {
    let start = format!("{package}_{}_", version.replace(':', "%3a"));
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    for entry in entries {
        let name = entry
            .with_context(|| format!("cannot list {}", dir.display()))?
            .file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&start) && name.ends_with(".deb") {
            return Ok(name.into_owned());
        }
    }
    bail!(
        "apt said that it fetched {package} {version}, but {} has no {start}*.deb",
        dir.display()
    )
}

#[cfg(test)]
mod tests {
    use super::choose_mirror;

    #[test]
    fn mirror_is_debian_not_security() {
        let targets = "Debian-Security|http://a/debian-security/\nDebian|http://a/debian/\n";
        assert_eq!(choose_mirror(targets).as_deref(), Some("http://a/debian/"));
    }

    #[test]
    fn mirror_before_the_first_update() {
        let targets = "|http://a/debian-security/\n|http://a/other/\n|http://a/debian/\n";
        assert_eq!(choose_mirror(targets).as_deref(), Some("http://a/debian/"));
        assert_eq!(choose_mirror("|http://a/ubuntu/\n"), None);
    }
}
