//! The primary context of a GPU: made current for a call, checked after it, and marked lost by a
//! sticky error.

use super::api::{CuContext, CudaApi, CudaError};
use super::codes::{OUT_OF_MEMORY, is_sticky};
use cudarc::driver::sys::CUctx_st;
use parking_lot::Mutex;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use trtserver_base::error::{Code, Error, Result};

/// The context that the server and the frameworks in its process share. Retained when it is first
/// used, and kept: a framework that was used once keeps it too.
pub struct CudaContext {
    pub(super) api: &'static CudaApi,
    pub(super) ordinal: i32,
    /// The driver's handle of the device.
    pub(super) device: c_int,
    /// Null until the first use.
    handle: AtomicPtr<CUctx_st>,
    opening: Mutex<()>,
    lost: OnceLock<String>,
    watchers: Mutex<Vec<(u64, Watcher)>>,
    next_watcher: AtomicU64,
}

type Watcher = Box<dyn FnOnce(&str) + Send>;

impl CudaContext {
    pub(super) fn new(api: &'static CudaApi, ordinal: i32, device: c_int) -> Self {
        Self {
            api,
            ordinal,
            device,
            handle: AtomicPtr::new(null_mut()),
            opening: Mutex::new(()),
            lost: OnceLock::new(),
            watchers: Mutex::default(),
            next_watcher: AtomicU64::new(0),
        }
    }

    /// The driver's handle; the first call creates the context, which takes some hundred
    /// milliseconds.
    pub fn handle(&self) -> Result<CuContext> {
        let handle = self.handle.load(Ordering::Acquire);
        if !handle.is_null() {
            return Ok(handle);
        }
        let _opening = self.opening.lock();
        let mut handle = self.handle.load(Ordering::Acquire);
        if handle.is_null() {
            // SAFETY: the device came from the driver, and the pointer is valid.
            self.check(unsafe { self.api.primary_context_retain(&mut handle, self.device) })?;
            self.handle.store(handle, Ordering::Release);
        }
        Ok(handle)
    }

    /// Whether the context was used.
    pub fn is_open(&self) -> bool {
        !self.handle.load(Ordering::Relaxed).is_null()
    }

    /// Makes the context current on this thread until the guard is dropped.
    ///
    /// # Errors
    /// The device is lost, or has no context.
    pub fn enter(&self) -> Result<ContextScope<'_>> {
        if let Some(lost) = self.fault() {
            return Err(lost);
        }
        self.enter_lost()
    }

    /// As [`CudaContext::enter`], for giving back what belongs to a device that may be lost.
    pub(super) fn enter_lost(&self) -> Result<ContextScope<'_>> {
        let handle = self.handle()?;
        let mut current = null_mut();
        // SAFETY: the pointer is valid, and `handle` is retained for as long as the process runs.
        let pushed = unsafe {
            self.check(self.api.context_current(&mut current))?;
            // A framework may have made another context current since the last call.
            if current == handle {
                false
            } else {
                self.check(self.api.context_push(handle))?;
                true
            }
        };
        Ok(ContextScope { context: self, pushed, thread: PhantomData })
    }

    /// Makes the context current on this thread for good.
    pub fn bind_to_thread(&self) -> Result<()> {
        let handle = self.handle()?;
        // SAFETY: the context is retained for as long as the process runs.
        self.check(unsafe { self.api.context_set(handle) })
    }

    /// Why the device cannot be used until the process ends; `None` for a usable device.
    pub fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Marks the device lost and notifies the watchers, once.
    pub fn lose(&self, reason: &str) {
        if self.lost.set(reason.to_owned()).is_err() {
            return;
        }
        tracing::error!("GPU {} is lost: {reason}", self.ordinal);
        for (_, watcher) in std::mem::take(&mut *self.watchers.lock()) {
            watcher(reason);
        }
    }

    /// Calls `watcher` with the reason when the device is lost, at once if it is already; not after
    /// the guard is dropped. The watcher runs on the thread that found the device lost.
    pub fn on_lost(&'static self, watcher: impl FnOnce(&str) + Send + 'static) -> LostWatch {
        let id = self.next_watcher.fetch_add(1, Ordering::Relaxed);
        let mut watchers = self.watchers.lock();
        match self.lost() {
            // `lose` may have taken the list before: nothing would call the watcher.
            Some(reason) => {
                drop(watchers);
                watcher(reason);
            }
            None => watchers.push((id, Box::new(watcher))),
        }
        LostWatch { context: self, id }
    }

    /// Turns the result of a driver call into one of the server; a sticky error marks the device
    /// lost.
    pub(super) fn check<T>(&self, result: Result<T, CudaError>) -> Result<T> {
        result.map_err(|e| self.error(&e))
    }

    #[cold]
    fn error(&self, e: &CudaError) -> Error {
        if is_sticky(e.code) {
            self.lose(&e.to_string());
        }
        self.fault().unwrap_or_else(|| match e.code {
            OUT_OF_MEMORY => Error::new(
                Code::ResourceExhausted,
                format!("GPU {} is out of memory: {e}", self.ordinal),
            ),
            _ => Error::internal(format!("GPU {}: {e}", self.ordinal)),
        })
    }

    /// The error of whatever needs the device, if it is lost.
    pub fn fault(&self) -> Option<Error> {
        self.lost().map(|reason| self.lost_error(reason))
    }

    fn lost_error(&self, reason: &str) -> Error {
        Error::unavailable(format!("GPU {} is lost: {reason}", self.ordinal))
    }
}

// SAFETY: `handle` is a handle of the driver, whose functions may be called on any thread.
unsafe impl Send for CudaContext {}
// SAFETY: the driver accepts calls with one context handle from several threads at once.
unsafe impl Sync for CudaContext {}

/// A thread on which a context is current.
pub struct ContextScope<'a> {
    context: &'a CudaContext,
    pushed: bool,
    /// Not `Send`: the context is popped on the thread that pushed it.
    thread: PhantomData<*mut ()>,
}

impl Drop for ContextScope<'_> {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = null_mut();
            // SAFETY: the context was pushed on this thread.
            let _ = unsafe { self.context.api.context_pop(&mut popped) };
        }
    }
}

/// Removes its watcher from [`CudaContext::on_lost`] when dropped.
#[must_use]
pub struct LostWatch {
    context: &'static CudaContext,
    id: u64,
}

impl Drop for LostWatch {
    fn drop(&mut self) {
        self.context.watchers.lock().retain(|(id, _)| *id != self.id);
    }
}
