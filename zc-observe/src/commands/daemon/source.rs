//! The one place that reads the kernel's counts, one reader at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::canary::Counts;
use crate::metrics::Exporter;
use crate::probes::Observer;
use crate::report::{Names, Report};
use crate::web::ScrapeFailure;

/// The observer, once it is attached, and what was shown of it.
#[derive(Debug)]
pub(super) struct Source {
    attached: Mutex<Option<Attached>>,
    counts: Counts,
}

#[derive(Debug)]
struct Attached {
    observer: Observer,
    exporter: Exporter,
    names: Names,
}

impl Source {
    /// A source without an observer.
    pub(super) fn new(counts: Counts) -> Self {
        Self {
            attached: Mutex::new(None),
            counts,
        }
    }

    /// The observer is live.
    pub(super) fn put(&self, observer: Observer, exporter: Exporter, names: Names) {
        *self.lock() = Some(Attached {
            observer,
            exporter,
            names,
        });
    }

    /// Detaches everything.
    pub(super) fn detach(&self) {
        drop(self.lock().take());
    }

    /// One snapshot as a report.
    pub(super) fn report(&self) -> Result<Report, ScrapeFailure> {
        let mut guard = self.lock();
        let attached = guard.as_mut().ok_or(ScrapeFailure::NotReady)?;
        self.read(attached)
    }

    /// One snapshot as text for Prometheus.
    pub(super) fn scrape(&self) -> Result<String, ScrapeFailure> {
        let mut guard = self.lock();
        let attached = guard.as_mut().ok_or(ScrapeFailure::NotReady)?;
        let start = Instant::now();
        let report = self.read(attached)?;
        attached
            .exporter
            .render(report, || start.elapsed())
            .map_err(|error| ScrapeFailure::Failed(error.to_string()))
    }

    fn read(&self, attached: &mut Attached) -> Result<Report, ScrapeFailure> {
        let flows = self.counts.read();
        let Attached {
            observer, names, ..
        } = attached;
        let snapshot = observer
            .snapshot()
            .map_err(|error| ScrapeFailure::Failed(error.to_string()))?;
        names.next(&snapshot);
        Ok(Report::new(snapshot, observer.tier(), names, flows))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Attached>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
