//! Ctrl-C and SIGTERM, when they are meant for the command in a guest.

use std::sync::mpsc::Sender;
use std::thread;

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};

use crate::guest::Event;

/// From now on these signals become events instead of ending this process.
/// Call it before other threads start.
pub(crate) fn forward(events: Sender<Event>) -> Result<()> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set.thread_block()
        .context("cannot take over SIGINT and SIGTERM")?;
    thread::spawn(move || {
        while let Ok(signal) = set.wait() {
            let name = if signal == Signal::SIGINT {
                "INT"
            } else {
                "TERM"
            };
            if events.send(Event::Signal(name)).is_err() {
                return;
            }
        }
    });
    Ok(())
}
