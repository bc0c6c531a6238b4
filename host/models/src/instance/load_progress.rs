//! How far the load of a model version is: progress lines in the log for loads that take long, and the times of its steps.

use super::load_cancel::LoadCancel;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use trtserver_base::clock::now_ns;
use trtserver_base::sync::Mutex;

/// Interval of progress lines of one load; the first comes after this time, too.
const INTERVAL: Duration = Duration::from_secs(2);
/// How often the reporting thread looks at the loads in progress.
const LOOK: Duration = Duration::from_millis(250);

/// Loads in progress.
static LOADS: Mutex<Vec<Weak<LoadProgress>>> = Mutex::new(Vec::new());
/// Whether the reporting thread runs. Changed under the lock of `LOADS`.
static REPORTING: AtomicBool = AtomicBool::new(false);

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
    /// Reading, completing and checking the configuration and the files that it names. Versions of a model share it.
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

impl LoadProgress {
    /// The load of `version` begins. It is in progress until the result is dropped.
    pub fn begin(model: &str, version: i64, cancel: &Arc<LoadCancel>) -> Arc<Self> {
        let progress = Arc::new(Self {
            model: model.into(),
            version,
            start_ns: now_ns(),
            instances: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            opened_ns: AtomicU64::new(0),
            cancel: Arc::clone(cancel),
            lines: AtomicU64::new(0),
        });
        let mut loads = LOADS.lock();
        loads.retain(|load| load.strong_count() > 0);
        loads.push(Arc::downgrade(&progress));
        if !REPORTING.swap(true, Ordering::Relaxed) {
            let started = std::thread::Builder::new().name("load-progress".into()).spawn(report);
            REPORTING.store(started.is_ok(), Ordering::Relaxed);
        }
        drop(loads);
        progress
    }

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

/// The loads in progress.
pub fn in_progress() -> Vec<Arc<LoadProgress>> {
    LOADS.lock().iter().filter_map(Weak::upgrade).collect()
}

/// Logs the progress of loads until none is left.
fn report() {
    loop {
        std::thread::sleep(LOOK);
        let mut loads = LOADS.lock();
        loads.retain(|load| load.strong_count() > 0);
        if loads.is_empty() {
            REPORTING.store(false, Ordering::Relaxed);
            return;
        }
        let current: Vec<_> = loads.iter().filter_map(Weak::upgrade).collect();
        drop(loads);
        for line in current.iter().filter_map(|load| load.line()) {
            tracing::info!("{line}");
        }
    }
}

#[cfg(test)]
#[path = "load_progress_tests.rs"]
mod tests;
