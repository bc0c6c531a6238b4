//! Who speaks: the host's side of a `trts_scope`, one per backend, model version and instance.

use super::metric::CustomMetrics;
use crate::request::buffer::AlignedBuf;
use crate::sync::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use trtserver_plugin_api::abi::types;

/// A part of a configuration that a plugin found out.
pub struct Patch {
    pub format: u32,
    pub data: Vec<u8>,
}

/// See the module text. What a plugin made under a scope goes when the scope goes.
pub struct Scope {
    /// For log lines and errors: `backend onnxruntime`, `model digits:1`, `instance digits_0_cpu`.
    pub label: String,
    id: u64,
    pub patch: Mutex<Option<Patch>>,
    pub metrics: CustomMetrics,
}

/// Memory that plugins hold, by lease, with the scope that pays for it.
static LEASES: LazyLock<Mutex<HashMap<u64, (u64, AlignedBuf)>>> = LazyLock::new(Mutex::default);
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Scope {
    pub fn new(label: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            label: label.into(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            patch: Mutex::new(None),
            metrics: CustomMetrics::default(),
        })
    }

    /// The handle that a plugin gets; valid while the scope lives.
    pub fn handle(self: &Arc<Self>) -> *mut types::Scope {
        Arc::as_ptr(self).cast_mut().cast()
    }

    /// What a handle stands for; `None` for null.
    ///
    /// # Safety
    /// `handle` is null or came from [`Scope::handle`] of a scope that still lives.
    pub unsafe fn from_handle<'a>(handle: *const types::Scope) -> Option<&'a Scope> {
        // SAFETY: by the caller's promise.
        unsafe { handle.cast::<Scope>().as_ref() }
    }

    /// Memory for the plugin, until it is freed or the scope ends; `None` when there is not so much.
    pub fn alloc(&self, bytes: usize) -> Option<(*mut u8, u64)> {
        let mut buf = AlignedBuf::try_new(bytes)?;
        let ptr = buf.as_mut_ptr();
        let lease = NEXT.fetch_add(1, Ordering::Relaxed);
        leases().insert(lease, (self.id, buf));
        Some((ptr, lease))
    }
}

/// Frees what [`Scope::alloc`] gave; false for a lease that is not there.
pub fn free(lease: u64) -> bool {
    leases().remove(&lease).is_some()
}

impl Drop for Scope {
    fn drop(&mut self) {
        leases().retain(|_, (owner, _)| *owner != self.id);
    }
}

fn leases() -> crate::sync::MutexGuard<'static, HashMap<u64, (u64, AlignedBuf)>> {
    LEASES.lock()
}
