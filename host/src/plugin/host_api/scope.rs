//! The host's side of a `trts_scope`: identifies the backend, model version or instance that calls the host, and owns its
//! memory and metrics.

use super::metric::CustomMetrics;
use super::reported_memory::{self, Reporter};
use crate::ledger::{Holder, Owner};
use crate::request::buffer::AlignedBuf;
use crate::sync::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use trtserver_plugin_api::abi::types::{self, Memory};

/// Configuration fields from a backend's auto-complete.
pub struct Patch {
    pub format: u32,
    pub data: Vec<u8>,
}

/// See the module text. Memory and metrics of a scope are freed with it.
pub struct Scope {
    pub reporter: Reporter,
    /// What its memory is entered under in the ledger.
    owner: Owner,
    id: u64,
    pub patch: Mutex<Option<Patch>>,
    pub metrics: CustomMetrics,
}

/// Memory of backends by memory handle, with the id of the owning scope.
static MEMORY: LazyLock<Mutex<HashMap<u64, (u64, AlignedBuf)>>> = LazyLock::new(Mutex::default);
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Scope {
    pub fn of_backend(name: &str) -> Arc<Self> {
        Self::new(format!("backend {name}"), None)
    }

    pub fn of_model(name: &str, version: i64) -> Arc<Self> {
        Self::new(format!("model {name}:{version}"), Some((name.into(), version)))
    }

    /// An instance of the model of scope `model`.
    pub fn of_instance(name: &str, model: &Scope) -> Arc<Self> {
        Self::new(format!("instance {name}"), model.reporter.model.clone())
    }

    fn new(label: String, model: Option<(Arc<str>, i64)>) -> Arc<Self> {
        let of_model = |(name, version): &(Arc<str>, i64)| Owner::version(name, *version);
        Arc::new(Self {
            owner: model.as_ref().map_or(Owner::SERVER, of_model),
            reporter: Reporter { label: label.into(), model },
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            patch: Mutex::new(None),
            metrics: CustomMetrics::default(),
        })
    }

    /// For log lines and errors: `backend onnxruntime`, `model digits:1`, `instance digits_0_cpu`.
    pub fn label(&self) -> &str {
        &self.reporter.label
    }

    /// Replaces what the backend has reported of that memory.
    pub fn report(&self, memory: Memory, bytes: u64) {
        reported_memory::report(self.id, &self.reporter, memory, bytes);
    }

    /// The handle for the backend; valid as long as the scope.
    pub fn handle(self: &Arc<Self>) -> *mut types::Scope {
        Arc::as_ptr(self).cast_mut().cast()
    }

    /// The scope of a handle; `None` for null.
    ///
    /// # Safety
    /// `handle` is null or came from [`Scope::handle`] of a scope that still exists.
    pub unsafe fn from_handle<'a>(handle: *const types::Scope) -> Option<&'a Scope> {
        // SAFETY: by the caller's promise.
        unsafe { handle.cast::<Scope>().as_ref() }
    }

    /// Allocates memory that is freed by [`free`] or with the scope. Returns its address and memory handle; `None` if out of
    /// memory.
    pub fn alloc(&self, bytes: usize) -> Option<(*mut u8, u64)> {
        let mut buf = AlignedBuf::try_new(bytes, self.owner.tag(Holder::Backend))?;
        let ptr = buf.as_mut_ptr();
        let memory_handle = NEXT.fetch_add(1, Ordering::Relaxed);
        memory().insert(memory_handle, (self.id, buf));
        Some((ptr, memory_handle))
    }
}

/// Frees memory of [`Scope::alloc`]; false for an unknown handle.
pub fn free(memory_handle: u64) -> bool {
    memory().remove(&memory_handle).is_some()
}

impl Drop for Scope {
    fn drop(&mut self) {
        memory().retain(|_, (owner, _)| *owner != self.id);
        for left in reported_memory::remove(self.id) {
            let (label, memory) = (self.label(), reported_memory::name_of(left.memory));
            tracing::warn!("{label} is closed and still reports {} bytes of {memory}", left.bytes);
        }
    }
}

fn memory() -> crate::sync::MutexGuard<'static, HashMap<u64, (u64, AlignedBuf)>> {
    MEMORY.lock()
}
