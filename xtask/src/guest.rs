//! One run of a guest, from boot to power-off.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::init::Said;
use crate::qemu::{self, Machine, Sockets};
use crate::stream::copy_until;

/// Where a guest's streams go.
pub(crate) struct Sinks {
    pub(crate) stdout: Box<dyn Write + Send>,
    pub(crate) stderr: Box<dyn Write + Send>,
    pub(crate) console: Box<dyn Write + Send>,
}

/// What happens while a guest runs.
#[derive(Debug)]
pub(crate) enum Event {
    /// Its init said something.
    Said(Said),
    /// The connection to its init is there.
    Control(UnixStream),
    /// An output stream is complete.
    Complete,
    /// An output stream cannot be passed on.
    Broken(io::Error),
    /// We got a signal, by name, that is meant for the command in the guest.
    Signal(&'static str),
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum End {
    /// Every command ran, all output arrived, the machine powered off.
    Done,
    /// The time was over.
    TimedOut,
    /// The machine ended before the commands did.
    Died(ExitStatus),
    /// A second signal.
    Interrupted,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Status of each command that ended.
    pub(crate) statuses: Vec<u8>,
    /// How it ended.
    pub(crate) end: End,
    /// Everything that the kernel said.
    pub(crate) log: String,
}

/// What to boot.
#[derive(Debug)]
pub(crate) struct Guest<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) vmlinux: &'a Path,
    pub(crate) initramfs: &'a [u8],
    /// Ends both output streams.
    pub(crate) marker: &'a str,
    pub(crate) timeout: Duration,
}

/// Boots a guest and follows it to its end. Signals for the command come through `events`.
pub(crate) fn run(
    guest: &Guest<'_>,
    sinks: Sinks,
    events: (Sender<Event>, Receiver<Event>),
) -> Result<Outcome> {
    let (sender, receiver) = events;
    let dir = tempfile::tempdir().context("cannot make a folder for the guest's sockets")?;
    let initramfs = dir.path().join("initramfs");
    fs::write(&initramfs, guest.initramfs).context("cannot write the initramfs")?;
    let path = |name: &str| -> PathBuf { dir.path().join(name) };
    let sockets = Sockets {
        console: path("console"),
        stdout: path("stdout"),
        stderr: path("stderr"),
        control: path("control"),
    };

    let mut threads = vec![control(&sockets.control, sender.clone())?];
    for (socket, mut sink) in [
        (&sockets.stdout, sinks.stdout),
        (&sockets.stderr, sinks.stderr),
    ] {
        let marker = guest.marker.as_bytes().to_vec();
        let sender = sender.clone();
        threads.push(serve(socket, move |stream| {
            let event = match copy_until(stream, &mut sink, &marker) {
                Ok(true) => Event::Complete,
                Ok(false) => return,
                Err(error) => Event::Broken(error),
            };
            _ = sender.send(event);
        })?);
    }
    let (log_sender, log) = channel();
    let mut console = sinks.console;
    threads.push(serve(&sockets.console, move |mut stream| {
        let mut log = Vec::new();
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut chunk) {
            let chunk = chunk.get(..read).unwrap_or_default();
            log.extend_from_slice(chunk);
            _ = console.write_all(chunk);
        }
        _ = console.flush();
        _ = log_sender.send(log);
    })?);

    let mut child = qemu::command(guest.machine, guest.vmlinux, &initramfs, &sockets)
        .spawn()
        .context("cannot start qemu-system-x86_64 (Debian package qemu-system-x86)")?;
    let followed = follow(&mut child, &receiver, guest.timeout);
    if !matches!(followed, Ok((_, End::Done | End::Died(_)))) {
        _ = child.kill();
    }
    child.wait().context("cannot wait for QEMU")?;
    for socket in [
        &sockets.console,
        &sockets.stdout,
        &sockets.stderr,
        &sockets.control,
    ] {
        // A QEMU that never connected leaves its threads waiting for somebody.
        drop(UnixStream::connect(socket));
    }
    for thread in threads {
        _ = thread.join();
    }
    let (statuses, end) = followed?;
    let log = log
        .recv()
        .context("the thread that reads the console died")?;
    Ok(Outcome {
        statuses,
        end,
        log: String::from_utf8_lossy(&log).replace('\r', ""),
    })
}

/// Follows a running machine until it is gone or must go.
fn follow(
    child: &mut Child,
    receiver: &Receiver<Event>,
    timeout: Duration,
) -> Result<(Vec<u8>, End)> {
    let deadline = Instant::now() + timeout;
    let mut statuses = Vec::new();
    let mut control: Option<UnixStream> = None;
    let mut signals = 0;
    // Both outputs, and init's `end`.
    let mut missing = 3;
    loop {
        let event = receiver.recv_timeout(Duration::from_millis(20));
        match event {
            Ok(Event::Control(stream)) => control = Some(stream),
            Ok(Event::Said(Said::Exit(status))) => statuses.push(status),
            Ok(Event::Said(Said::Ready)) => {}
            Ok(Event::Said(Said::End) | Event::Complete) => {
                missing -= 1;
                if missing == 0 {
                    say(control.as_mut(), "bye");
                }
            }
            Ok(Event::Broken(error)) => {
                return Err(error).context("cannot write the guest's output");
            }
            Ok(Event::Signal(_)) if signals > 0 || control.is_none() => {
                return Ok((statuses, End::Interrupted));
            }
            Ok(Event::Signal(name)) => {
                signals += 1;
                say(control.as_mut(), name);
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                if let Some(status) = child.try_wait().context("cannot wait for QEMU")? {
                    let end = if missing == 0 {
                        End::Done
                    } else {
                        End::Died(status)
                    };
                    return Ok((statuses, end));
                }
            }
        }
        if Instant::now() >= deadline {
            return Ok((statuses, End::TimedOut));
        }
    }
}

/// Says something to the guest's init.
fn say(control: Option<&mut UnixStream>, words: &str) {
    if let Some(control) = control {
        // If it is gone, so is the machine, which the next round sees.
        _ = writeln!(control, "{words}");
    }
}

/// Waits for QEMU on a socket and hands the connection to `with`.
fn serve(path: &Path, with: impl FnOnce(UnixStream) + Send + 'static) -> Result<JoinHandle<()>> {
    let listener =
        UnixListener::bind(path).with_context(|| format!("cannot listen on {}", path.display()))?;
    Ok(thread::spawn(move || {
        if let Ok((stream, _)) = listener.accept() {
            with(stream);
        }
    }))
}

/// Passes on what the guest's init says.
fn control(path: &Path, sender: Sender<Event>) -> Result<JoinHandle<()>> {
    serve(path, move |stream| {
        if let Ok(writer) = stream.try_clone() {
            _ = sender.send(Event::Control(writer));
        }
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let Some(said) = Said::parse(&line) {
                _ = sender.send(Event::Said(said));
            }
        }
    })
}
