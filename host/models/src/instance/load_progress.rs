//! How far the load of a model version is: progress lines in the log for loads that take long, and
//! the times of its steps.

use super::load_cancel::LoadCancel;
use crate::repository_changes::RepositoryChanges;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use trtserver_base::clock::now_ns;

/// Interval of progress lines of one load; the first comes after this time, too.
const INTERVAL: Duration = Duration::from_secs(2);
/// How often the reporting thread looks at the loads in progress.
const LOOK: Duration = Duration::from_millis(250);

/// The loads in progress, the thread that reports them, and what they and unloads have changed.
#[derive(Default)]
pub struct LoadsInProgress {
    list: Mutex<LoadList>,
    pub changes: RepositoryChanges,
}

#[derive(Default)]
struct LoadList {
    loads: Vec<Weak<LoadProgress>>,
    /// The reporting thread runs.
    reporting: bool,
}

/// The load of one version, from the first call of its backend on.
pub struct LoadProgress {
    pub model: Arc<str>,
    pub version: i64,
    start_ns: u64,
    instances: AtomicUsize,
    open: AtomicUsize,
    /// When the last instance so far was open, before its warm-up.
    opened_ns: AtomicU64,
    cancel: Arc<LoadCancel>,
    lines: AtomicU64,
}

/// How long the steps of a load took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTimes {
    /// Downloading the files; zero for a local repository.
    pub fetch: Duration,
    /// Reading, completing and checking the configuration and the files that it names. Versions of
    /// a model share it.
    pub parse: Duration,
    /// The backend opens the model and its instances.
    pub open: Duration,
    /// The warm-up, until the slowest instance is ready.
    pub warm: Duration,
}

impl LoadTimes {
    pub fn total(&self) -> Duration {
        self.fetch + self.parse + self.open + self.warm
    }
}

impl LoadsInProgress {
    /// The load of `version` begins. It is in progress until the result is dropped.
    pub fn begin(
        self: &Arc<Self>,
        model: &str,
        version: i64,
        cancel: &Arc<LoadCancel>,
    ) -> Arc<LoadProgress> {
        let progress = Arc::new(LoadProgress {
            model: model.into(),
            version,
            start_ns: now_ns(),
            instances: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            opened_ns: AtomicU64::new(0),
            cancel: Arc::clone(cancel),
            lines: AtomicU64::new(0),
        });
        let mut list = self.list.lock();
        list.loads.retain(|load| load.strong_count() > 0);
        list.loads.push(Arc::downgrade(&progress));
        if !list.reporting {
            let (named, this) = (std::thread::Builder::new(), Arc::clone(self));
            let started = named.name("load-progress".into()).spawn(move || this.report_progress());
            list.reporting = started.is_ok();
        }
        drop(list);
        progress
    }

    pub fn list(&self) -> Vec<Arc<LoadProgress>> {
        self.list.lock().loads.iter().filter_map(Weak::upgrade).collect()
    }

    /// Logs the progress of loads until none is left.
    fn report_progress(&self) {
        loop {
            std::thread::sleep(LOOK);
            let mut list = self.list.lock();
            list.loads.retain(|load| load.strong_count() > 0);
            if list.loads.is_empty() {
                list.reporting = false;
                return;
            }
            drop(list);
            for line in self.list().iter().filter_map(|load| load.line()) {
                tracing::info!("{line}");
            }
        }
    }
}

impl LoadProgress {
    /// The version has `count` instances.
    pub fn expects(&self, count: usize) {
        self.instances.store(count, Ordering::Relaxed);
    }

    /// An instance is open; its warm-up follows.
    pub fn instance_opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.opened_ns.fetch_max(now_ns(), Ordering::Relaxed);
    }

    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(now_ns().saturating_sub(self.start_ns))
    }

    /// Times of opening and warm-up, when the load has ended.
    pub fn open_and_warm(&self) -> (Duration, Duration) {
        let elapsed = self.elapsed();
        let opened = match self.opened_ns.load(Ordering::Relaxed) {
            // An ensemble has no instances.
            0 => elapsed,
            opened => Duration::from_nanos(opened.saturating_sub(self.start_ns)).min(elapsed),
        };
        (opened, elapsed.saturating_sub(opened))
    }

    /// What the load does now.
    pub fn stage(&self) -> String {
        let (open, count) =
            (self.open.load(Ordering::Relaxed), self.instances.load(Ordering::Relaxed));
        match open {
            _ if open < count || count == 0 => format!("{open} of {count} instances are open"),
            _ => "warm-up".to_owned(),
        }
    }

    /// Stage and per mille that the backend reported last.
    pub fn reported(&self) -> Option<(String, u32)> {
        self.cancel.flag().progress()
    }

    /// A line for the log, if one is due.
    fn line(&self) -> Option<String> {
        let elapsed = self.elapsed();
        let due = (elapsed.as_secs_f64() / INTERVAL.as_secs_f64()) as u64;
        if due == 0 || self.lines.swap(due, Ordering::Relaxed) == due {
            return None;
        }
        let reported = match self.reported() {
            Some((stage, permille)) => format!(", {stage} ({:.1} %)", f64::from(permille) / 10.0),
            None => String::new(),
        };
        let (model, version) = (&self.model, self.version);
        Some(format!(
            "still loading '{model}' version {version} after {:.0} s: {}{reported}",
            elapsed.as_secs_f64(),
            self.stage()
        ))
    }
}

#[cfg(test)]
#[path = "load_progress_tests.rs"]
mod tests;
