//! A daemon as a child process, and HTTP by hand.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a test waits for what should take milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program.
pub(crate) fn zc_observe(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zc-observe"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("ZC_OBSERVE_PROBES");
    command
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    zc_observe(arguments).output().unwrap()
}

/// A daemon that is live.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) ready: PathBuf,
    _folder: tempfile::TempDir,
}

impl Daemon {
    /// Starts it on a free port of loopback without probes, and waits for its ready-file.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(arguments, Stdio::piped(), Stdio::inherit())
    }

    pub(crate) fn spawn(arguments: &[&str], stdout: Stdio, stderr: Stdio) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let mut command = zc_observe(&["daemon", "--probes", "off", "--ready-file"]);
        command
            .arg(&ready)
            .args(arguments)
            .stdout(stdout)
            .stderr(stderr);
        if !arguments.contains(&"--web.listen-address") {
            command.args(["--web.listen-address", "127.0.0.1:0"]);
        }
        let mut child = command.spawn().unwrap();
        let began = Instant::now();
        let text = loop {
            if let Ok(text) = std::fs::read_to_string(&ready) {
                break text;
            }
            let ended = child.try_wait().unwrap();
            if ended.is_some() || began.elapsed() > PATIENCE {
                child.kill().ok();
                panic!("the daemon did not become ready: {ended:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let content: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(content["pid"], child.id());
        let addresses = content["listen"].as_array().unwrap();
        let addresses = addresses
            .iter()
            .map(|text| text.as_str().unwrap().parse().unwrap())
            .collect();
        Self {
            child,
            addresses,
            ready,
            _folder: folder,
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Sends a signal and waits: how it ended, and after how long.
    pub(crate) fn end(&mut self, signal: Signal) -> (ExitStatus, Duration) {
        let began = Instant::now();
        self.signal(signal);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, began.elapsed());
            }
            assert!(began.elapsed() < PATIENCE, "the daemon does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// All that it printed; for a daemon that has ended.
    pub(crate) fn printed(&mut self) -> String {
        let mut text = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        text
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        http(self.addresses[0], "GET", path)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// One request on a connection of its own.
pub(crate) fn http(address: SocketAddr, method: &str, path: &str) -> Response {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response {
        status,
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}
