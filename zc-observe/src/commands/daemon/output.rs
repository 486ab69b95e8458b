//! Standard output of a daemon: a reader that is slow or gone stops nothing.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Lines that may wait for the reader; more are dropped.
const WAITING: usize = 64;

/// Writes lines from a thread of its own.
#[derive(Debug)]
pub(super) struct Output {
    lines: SyncSender<String>,
    ended: Receiver<()>,
}

impl Output {
    /// To this writer.
    pub(super) fn to(writer: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, receive) = sync_channel(WAITING);
        let (end, ended) = sync_channel(1);
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || {
                write(&receive, writer);
                // The receiver may have stopped waiting.
                let _ = end.send(());
            })?;
        Ok(Self { lines, ended })
    }

    /// Writes a line, unless too many are waiting or nobody reads.
    pub(super) fn line(&self, line: impl Into<String>) {
        if self.lines.try_send(line.into()).is_err() {
            tracing::debug!("a line was dropped: nobody reads standard output");
        }
    }

    /// Waits until everything is written, for `grace` at most.
    pub(super) fn finish(self, grace: Duration) {
        drop(self.lines);
        if self.ended.recv_timeout(grace) == Err(RecvTimeoutError::Timeout) {
            tracing::debug!("the last lines were dropped: nobody reads standard output");
        }
    }
}

fn write(lines: &Receiver<String>, mut writer: impl Write) {
    while let Ok(line) = lines.recv() {
        let written = writeln!(writer, "{}", line.trim_end()).and_then(|()| writer.flush());
        if let Err(error) = written {
            tracing::info!("standard output is closed ({error}); the daemon goes on without it");
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_come_in_order_and_whole() {
        let kept = Kept::default();
        let output = Output::to(kept.clone()).unwrap();
        output.line("one");
        output.line("two\n");
        output.finish(Duration::from_secs(60));
        assert_eq!(*kept.0.lock().unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_closed_reader_is_no_error() {
        let output = Output::to(Closed).unwrap();
        for _ in 0..2 * WAITING {
            output.line("lost");
        }
        output.finish(Duration::from_secs(60));
    }
}
