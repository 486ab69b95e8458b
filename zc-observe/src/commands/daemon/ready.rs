//! The ready-file: there while the daemon is live, and only then.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A ready-file; dropping it removes the file.
#[derive(Debug)]
pub(super) struct ReadyFile {
    path: PathBuf,
}

#[derive(Serialize)]
struct Content<'a> {
    schema: u32,
    pid: u32,
    listen: Vec<String>,
    telemetry_path: &'a str,
}

impl ReadyFile {
    /// Writes it under another name and renames it, so that nobody reads half of it.
    pub(super) fn write(path: &Path, listen: &[SocketAddr], telemetry: &str) -> io::Result<Self> {
        let content = Content {
            schema: 1,
            pid: std::process::id(),
            listen: listen.iter().map(ToString::to_string).collect(),
            telemetry_path: telemetry,
        };
        let unfinished = unfinished(path)?;
        let written = fs::File::create(&unfinished).and_then(|mut file| {
            serde_json::to_writer(&mut file, &content)?;
            file.write_all(b"\n")?;
            fs::rename(&unfinished, path)
        });
        if let Err(error) = written {
            // It may not even have been created; the first error is the one to tell.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Removes what a daemon that was killed left behind, and nothing else.
    pub(super) fn clear(path: &Path) -> io::Result<()> {
        let refuse = |why: String| Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
            Ok(metadata) if !metadata.is_file() => {
                return refuse("it is there and no regular file; left alone".to_owned());
            }
            Ok(_) => {}
        }
        let content: Option<serde_json::Value> = serde_json::from_slice(&fs::read(path)?).ok();
        let pid = content.and_then(|content| content.get("pid")?.as_u64());
        let Some(pid) = pid else {
            return refuse("it is there and no ready-file; left alone".to_owned());
        };
        if pid != u64::from(std::process::id()) && Path::new(&format!("/proc/{pid}")).exists() {
            return refuse(format!(
                "process {pid}, which wrote it, is alive; left alone"
            ));
        }
        fs::remove_file(path)
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        if let Err(error) = Self::clear(&self.path) {
            tracing::warn!(
                "cannot remove the ready-file {}: {error}",
                self.path.display()
            );
        }
    }
}

fn unfinished(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", std::process::id()));
    Ok(path.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_whole_and_then_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ready");
        fs::write(&path, "stale").unwrap();
        let address = "127.0.0.1:9814".parse().unwrap();
        let file = ReadyFile::write(&path, &[address], "/metrics").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let content: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(content["pid"], std::process::id());
        assert_eq!(content["listen"][0], "127.0.0.1:9814");
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ReadyFile::write(&folder.path().join("no/ready"), &[], "/metrics").is_err());
        assert!(ReadyFile::write(Path::new("/"), &[], "/metrics").is_err());
    }
}
