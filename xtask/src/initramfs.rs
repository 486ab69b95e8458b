//! The guest's whole file system: busybox, modules, the program under test.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use cpio::newc::{Builder, ModeFileType, trailer};
use object::read::elf::{ElfFile64, ProgramHeader};

use crate::modules::Module;
use crate::process::output;

/// Where Debian's busybox-static puts it.
const BUSYBOX: &str = "/bin/busybox";
/// Folders that the guest's init mounts on or writes to.
const FOLDERS: &[&str] = &[
    "dev", "proc", "sys", "tmp", "run", "root", "etc", "var", "modules", "bin", "usr",
];

/// An archive in the making.
#[derive(Debug)]
pub(crate) struct Initramfs {
    archive: Vec<u8>,
    inode: u32,
    folders: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl Initramfs {
    /// An archive with busybox, its commands, and `init`.
    pub(crate) fn new(init: &str) -> Result<Self> {
        let mut this = Self {
            archive: Vec::new(),
            inode: 1,
            folders: BTreeSet::new(),
            files: BTreeSet::new(),
        };
        for folder in FOLDERS {
            this.folder(Path::new(folder))?;
        }
        for (link, target) in [
            ("sbin", "bin"),
            ("usr/bin", "../bin"),
            ("usr/sbin", "../bin"),
        ] {
            this.link(Path::new(link), target)?;
        }
        let console = Builder::new("dev/console").rdev_major(5).rdev_minor(1);
        this.entry(console, ModeFileType::Char, 0o600, &[])?;
        this.host_file(Path::new(BUSYBOX), Path::new("bin/busybox"))?;
        let commands = output(
            Command::new(BUSYBOX).arg("--list"),
            "ask busybox for its commands (from the package busybox-static)",
        )?;
        for command in commands.lines().filter(|name| *name != "busybox") {
            this.link(&Path::new("bin").join(command), "busybox")?;
        }
        this.file(Path::new("init"), init.as_bytes(), 0o755)?;
        Ok(this)
    }

    /// Adds a module to `/modules`.
    pub(crate) fn module(&mut self, module: &Module) -> Result<()> {
        self.file(
            &Path::new("modules").join(&module.file),
            &module.content,
            0o644,
        )
    }

    /// Adds a file of the host, with its permissions.
    pub(crate) fn host_file(&mut self, from: &Path, to: &Path) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        let metadata =
            fs::metadata(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.file(to, &content, metadata.permissions().mode() & 0o7777)
    }

    /// Adds the shared libraries that a program of the host needs, where it looks for them.
    pub(crate) fn libraries_of(&mut self, program: &Path) -> Result<()> {
        if interpreter(program)?.is_none() {
            return Ok(());
        }
        let list = output(
            Command::new("ldd").arg(program),
            &format!("list the libraries of {}", program.display()),
        )?;
        let paths = list
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
            .map(|path| path.trim_end_matches(':'));
        for path in paths {
            self.host_file(Path::new(path), Path::new(path))?;
        }
        Ok(())
    }

    /// The finished archive.
    pub(crate) fn finish(self) -> Result<Vec<u8>> {
        trailer(self.archive).context("cannot end the initramfs")
    }

    /// Adds a file, and the folders above it. A file that is there already stays.
    fn file(&mut self, path: &Path, content: &[u8], mode: u32) -> Result<()> {
        let path = self.make_room(path)?;
        if self.files.insert(path.clone()) {
            let file = Builder::new(&path.to_string_lossy());
            self.entry(file, ModeFileType::Regular, mode, content)?;
        }
        Ok(())
    }

    fn link(&mut self, path: &Path, target: &str) -> Result<()> {
        let path = self.make_room(path)?;
        if self.files.insert(path.clone()) {
            let link = Builder::new(&path.to_string_lossy());
            self.entry(link, ModeFileType::Symlink, 0o777, target.as_bytes())?;
        }
        Ok(())
    }

    /// The path as the archive wants it, after its folders were added.
    fn make_room(&mut self, path: &Path) -> Result<PathBuf> {
        let path = path.strip_prefix("/").unwrap_or(path);
        let merged = ["sbin", "usr/bin", "usr/sbin"]
            .iter()
            .find_map(|link| path.strip_prefix(link).ok())
            .filter(|rest| !rest.as_os_str().is_empty())
            .map_or_else(|| path.to_path_buf(), |rest| Path::new("bin").join(rest));
        if let Some(parent) = merged.parent() {
            self.folder(parent)?;
        }
        Ok(merged)
    }

    fn folder(&mut self, path: &Path) -> Result<()> {
        if path.as_os_str().is_empty() || !self.folders.insert(path.to_path_buf()) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.folder(parent)?;
        }
        let folder = Builder::new(&path.to_string_lossy()).nlink(2);
        self.entry(folder, ModeFileType::Directory, 0o755, &[])
    }

    fn entry(
        &mut self,
        entry: Builder,
        kind: ModeFileType,
        mode: u32,
        content: &[u8],
    ) -> Result<()> {
        let size = u32::try_from(content.len()).context("a file of 4 GiB does not fit")?;
        self.inode += 1;
        let add = |archive: &mut Vec<u8>| -> io::Result<()> {
            let mut writer = entry
                .ino(self.inode)
                .mode(mode)
                .set_mode_file_type(kind)
                .write(archive, size);
            io::copy(&mut Cursor::new(content), &mut writer)?;
            writer.flush()?;
            writer.finish().map(drop)
        };
        add(&mut self.archive).context("cannot add to the initramfs")
    }
}

/// The dynamic linker that a program asks for; `None` if it is static or no ELF program.
pub(crate) fn interpreter(program: &Path) -> Result<Option<String>> {
    let data = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let Ok(elf) = ElfFile64::<object::Endianness>::parse(data.as_slice()) else {
        return Ok(None);
    };
    let endian = elf.endian();
    for header in elf.elf_program_headers() {
        let interpreter = header
            .interpreter(endian, data.as_slice())
            .with_context(|| format!("{} is a broken ELF file", program.display()))?;
        if let Some(path) = interpreter {
            return Ok(Some(String::from_utf8_lossy(path).into_owned()));
        }
    }
    Ok(None)
}

/// Refuses a program that would not start in the guest.
pub(crate) fn check_static(program: &Path) -> Result<()> {
    if let Some(linker) = interpreter(program)? {
        bail!(
            "{} is dynamically linked (it asks for {linker}), which the guest does not have. \
             Name `zc-observe` to have it built for guests, or build it with \
             RUSTFLAGS='-C target-feature=+crt-static' --target x86_64-unknown-linux-gnu",
            program.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Initramfs, check_static, interpreter};
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    fn empty() -> Initramfs {
        Initramfs {
            archive: Vec::new(),
            inode: 1,
            folders: BTreeSet::new(),
            files: BTreeSet::new(),
        }
    }

    fn names(archive: &[u8]) -> Vec<String> {
        let mut rest = archive;
        let mut names = Vec::new();
        loop {
            let reader = cpio::NewcReader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                return names;
            }
            names.push(reader.entry().name().to_owned());
            rest = reader.finish().unwrap();
        }
    }

    #[test]
    fn folders_come_before_their_files_and_once() {
        let mut fs = empty();
        fs.file(Path::new("/a/b/one"), b"1", 0o644).unwrap();
        fs.file(Path::new("a/b/two"), b"2", 0o644).unwrap();
        fs.file(Path::new("a/b/two"), b"3", 0o644).unwrap();
        fs.file(Path::new("/usr/sbin/ip"), b"4", 0o755).unwrap();
        let archive = fs.finish().unwrap();
        assert_eq!(
            names(&archive),
            ["a", "a/b", "a/b/one", "a/b/two", "bin", "bin/ip"]
        );
    }

    #[test]
    fn a_dynamic_program_is_refused() {
        // The test program itself is linked dynamically.
        let this: PathBuf = std::env::current_exe().unwrap();
        assert!(interpreter(&this).unwrap().unwrap().contains("ld-linux"));
        let error = check_static(&this).unwrap_err().to_string();
        assert!(error.contains("crt-static"), "{error}");
    }

    #[test]
    fn a_text_file_has_no_interpreter() {
        assert_eq!(interpreter(Path::new("/etc/passwd")).unwrap(), None);
    }
}
