//! Extension tables: optional functions of a host or a backend, asked for by name and version.
//!
//! A table of one name grows only at its end; each addition raises its version. `get_extension(name, v)`
//! returns a table of version v or later, or null. An incompatible change takes a new name. Names that begin
//! with `trts.` are reserved for this crate. A backend that cannot run without an extension lists it in
//! [`BackendInfo::required_extensions`](super::descriptors::BackendInfo::required_extensions).

use super::descriptors::ModelDesc;
use super::types::{
    BackendHandle, Buf, Error, Event, InstanceHandle, Memory, Param, Responder, Scope, Str,
};

/// Name of [`MetricsExtension`], offered by hosts.
pub const METRICS: &str = "trts.metrics";
pub const METRICS_VERSION: u32 = 1;
/// Name of [`MemoryExtension`], offered by hosts.
pub const MEMORY: &str = "trts.memory";
pub const MEMORY_VERSION: u32 = 1;
/// Name of [`AutocompleteExtension`], offered by backends.
pub const AUTOCOMPLETE: &str = "trts.autocomplete";
pub const AUTOCOMPLETE_VERSION: u32 = 1;
/// Name of [`CancelExtension`], offered by backends.
pub const CANCEL: &str = "trts.cancel";
pub const CANCEL_VERSION: u32 = 1;
/// Name of [`ModelProbeExtension`], offered by backends.
pub const MODEL_PROBE: &str = "trts.model_probe";
pub const MODEL_PROBE_VERSION: u32 = 1;

/// A metric. Owned by its scope.
#[repr(C)]
pub struct Metric {
    _private: [u8; 0],
}

/// Kinds of [`MetricsExtension::metric_new`].
pub mod metric_kind {
    pub const COUNTER: u32 = 0;
    pub const GAUGE: u32 = 1;
}

/// Metrics on the server's metrics page.
#[repr(C)]
pub struct MetricsExtension {
    /// sizeof, as the host was built.
    pub size: u64,
    /// Creates a metric with labels of kind STRING. Equal names are one family, and with equal label values one
    /// metric; another kind or other label names for a family are an error while a scope uses it, and so is a
    /// name that begins like those of the server (`nv_inference_`, `nv_gpu_`, `nv_energy_`, `trtserver_`).
    pub metric_new: unsafe extern "C" fn(
        scope: *mut Scope,
        kind: u32,
        name: Str,
        help: Str,
        labels: *const Param,
        n_labels: u32,
        out: *mut *mut Metric,
    ) -> *mut Error,
    /// Adds to a counter (a value not below 0), sets a gauge.
    pub metric_put: unsafe extern "C" fn(metric: *mut Metric, value: f64) -> *mut Error,
    pub metric_get: unsafe extern "C" fn(metric: *const Metric) -> f64,
    /// Takes ownership of the metric. Optional: a scope frees its metrics when it closes.
    pub metric_free: unsafe extern "C" fn(metric: *mut Metric),
}

/// Memory of the host for the backend's own use.
#[repr(C)]
pub struct MemoryExtension {
    /// sizeof, as the host was built.
    pub size: u64,
    /// Allocates memory, owned by the caller until `memory_free` or the close of the scope. May block. `flags`
    /// is 0; `stream` null = ready at once. EXHAUSTED = not now, UNSUPPORTED = never.
    pub memory_alloc: unsafe extern "C" fn(
        scope: *mut Scope,
        memory: Memory,
        bytes: u64,
        align: u64,
        flags: u32,
        stream: *mut u8,
        out: *mut Buf,
    ) -> *mut Error,
    /// Frees the memory of a [`Buf::memory_handle`] once the event is reached.
    pub memory_free: unsafe extern "C" fn(memory_handle: u64, after: *mut Event),
}

/// Completion of model configurations from model files.
#[repr(C)]
pub struct AutocompleteExtension {
    /// sizeof, as the backend was built.
    pub size: u64,
    /// Adds what the configuration omits, with the host's `config_patch`. On a loader thread; may be slow.
    ///
    /// What it stores in `state` (null before the call), the host passes to `model_open` of the same version, as
    /// [`ModelDesc::state`]; so a model that was read here need not be read again there. The host owns the state
    /// after success.
    pub autocomplete: unsafe extern "C" fn(
        backend: *mut BackendHandle,
        desc: *const ModelDesc,
        state: *mut *mut u8,
    ) -> *mut Error,
    /// Takes ownership of a state: called once for each that is not null, after `model_open` has returned, or when
    /// the model is not opened; before `backend_close`. Null = `autocomplete` stores none.
    pub state_free: Option<unsafe extern "C" fn(state: *mut u8)>,
}

/// Notification of cancelled requests, for backends that block where they cannot poll `cancelled`.
#[repr(C)]
pub struct CancelExtension {
    /// sizeof, as the backend was built.
    pub size: u64,
    /// Notifies an instance that a request was cancelled which `execute` has received and which was not
    /// finished when the host checked; it may finish meanwhile, so `responder` serves for comparison only. The
    /// host sets `Request::cancelled` first. Called on a thread of the host, also during `execute`; must not
    /// block. At most once per request. A request cancelled before `execute` received it is not notified. The
    /// instance stays open during the call.
    pub cancel: unsafe extern "C" fn(instance: *mut InstanceHandle, responder: *mut Responder),
}

/// A version directory in which a model is looked for; valid during the call of `model_probe`.
#[repr(C)]
pub struct ProbeDesc {
    pub size: u64,
    /// Name of the model.
    pub name: Str,
    pub version: i64,
    pub version_dir: Str,
    /// One of the backend's platforms, and its default file.
    pub platform: Str,
    pub default_file: Str,
    /// What the directory contains.
    pub entries: *const DirEntry,
    pub n_entries: u32,
    pub pad: u32,
    pub reserved: [u64; 4],
}

/// A file or directory of a version directory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DirEntry {
    pub name: Str,
    /// Not 0: a directory, or a link to one.
    pub is_dir: u32,
    pub pad: u32,
}

/// Result of [`ModelProbeExtension::model_probe`]: the platform's default file decides.
pub const NO_ENTRY: u32 = 2147483647;

/// Recognition of model files, for configurations that leave platform or model file to be detected.
#[repr(C)]
pub struct ModelProbeExtension {
    /// sizeof, as the backend was built.
    pub size: u64,
    /// Checks whether a version directory holds a model of a platform. `found` is [`NO_ENTRY`] before the call; on success
    /// it is the index of the model's file or directory in [`ProbeDesc::entries`], or still [`NO_ENTRY`]. An error says why
    /// there is none; its text goes on after "no model of platform 'P': ".
    ///
    /// The backend need not be open. Looks at names, and at most at the beginnings of files: it must not load the
    /// framework. On any thread, several at once.
    pub model_probe: unsafe extern "C" fn(desc: *const ProbeDesc, found: *mut u32) -> *mut Error,
}
