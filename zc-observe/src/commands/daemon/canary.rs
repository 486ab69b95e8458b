//! Canary traffic: each flow of `--generate` on a thread of its own until the end.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::report::Flow;

/// Sends until the flag says stop; one sentence if it cannot go on.
type Run = Box<dyn FnOnce(&AtomicBool) -> Result<(), String> + Send>;
/// Tells what was counted so far.
type Read = Box<dyn Fn() -> Flow + Send + Sync>;
/// Why a flow ended early, if it did.
type Ended = Arc<Mutex<Option<String>>>;

/// A flow that can be started.
pub(super) struct Traffic {
    /// Its spec as typed.
    pub(super) spec: String,
    /// What it counted so far.
    pub(super) read: Read,
    /// What sends.
    pub(super) run: Run,
}

impl fmt::Debug for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traffic")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

/// A flow's counts, and why it ended early.
struct Count {
    name: String,
    read: Read,
    error: Ended,
}

/// The counts of all flows.
#[derive(Clone, Default)]
pub(super) struct Counts(Arc<Vec<Count>>);

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counts").field(&self.0.len()).finish()
    }
}

impl Counts {
    /// What all flows counted so far.
    pub(super) fn read(&self) -> Vec<Flow> {
        let flow = |count: &Count| Flow {
            spec: count.name.clone(),
            error: count
                .error
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            ..(count.read)()
        };
        self.0.iter().map(flow).collect()
    }
}

/// Flows that were asked for and do not send yet.
pub(super) struct Waiting(Vec<(String, Run, Ended)>);

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Waiting").field(&self.0.len()).finish()
    }
}

/// Takes flows apart into what counts and what sends. The second flow of one spec is
/// named `SPEC#2`, and so on.
pub(super) fn prepare(traffic: Vec<Traffic>) -> (Waiting, Counts) {
    let (mut waiting, mut counts) = (Vec::new(), Vec::<Count>::new());
    let mut seen = HashMap::<String, usize>::new();
    for flow in traffic {
        let number = seen.entry(flow.spec.clone()).or_default();
        *number += 1;
        let name = if *number == 1 {
            flow.spec
        } else {
            format!("{}#{number}", flow.spec)
        };
        let error = Ended::default();
        waiting.push((name.clone(), flow.run, error.clone()));
        counts.push(Count {
            name,
            read: flow.read,
            error,
        });
    }
    (Waiting(waiting), Counts(Arc::new(counts)))
}

/// Flows that send.
#[derive(Debug)]
pub(super) struct Running {
    stop: Arc<AtomicBool>,
    ended: mpsc::Receiver<()>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Waiting {
    /// Starts a thread per flow.
    pub(super) fn start(self) -> io::Result<Running> {
        let stop = Arc::new(AtomicBool::new(false));
        let (end, ended) = mpsc::channel();
        let mut running = Running {
            stop: stop.clone(),
            ended,
            threads: Vec::new(),
        };
        for (spec, run, error) in self.0 {
            let (stop, end) = (stop.clone(), end.clone());
            let thread = thread::Builder::new()
                .name("canary".to_owned())
                .spawn(move || {
                    if let Err(why) = run(&stop) {
                        tracing::warn!("the flow {spec} ended early: {why}");
                        *error.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                    }
                    // Nobody listens any more if the end took too long.
                    let _ = end.send(());
                });
            running.threads.push(thread?);
        }
        Ok(running)
    }
}

impl Running {
    /// Stops all flows and waits for them, for `grace` at most. Says whether all ended.
    pub(super) fn stop(mut self, grace: Duration) -> bool {
        self.stop.store(true, Ordering::Release);
        let deadline = Instant::now() + grace;
        let mut open = self.threads.len();
        while open > 0 {
            match self
                .ended
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(()) => open -= 1,
                // Disconnected: a thread died without a word, and none is left.
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    tracing::warn!("{open} flows did not stop in time; their last counts are open");
                    return false;
                }
            }
        }
        for thread in std::mem::take(&mut self.threads) {
            if thread.join().is_err() {
                tracing::error!("a flow's thread panicked");
            }
        }
        true
    }
}

impl Drop for Running {
    /// However the daemon ends, the flows are told.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn traffic(run: Run) -> (Traffic, Arc<AtomicU64>) {
        let sends = Arc::new(AtomicU64::new(0));
        let counted = sends.clone();
        let read = Box::new(move || Flow {
            spec: "tcp4".to_owned(),
            sends: counted.load(Ordering::Relaxed),
            ..Flow::default()
        });
        (
            Traffic {
                spec: "tcp4".to_owned(),
                read,
                run,
            },
            sends,
        )
    }

    #[test]
    fn flows_end_when_told() {
        let (flow, sends) = traffic(Box::new(|stop| {
            while !stop.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }));
        let (waiting, counts) = prepare(vec![flow]);
        sends.store(7, Ordering::Relaxed);
        let running = waiting.start().unwrap();
        assert_eq!(counts.read()[0].sends, 7);
        assert!(running.stop(Duration::from_secs(60)));
        assert_eq!(counts.read()[0].error, None);
    }

    #[test]
    fn flows_of_one_spec_have_names_of_their_own() {
        let flows = (0..3).map(|_| traffic(Box::new(|_| Ok(()))).0).collect();
        let (_, counts) = prepare(flows);
        let names: Vec<String> = counts.read().into_iter().map(|flow| flow.spec).collect();
        assert_eq!(names, ["tcp4", "tcp4#2", "tcp4#3"]);
    }

    #[test]
    fn a_flow_that_fails_says_why_and_the_rest_goes_on() {
        let (flow, _) = traffic(Box::new(|_| Err("no IPv6".to_owned())));
        let (waiting, counts) = prepare(vec![flow]);
        assert!(waiting.start().unwrap().stop(Duration::from_secs(60)));
        assert_eq!(counts.read()[0].error.as_deref(), Some("no IPv6"));
    }

    #[test]
    fn a_flow_that_hangs_is_not_waited_for() {
        let (release, hang) = mpsc::channel::<()>();
        let (flow, _) = traffic(Box::new(move |_| {
            // Ends with the test.
            let _ = hang.recv();
            Ok(())
        }));
        let (waiting, _) = prepare(vec![flow]);
        assert!(!waiting.start().unwrap().stop(Duration::from_millis(10)));
        drop(release);
    }
}
