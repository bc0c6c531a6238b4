//! Scopes: log, load progress and metrics of a backend, model or instance.

use super::error::Error;
use super::host::{Host, with_str};
use super::value::Value;
use crate::abi;
use crate::abi::extensions::{self, MetricsExtension, metric_kind};
use crate::abi::types::{Param, level};
use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The log, the load progress and the metrics of one backend, model or instance. Clone it and store it; it may be sent
/// to other threads. Once its owner is closed its methods do nothing.
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

struct Inner {
    host: Host,
    /// Highest level requested; lives for ever, so looking at it needs no lock.
    level: &'static AtomicU32,
    /// Null once closed. Calls into the host hold the read lock, so that closing waits for them.
    raw: RwLock<Raw>,
}

struct Raw(*mut abi::types::Scope);
// SAFETY: the host accepts calls with a scope from any thread.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

static OFF: AtomicU32 = AtomicU32::new(0);

impl Scope {
    /// # Safety
    /// `raw` stays valid until [`Scope::close`].
    pub(crate) unsafe fn new(host: Host, raw: *mut abi::types::Scope) -> Scope {
        // SAFETY: the scope is valid, and the address returned is valid for the life of the process.
        let level = unsafe { (host.log_level)(raw) };
        let level = if level.is_null() {
            &OFF
        } else {
            // SAFETY: both sides access it atomically only.
            unsafe { AtomicU32::from_ptr(level.cast_mut()) }
        };
        Scope(Arc::new(Inner { host, level, raw: RwLock::new(Raw(raw)) }))
    }

    /// Ends the use of the host's scope, after calls in progress on other threads.
    pub(crate) fn close(&self) {
        self.0.raw.write().unwrap_or_else(PoisonError::into_inner).0 = ptr::null_mut();
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(Host, *mut abi::types::Scope) -> R) -> Option<R> {
        let raw = self.0.raw.read().unwrap_or_else(PoisonError::into_inner);
        (!raw.0.is_null()).then(|| f(self.0.host, raw.0))
    }

    /// Whether records of this level (see [`crate::abi::types::level`]) are written: one atomic load.
    pub fn enabled(&self, level: u32) -> bool {
        level <= self.0.level.load(Ordering::Relaxed)
    }

    /// Writes a record, if its level is requested. The macros fill in file and line.
    pub fn log(&self, level: u32, file: &str, line: u32, text: fmt::Arguments<'_>) {
        if !self.enabled(level) {
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

    /// Reports the progress of a load, from 0 to 1000. Returns true when the load was abandoned: return an error soon.
    pub fn progress(&self, stage: &str, permille: u32) -> bool {
        let abandoned = self.with(|host, scope| {
            // SAFETY: scope and text are valid during the call.
            with_str(stage, |stage| unsafe { (host.progress)(scope, stage, permille) })
        });
        abandoned.is_some_and(|result| result != 0)
    }

    /// A value that only grows. The same name and labels twice is the same counter. Fails on hosts without the metrics
    /// extension.
    pub fn counter(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
    ) -> Result<Counter, Error> {
        self.metric(metric_kind::COUNTER, name, help, labels).map(Counter)
    }

    /// A value that goes up and down. Fails as [`Scope::counter`].
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
        let Some(extension) = self.0.host.metrics() else {
            let text = format_args!("this host has no extension '{}'", extensions::METRICS);
            return Err(Error::unsupported(text));
        };
        let mut list = Vec::with_capacity(labels.len());
        let raw = with_labels(labels, &mut list, &mut |labels| {
            self.with(|host, scope| {
                let mut raw = ptr::null_mut();
                with_str(name, |name| {
                    with_str(help, |help| {
                        let (p, n) = (labels.as_ptr(), labels.len() as u32);
                        // SAFETY: all arguments are valid during the call.
                        unsafe {
                            let error =
                                (extension.metric_new)(scope, kind, name, help, p, n, &raw mut raw);
                            Error::take(host, error)
                        }
                    })
                })?;
                Ok(raw)
            })
        });
        match raw {
            Some(raw) => Ok(Metric { scope: self.clone(), extension, raw: MetricPtr(raw?) }),
            None => Err(Error::unavailable("the scope of this metric is closed")),
        }
    }
}

type Created = Option<Result<*mut extensions::Metric, Error>>;

/// Calls `f` with all labels: each is on the stack of one level of this recursion.
fn with_labels(
    labels: &[(&str, &str)],
    list: &mut Vec<Param>,
    f: &mut dyn FnMut(&[Param]) -> Created,
) -> Created {
    match labels {
        [] => f(list),
        [(key, value), rest @ ..] => Value::Text(value).with_param(key, |label| {
            list.push(*label);
            with_labels(rest, list, f)
        }),
    }
}

#[derive(Clone)]
struct Metric {
    scope: Scope,
    extension: &'static MetricsExtension,
    raw: MetricPtr,
}

#[derive(Clone, Copy)]
struct MetricPtr(*mut extensions::Metric);
// SAFETY: the host accepts calls with a metric from any thread.
unsafe impl Send for MetricPtr {}
// SAFETY: as above.
unsafe impl Sync for MetricPtr {}

impl Metric {
    fn put(&self, value: f64) {
        let raw = self.raw;
        self.scope.with(|host, _| {
            // SAFETY: a metric is valid as long as its scope. The host logs what it refuses.
            unsafe { (host.error_free)((self.extension.metric_put)(raw.0, value)) }
        });
    }

    fn get(&self) -> f64 {
        let raw = self.raw;
        // SAFETY: a metric is valid as long as its scope.
        self.scope.with(|_, _| unsafe { (self.extension.metric_get)(raw.0) }).unwrap_or(0.0)
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
        if scope.enabled($crate::abi::types::level::$level) {
            let text = format_args!($($text)+);
            scope.log($crate::abi::types::level::$level, file!(), line!(), text);
        }
    }};
}

/// `trts_error!(scope, "format {}", …)`: a record at level ERROR; arguments are not evaluated when the level is off.
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
