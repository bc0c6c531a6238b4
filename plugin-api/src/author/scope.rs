//! Scopes: log and load progress of a backend, model or instance. `metrics.rs` adds metrics,
//! `inference.rs` nested requests.

use super::host::{Host, with_str};
use crate::abi;
use crate::abi::types::level;
use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The log, the load progress and the metrics of one backend, model or instance. Clone it and store
/// it; it may be sent to other threads. Once its owner is closed its methods do nothing.
#[derive(Clone)]
pub struct Scope(Arc<ScopeState>);

struct ScopeState {
    host: Host,
    /// Highest level requested; lives for ever, so looking at it needs no lock.
    level: &'static AtomicU32,
    /// Null once closed. Calls into the host hold the read lock, so that closing waits for them.
    raw: RwLock<ScopePointer>,
}

struct ScopePointer(*mut abi::types::Scope);
// SAFETY: the host accepts calls with a scope from any thread.
unsafe impl Send for ScopePointer {}
// SAFETY: the host accepts calls with one scope from several threads at once.
unsafe impl Sync for ScopePointer {}

static OFF: AtomicU32 = AtomicU32::new(0);

impl Scope {
    /// # Safety
    /// `raw` stays valid until [`Scope::close`].
    pub(crate) unsafe fn new(host: Host, raw: *mut abi::types::Scope) -> Scope {
        // SAFETY: the scope is valid, and the address returned is valid for the life of the
        // process.
        let level = unsafe { (host.log_level)(raw) };
        let level = if level.is_null() {
            &OFF
        } else {
            // SAFETY: both sides access it atomically only.
            unsafe { AtomicU32::from_ptr(level.cast_mut()) }
        };
        Scope(Arc::new(ScopeState { host, level, raw: RwLock::new(ScopePointer(raw)) }))
    }

    /// Ends the use of the host's scope, after calls in progress on other threads.
    pub(crate) fn close(&self) {
        self.0.raw.write().unwrap_or_else(PoisonError::into_inner).0 = ptr::null_mut();
    }

    pub(crate) fn host(&self) -> Host {
        self.0.host
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(Host, *mut abi::types::Scope) -> R) -> Option<R> {
        let raw = self.0.raw.read().unwrap_or_else(PoisonError::into_inner);
        (!raw.0.is_null()).then(|| f(self.0.host, raw.0))
    }

    /// Whether records of this level (see [`crate::abi::types::level`]) are written: one atomic
    /// load.
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

    /// Writes an error to the log.
    #[track_caller]
    pub fn error(&self, text: fmt::Arguments<'_>) {
        self.at(level::ERROR, Location::caller(), text);
    }

    /// Writes a warning to the log.
    #[track_caller]
    pub fn warning(&self, text: fmt::Arguments<'_>) {
        self.at(level::WARNING, Location::caller(), text);
    }

    /// Writes a line of information to the log.
    #[track_caller]
    pub fn info(&self, text: fmt::Arguments<'_>) {
        self.at(level::INFO, Location::caller(), text);
    }

    /// Writes a line to the verbose log.
    #[track_caller]
    pub fn verbose(&self, text: fmt::Arguments<'_>) {
        self.at(level::VERBOSE, Location::caller(), text);
    }

    fn at(&self, level: u32, at: &Location<'_>, text: fmt::Arguments<'_>) {
        self.log(level, at.file(), at.line(), text);
    }

    /// Reports the progress of a load, from 0 to 1000. Returns true when the load was abandoned:
    /// return an error soon.
    pub fn progress(&self, stage: &str, permille: u32) -> bool {
        let abandoned = self.with(|host, scope| {
            // SAFETY: scope and text are valid during the call.
            with_str(stage, |stage| unsafe { (host.progress)(scope, stage, permille) })
        });
        abandoned.is_some_and(|result| result != 0)
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

/// `trts_error!(scope, "format {}", …)`: a record at level ERROR; arguments are not evaluated when
/// the level is off.
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
