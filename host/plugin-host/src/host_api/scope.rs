//! The host's side of a `trts_scope`: identifies the backend, model version or instance that calls
//! the host, and owns its memory and metrics.

use super::metric::CustomMetrics;
use super::reported_memory::{self, Reporter};
use crate::host_state::HOST;
use crate::nested::NestedDelivery;
use parking_lot::Mutex;
use prost::Message;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::ledger::{LedgerHolder, LedgerOwner, MemoryTag};
use trtserver_device::{CudaEvent, DeviceMemory, PinnedMemory};
use trtserver_plugin_api::abi::host::patch_format;
use trtserver_plugin_api::abi::types::{self, Memory};
use trtserver_proto::v2::ModelConfig;
use trtserver_request::buffer::AlignedBuf;

/// Configuration fields from a backend's auto-complete.
pub struct Patch {
    pub format: u32,
    pub data: Vec<u8>,
}

impl Patch {
    /// # Errors
    /// The format is unknown, or the data is not a configuration in it.
    pub fn decode(&self) -> Result<ModelConfig, String> {
        let text = || std::str::from_utf8(&self.data).map_err(|e| e.to_string());
        match self.format {
            patch_format::PROTOBUF => {
                ModelConfig::decode(self.data.as_slice()).map_err(|e| e.to_string())
            }
            patch_format::TEXT => trtserver_proto::text::parse(text()?).map_err(|e| e.to_string()),
            patch_format::JSON | patch_format::COMPLETED_JSON => {
                trtserver_proto::json::parse(text()?).map_err(|e| e.to_string())
            }
            format => Err(format!(
                "format {format}, expected protobuf (0), JSON (1), text (2) or completed JSON (3)"
            )),
        }
    }
}

/// The backend, model version or instance that a `trts_scope` handle stands for. Memory and
/// metrics of a scope are freed with it.
pub struct Scope {
    pub reporter: Reporter,
    /// What its memory is entered under in the ledger.
    owner: LedgerOwner,
    id: u64,
    pub patch: Mutex<Option<Patch>>,
    pub metrics: CustomMetrics,
    /// Requests to models of the server.
    pub nested: NestedDelivery,
    /// The load that opens the model or instance.
    load: OnceLock<CancelFlag>,
}

/// Memory of `memory_alloc`.
#[allow(dead_code, reason = "held, not read")]
pub enum BackendMemory {
    Cpu(AlignedBuf),
    Pinned(PinnedMemory),
    Gpu(DeviceMemory),
}

/// The memory of backends.
pub(crate) struct BackendMemories {
    /// By memory handle, with the id of the owning scope.
    kept: Mutex<BTreeMap<u64, (u64, BackendMemory)>>,
    /// Freed memory that a device may still use; looked through by later calls.
    pub freed: Mutex<Vec<(Box<CudaEvent>, BackendMemory)>>,
}

impl BackendMemories {
    pub const fn new() -> Self {
        Self { kept: Mutex::new(BTreeMap::new()), freed: Mutex::new(Vec::new()) }
    }
}

/// An id that no scope has.
pub fn unique_id() -> u64 {
    HOST.next_id.fetch_add(1, Ordering::Relaxed)
}

impl Scope {
    pub fn for_backend(name: &str) -> Arc<Self> {
        Self::new(format!("backend {name}"), None)
    }

    pub fn for_model(name: &str, version: i64) -> Arc<Self> {
        Self::new(format!("model {name}:{version}"), Some((name.into(), version)))
    }

    /// An instance of the model of scope `model`.
    pub fn for_instance(name: &str, model: &Scope) -> Arc<Self> {
        let scope = Self::new(format!("instance {name}"), model.reporter.model.clone());
        model.load.get().into_iter().for_each(|load| scope.belongs_to(load));
        scope
    }

    /// The model of this scope is opened by `load`.
    pub fn belongs_to(&self, load: &CancelFlag) {
        let _ = self.load.set(load.clone());
    }

    /// The load that opened the model, or opens it now.
    pub fn load(&self) -> Option<&CancelFlag> {
        self.load.get()
    }

    fn new(label: String, model: Option<(Arc<str>, i64)>) -> Arc<Self> {
        let of_model = |(name, version): &(Arc<str>, i64)| LedgerOwner::version(name, *version);
        Arc::new(Self {
            owner: model.as_ref().map_or(LedgerOwner::SERVER, of_model),
            reporter: Reporter { label: label.into(), model },
            id: HOST.next_id.fetch_add(1, Ordering::Relaxed),
            patch: Mutex::new(None),
            metrics: CustomMetrics::default(),
            nested: NestedDelivery::default(),
            load: OnceLock::new(),
        })
    }

    /// For log lines and errors: `backend onnxruntime`, `model digits:1`, `instance digits_0_cpu`.
    pub fn label(&self) -> &str {
        &self.reporter.label
    }

    /// Replaces what the backend has reported of that memory.
    pub fn report(&self, memory: Memory, bytes: u64) {
        reported_memory::report_memory(self.id, &self.reporter, memory, bytes);
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

    /// What its memory is entered under in the ledger.
    pub fn tag(&self) -> MemoryTag {
        self.owner.tag(LedgerHolder::Backend)
    }

    /// Keeps memory until [`take_memory`] or the end of the scope. Returns its memory handle.
    pub fn keep(&self, block: BackendMemory) -> u64 {
        let memory_handle = HOST.next_id.fetch_add(1, Ordering::Relaxed);
        memory().insert(memory_handle, (self.id, block));
        memory_handle
    }
}

/// Memory of [`Scope::keep`]; `None` for an unknown handle.
pub fn take_memory(memory_handle: u64) -> Option<BackendMemory> {
    memory().remove(&memory_handle).map(|(_, block)| block)
}

impl Drop for Scope {
    fn drop(&mut self) {
        // Freed without the lock: freeing GPU memory calls the driver.
        let freed: Vec<_> = memory().extract_if(.., |_, (owner, _)| *owner == self.id).collect();
        drop(freed);
        for left in reported_memory::remove_reports(self.id) {
            let (label, memory) = (self.label(), reported_memory::memory_name(left.memory));
            tracing::warn!("{label} is closed and still reports {} bytes of {memory}", left.bytes);
        }
    }
}

fn memory() -> parking_lot::MutexGuard<'static, BTreeMap<u64, (u64, BackendMemory)>> {
    HOST.memory.kept.lock()
}
