//! Scopes: which backend, model or instance a call belongs to, for its log lines and metrics.
//!
//! `TRITONSERVER_LogMessage` and the metric functions have no handle. On a thread that is inside an
//! entry point of a backend the scope is that of the entry point's object. On threads of a
//! backend's own it is that of the backend opened last; with isolated models there is one per
//! process.

use crate::fault::Result;
use crate::host::{host_table, with_str};
use std::cell::RefCell;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::types::{self, Memory, level};

/// A scope of the host, usable until it is closed.
pub struct Scope {
    raw: RwLock<ScopePointer>,
    /// Highest level written.
    level: &'static AtomicU32,
    /// Name of the backend.
    backend: Box<str>,
    /// Memory that was reported: type, device, bytes.
    reported: Mutex<Vec<(Memory, u64)>>,
    /// The scope that metrics belong to, if this one is closed before its model.
    lasting: OnceLock<Arc<Scope>>,
}

struct ScopePointer(*mut types::Scope);
// SAFETY: the host accepts calls with a scope from any thread.
unsafe impl Send for ScopePointer {}
// SAFETY: the host accepts calls with one scope from several threads at once.
unsafe impl Sync for ScopePointer {}

static OFF: AtomicU32 = AtomicU32::new(0);
/// Scopes of the open backends, the last opened one last.
static BACKENDS: RwLock<Vec<Weak<Scope>>> = RwLock::new(Vec::new());

thread_local! {
    /// The entry points that this thread is in.
    static ENTERED: RefCell<Vec<Arc<Scope>>> = const { RefCell::new(Vec::new()) };
}

impl Scope {
    /// # Safety
    /// `raw` is a scope of the host, valid until [`Scope::close`].
    pub unsafe fn new(raw: *mut types::Scope, backend: &str) -> Result<Arc<Scope>> {
        // SAFETY: the scope is valid; the address is null or valid for the life of the process.
        let level = unsafe { (host_table()?.log_level)(raw) };
        // SAFETY: the address is null or valid for the life of the process; host and library access
        // the level atomically only.
        let level = unsafe { level.cast::<AtomicU32>().as_ref() }.unwrap_or(&OFF);
        Ok(Arc::new(Scope {
            raw: RwLock::new(ScopePointer(raw)),
            level,
            backend: backend.into(),
            reported: Mutex::default(),
            lasting: OnceLock::new(),
        }))
    }

    /// As [`Scope::new`], for a backend: also the scope of calls from threads of backends.
    ///
    /// # Safety
    /// The conditions of [`Scope::new`].
    pub unsafe fn for_backend(raw: *mut types::Scope, name: &str) -> Result<Arc<Scope>> {
        // SAFETY: passed on.
        let scope = unsafe { Scope::new(raw, name)? };
        let mut backends = BACKENDS.write().unwrap_or_else(PoisonError::into_inner);
        backends.retain(|scope| scope.strong_count() > 0);
        backends.push(Arc::downgrade(&scope));
        Ok(scope)
    }

    /// Reports memory that the backend holds, in place of an earlier report of the same memory.
    /// Backends of Triton do not take reports back; they end with the scope.
    pub fn report(&self, memory: Memory, bytes: u64) -> Result<()> {
        let Some(extension) = crate::host::memory_extension() else { return Ok(()) };
        let sent = self.with(|host, scope| {
            // SAFETY: the scope is open; an error is owned by the caller.
            unsafe {
                crate::host::take_error(host, (extension.memory_report)(scope, memory, bytes))
            }
        });
        sent.unwrap_or(Ok(()))?;
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.retain(|(other, _)| !same(*other, memory));
        if bytes > 0 {
            reported.push((memory, bytes));
        }
        Ok(())
    }

    /// Repeats the reports of another scope of the same model.
    pub fn take_reports(&self, from: &Scope) {
        let reports = from.reported.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (memory, bytes) in reports {
            let _ = self.report(memory, bytes);
        }
    }

    /// Ends the use of the host's scope, after calls in progress on other threads.
    pub fn close(&self) {
        let reports = self.reported.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(extension) = crate::host::memory_extension() {
            for (memory, _) in reports {
                self.with(|host, scope| {
                    // SAFETY: `with` keeps the scope open during the call; the caller owns a
                    // returned error.
                    unsafe {
                        crate::host::take_error(host, (extension.memory_report)(scope, memory, 0))
                    }
                });
            }
        }
        self.raw.write().unwrap_or_else(PoisonError::into_inner).0 = ptr::null_mut();
    }

    /// The scope is closed before its model, whose metrics therefore belong to that of the backend.
    pub fn end_before_model(&self, backend: &Arc<Scope>) {
        let _ = self.lasting.set(Arc::clone(backend));
    }

    /// Calls `f` with the host's scope; `None` once it is closed.
    pub fn with<R>(&self, f: impl FnOnce(&'static HostTable, *mut types::Scope) -> R) -> Option<R> {
        let raw = self.raw.read().unwrap_or_else(PoisonError::into_inner);
        match host_table() {
            Ok(host) if !raw.0.is_null() => Some(f(host, raw.0)),
            _ => None,
        }
    }

    pub fn is_open(&self) -> bool {
        self.with(|_, _| ()).is_some()
    }

    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// Whether records of this level (of `abi::types::level`) are written.
    pub fn enabled(&self, level: u32) -> bool {
        level <= self.level.load(Ordering::Relaxed)
    }

    pub fn log(&self, level: u32, file: &CStr, line: u32, text: &str) {
        if self.enabled(level) {
            self.with(|host, scope| {
                with_str(text, |text| {
                    // SAFETY: scope and texts are valid during the call.
                    unsafe { (host.log)(scope, level, crate::host::as_str(file), line, text) }
                })
            });
        }
    }

    pub fn error(&self, text: &str) {
        self.log(level::ERROR, c"", 0, text);
    }

    pub fn warn(&self, text: &str) {
        self.log(level::WARNING, c"", 0, text);
    }

    /// Runs a call into the backend, with this scope as the thread's.
    pub fn enter<R>(self: &Arc<Self>, call: impl FnOnce() -> R) -> R {
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                ENTERED.with_borrow_mut(|entered| entered.pop());
            }
        }
        ENTERED.with_borrow_mut(|entered| entered.push(Arc::clone(self)));
        let _leave = Leave;
        call()
    }
}

fn same(a: Memory, b: Memory) -> bool {
    (a.memory_type, a.device_id) == (b.memory_type, b.device_id)
}

/// The scope that a new metric belongs to; `None` if no backend is open.
pub fn metrics_scope() -> Option<Arc<Scope>> {
    let scope = current_scope()?;
    Some(scope.lasting.get().map_or_else(|| Arc::clone(&scope), Arc::clone))
}

/// The scope that a call without handle belongs to; `None` if no backend is open.
pub fn current_scope() -> Option<Arc<Scope>> {
    let entered = ENTERED.try_with(|entered| entered.borrow().last().cloned()).ok().flatten();
    entered.or_else(|| {
        let backends = BACKENDS.read().unwrap_or_else(PoisonError::into_inner);
        backends.iter().rev().filter_map(Weak::upgrade).find(|scope| scope.is_open())
    })
}
