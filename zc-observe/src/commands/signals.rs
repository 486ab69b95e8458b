//! The signals that end a command.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Exit;

/// SIGTERM and SIGINT, caught from here on.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one and says how the command exits after it.
    pub(super) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.terminate.recv() => Exit::Done,
            _ = self.interrupt.recv() => Exit::Interrupted,
        }
    }
}
