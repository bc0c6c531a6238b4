//! Limit of the instances of a server. Each is a thread at least; a thread that cannot be set up
//! after the system has started it ends the process, so that the limit must hold before threads are
//! started.

use super::thread_limit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_base::error::{Error, Result};

/// Instances when the system sets no closer limit.
const DEFAULT: usize = 4096;
/// Memory mappings of an instance: its stack and its signal stack with their guard pages, and what
/// the backend maps.
const MAPPINGS: usize = 16;
/// An instance may use this share of the threads that the system allows: backends start threads,
/// too, and so do the host's network, load and isolation.
const SHARE: usize = 4;
/// Threads that must stay available to the process after a load.
const SPARE_THREADS: usize = 64;

/// Counts the instances that are open or being opened.
pub struct InstanceLimit {
    max: usize,
    open: AtomicUsize,
}

impl InstanceLimit {
    /// `max`: `--max-instances`, or `None` to derive it from the limits of the system.
    pub fn new(max: Option<usize>) -> Arc<Self> {
        let max = max.unwrap_or_else(|| {
            let threads = thread_limit::thread_limit().unwrap_or(usize::MAX) / SHARE;
            let mappings = thread_limit::mapping_limit().unwrap_or(usize::MAX) / MAPPINGS;
            DEFAULT.min(threads).min(mappings).max(1)
        });
        Arc::new(Self { max, open: AtomicUsize::new(0) })
    }

    /// Reserves `count` instances of `subject`.
    ///
    /// # Errors
    /// With them the server would have more instances, or the process more threads, than it may.
    pub fn reserve(self: &Arc<Self>, count: usize, subject: &str) -> Result<InstanceReservation> {
        if let Some((left, limit)) = thread_limit::threads_left()
            && left < count.saturating_add(SPARE_THREADS)
        {
            return Err(Error::unavailable(format!(
                "{subject} needs {count} threads, but only {left} are left of {limit}, of which \
                 {SPARE_THREADS} are kept in reserve"
            )));
        }
        let add = |open: usize| open.checked_add(count).filter(|open| *open <= self.max);
        match self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, add) {
            Ok(_) => Ok(InstanceReservation { limit: Arc::clone(self), count }),
            Err(open) => Err(Error::unavailable(format!(
                "{subject} has {count} instances and the server has {open} already, at most {} \
                 are allowed by --max-instances",
                self.max
            ))),
        }
    }
}

/// Instances that count until this is dropped.
pub struct InstanceReservation {
    limit: Arc<InstanceLimit>,
    count: usize,
}

impl InstanceReservation {
    /// One for each instance.
    pub fn split(mut self) -> impl Iterator<Item = Self> {
        let count = std::mem::take(&mut self.count);
        std::iter::repeat_with(move || Self { limit: Arc::clone(&self.limit), count: 1 })
            .take(count)
    }
}

impl Drop for InstanceReservation {
    fn drop(&mut self) {
        self.limit.open.fetch_sub(self.count, Ordering::AcqRel);
    }
}

#[cfg(test)]
#[path = "limit_tests.rs"]
mod tests;
