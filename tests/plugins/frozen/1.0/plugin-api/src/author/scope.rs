//! What a plugin may do beside answering: log, report progress, count.

use super::error::Error;
use super::host::{Host, with_str};
use super::value::Value;
use crate::abi;
use crate::abi::host::metric_kind;
use crate::abi::types::{Param, level};
use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The log, the progress bar and the metrics of one plugin, model or instance. Clone it and keep it:
/// it may go to other threads, and once its owner is closed all it does is nothing.
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

struct Inner {
    host: Host,
    /// Highest level wanted; lives for ever, so looking at it needs no lock.
    level: &'static AtomicU32,
    /// Null once closed. Uses hold the lock for reading, so that closing waits for them.
    raw: RwLock<Raw>,
}

struct Raw(*mut abi::types::Scope);
// SAFETY: the host takes calls on a scope from any thread.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

static SILENT: AtomicU32 = AtomicU32::new(0);

impl Scope {
    /// # Safety
    /// `raw` stays valid until [`Scope::close`].
    pub(crate) unsafe fn new(host: Host, raw: *mut abi::types::Scope) -> Scope {
        // SAFETY: the scope is valid, and the address that comes back is for ever.
        let word = unsafe { (host.log_level)(raw) };
        let level = if word.is_null() {
            &SILENT
        } else {
            // SAFETY: a word that both sides touch atomically only.
            unsafe { AtomicU32::from_ptr(word.cast_mut()) }
        };
        Scope(Arc::new(Inner { host, level, raw: RwLock::new(Raw(raw)) }))
    }

    /// Ends the use of the host's scope; waits for calls under way on other threads.
    pub(crate) fn close(&self) {
        self.0.raw.write().unwrap_or_else(PoisonError::into_inner).0 = ptr::null_mut();
    }

    fn with<R>(&self, f: impl FnOnce(Host, *mut abi::types::Scope) -> R) -> Option<R> {
        let raw = self.0.raw.read().unwrap_or_else(PoisonError::into_inner);
        (!raw.0.is_null()).then(|| f(self.0.host, raw.0))
    }

    /// Whether records of this level (see [`crate::abi::types::level`]) are wanted: one load.
    pub fn wants(&self, level: u32) -> bool {
        level <= self.0.level.load(Ordering::Relaxed)
    }

    /// Writes a record, if its level is wanted. The macros fill in file and line.
    pub fn log(&self, level: u32, file: &str, line: u32, text: fmt::Arguments<'_>) {
        if !self.wants(level) {
            return;
        }
        let text = text.to_string();
        self.with(|host, scope| {
            with_str(file, |file| {
                with_str(&text, |text| {
                    // SAFETY: scope and texts are valid during the call.
                    unsafe { (host.log)(scope, level, file, line, text) }
                })
            })
        });
    }

    #[track_caller]
    pub fn error(&self, text: fmt::Arguments<'_>) {
        self.at(level::ERROR, Location::caller(), text);
    }

    #[track_caller]
    pub fn warning(&self, text: fmt::Arguments<'_>) {
        self.at(level::WARNING, Location::caller(), text);
    }

    #[track_caller]
    pub fn info(&self, text: fmt::Arguments<'_>) {
        self.at(level::INFO, Location::caller(), text);
    }

    #[track_caller]
    pub fn verbose(&self, text: fmt::Arguments<'_>) {
        self.at(level::VERBOSE, Location::caller(), text);
    }

    fn at(&self, level: u32, at: &Location<'_>, text: fmt::Arguments<'_>) {
        self.log(level, at.file(), at.line(), text);
    }

    /// Says how far a load has come, from 0 to 1000. True means that nobody waits for it any more:
    /// return an error soon.
    pub fn progress(&self, stage: &str, permille: u32) -> bool {
        let given_up = self.with(|host, scope| {
            // SAFETY: scope and text are valid during the call.
            with_str(stage, |stage| unsafe { (host.progress)(scope, stage, permille) })
        });
        given_up.is_some_and(|answer| answer != 0)
    }

    /// A number that only grows. The same name and labels twice is the same counter.
    pub fn counter(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
    ) -> Result<Counter, Error> {
        self.metric(metric_kind::COUNTER, name, help, labels).map(Counter)
    }

    /// A number that goes up and down.
    pub fn gauge(&self, name: &str, help: &str, labels: &[(&str, &str)]) -> Result<Gauge, Error> {
        self.metric(metric_kind::GAUGE, name, help, labels).map(Gauge)
    }

    fn metric(
        &self,
        kind: u32,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
    ) -> Result<Metric, Error> {
        let mut list = Vec::with_capacity(labels.len());
        let raw = lend_labels(labels, &mut list, &mut |labels| {
            self.with(|host, scope| {
                let mut raw = ptr::null_mut();
                with_str(name, |name| {
                    with_str(help, |help| {
                        let (p, n) = (labels.as_ptr(), labels.len() as u32);
                        // SAFETY: everything lent is valid during the call.
                        unsafe {
                            let error =
                                (host.metric_new)(scope, kind, name, help, p, n, &raw mut raw);
                            Error::take(host, error)
                        }
                    })
                })?;
                Ok(raw)
            })
        });
        match raw {
            Some(raw) => Ok(Metric { scope: self.clone(), raw: MetricPtr(raw?) }),
            None => Err(Error::unavailable("the scope of this metric is closed")),
        }
    }
}

type Lent = Option<Result<*mut abi::types::Metric, Error>>;

/// Calls `f` with all labels lent at once: each is on the stack of one level of this recursion.
fn lend_labels(
    labels: &[(&str, &str)],
    list: &mut Vec<Param>,
    f: &mut dyn FnMut(&[Param]) -> Lent,
) -> Lent {
    match labels {
        [] => f(list),
        [(key, value), rest @ ..] => Value::Text(value).lend(key, |label| {
            list.push(*label);
            lend_labels(rest, list, f)
        }),
    }
}

#[derive(Clone)]
struct Metric {
    scope: Scope,
    raw: MetricPtr,
}

#[derive(Clone, Copy)]
struct MetricPtr(*mut abi::types::Metric);
// SAFETY: the host takes calls on a metric from any thread.
unsafe impl Send for MetricPtr {}
// SAFETY: as above.
unsafe impl Sync for MetricPtr {}

impl Metric {
    fn put(&self, value: f64) {
        let raw = self.raw;
        self.scope.with(|host, _| {
            // SAFETY: a metric lives as long as its scope. What the host refuses it logs; no caller would act on it.
            unsafe { (host.error_free)((host.metric_put)(raw.0, value)) }
        });
    }

    fn get(&self) -> f64 {
        let raw = self.raw;
        // SAFETY: a metric lives as long as its scope.
        self.scope.with(|host, _| unsafe { (host.metric_get)(raw.0) }).unwrap_or(0.0)
    }
}

/// See [`Scope::counter`].
#[derive(Clone)]
pub struct Counter(Metric);

impl Counter {
    pub fn add(&self, value: f64) {
        self.0.put(value);
    }

    pub fn get(&self) -> f64 {
        self.0.get()
    }
}

/// See [`Scope::gauge`].
#[derive(Clone)]
pub struct Gauge(Metric);

impl Gauge {
    pub fn set(&self, value: f64) {
        self.0.put(value);
    }

    pub fn get(&self) -> f64 {
        self.0.get()
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! trts_log {
    ($level:ident, $scope:expr, $($text:tt)+) => {{
        let scope: &$crate::author::Scope = &$scope;
        if scope.wants($crate::abi::types::level::$level) {
            let text = format_args!($($text)+);
            scope.log($crate::abi::types::level::$level, file!(), line!(), text);
        }
    }};
}

/// `trts_error!(scope, "format {}", …)`: a record at level ERROR; arguments are not evaluated when nobody wants it.
#[macro_export]
macro_rules! trts_error { ($scope:expr, $($text:tt)+) => { $crate::trts_log!(ERROR, $scope, $($text)+) }; }

/// As [`trts_error!`], at level WARNING.
#[macro_export]
macro_rules! trts_warn { ($scope:expr, $($text:tt)+) => { $crate::trts_log!(WARNING, $scope, $($text)+) }; }

/// As [`trts_error!`], at level INFO.
#[macro_export]
macro_rules! trts_info { ($scope:expr, $($text:tt)+) => { $crate::trts_log!(INFO, $scope, $($text)+) }; }

/// As [`trts_error!`], at level VERBOSE.
#[macro_export]
macro_rules! trts_verbose { ($scope:expr, $($text:tt)+) => { $crate::trts_log!(VERBOSE, $scope, $($text)+) }; }
