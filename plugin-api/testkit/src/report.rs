//! What the test host reports: violations of the interface, and the promises that were exercised.

use crate::lock;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

/// The backend broke a promise of the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// As `trtserver plugin check` lists it, e.g. `output.bounds`.
    pub promise: &'static str,
    /// What was expected and what was found.
    pub text: String,
}

/// Receives each violation at once, and the name of each promise when it is first exercised.
#[derive(Clone, Copy)]
pub struct Observer {
    /// Called with each violation.
    pub violation: fn(&Violation),
    /// Called with the name of each promise when it is first exercised.
    pub exercised: fn(&'static str),
}

#[derive(Default)]
struct Report {
    violations: Vec<Violation>,
    exercised: HashSet<&'static str>,
    observer: Option<Observer>,
}

static REPORT: LazyLock<Mutex<Report>> = LazyLock::new(Mutex::default);
static TIMEOUT_MS: AtomicU64 = AtomicU64::new(10_000);
static TIMED_OUT: AtomicBool = AtomicBool::new(false);

/// Reports a violation.
pub fn report_violation(promise: &'static str, text: impl Into<String>) {
    let violation = Violation { promise, text: text.into() };
    let mut report = lock(&REPORT);
    let observer = report.observer;
    if !report.violations.contains(&violation) {
        report.violations.push(violation.clone());
    }
    drop(report);
    if let Some(observer) = observer {
        (observer.violation)(&violation);
    }
}

pub(crate) fn report_exercised(promise: &'static str) {
    let mut report = lock(&REPORT);
    let observer = report.observer.filter(|_| !report.exercised.contains(promise));
    report.exercised.insert(promise);
    drop(report);
    if let Some(observer) = observer {
        (observer.exercised)(promise);
    }
}

/// Removes and returns the violations so far.
pub fn take_violations() -> Vec<Violation> {
    std::mem::take(&mut lock(&REPORT).violations)
}

/// For programs that must report before the backend can crash the process.
pub fn set_observer(observer: Observer) {
    lock(&REPORT).observer = Some(observer);
}

/// How long an accepted request may take; 10 seconds by default.
pub fn set_timeout(timeout: Duration) {
    TIMEOUT_MS.store(timeout.as_millis() as u64, Relaxed);
}

/// After one request has timed out, others are hardly waited for until [`forget_timeouts`] is
/// called.
pub(crate) fn wait_limit() -> Duration {
    if timed_out() {
        Duration::from_millis(10)
    } else {
        Duration::from_millis(TIMEOUT_MS.load(Relaxed))
    }
}

pub(crate) fn set_timed_out() {
    TIMED_OUT.store(true, Relaxed);
}

/// Requests are waited for again after one has timed out.
pub fn forget_timeouts() {
    TIMED_OUT.store(false, Relaxed);
}

/// Whether a request was not finished in time.
pub fn timed_out() -> bool {
    TIMED_OUT.load(Relaxed)
}
