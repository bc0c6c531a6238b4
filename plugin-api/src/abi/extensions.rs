//! Extension tables: optional functions of a host or a backend, asked for by name and version.
//!
//! A table of one name grows only at its end; each addition raises its version.
//! `get_extension(name, v)` returns a table of version v or later, or null. An incompatible change
//! takes a new name. Names that begin with `trts.` are reserved for this crate. A backend that
//! cannot run without an extension lists it in
//! [`BackendInfo::required_extensions`](super::descriptors::BackendInfo::required_extensions).

use super::descriptors::ModelDesc;
use super::request::Batch;
use super::types::{
    BackendHandle, Buf, Error, Event, InstanceHandle, Memory, Param, Responder, Scope, Str,
};

/// Name of [`MetricsExtension`], offered by hosts.
pub const METRICS: &str = "trts.metrics";
/// Its newest version.
pub const METRICS_VERSION: u32 = 2;
/// Name of [`HistogramsExtension`], offered by hosts.
pub const HISTOGRAMS: &str = "trts.histograms";
/// Its newest version.
pub const HISTOGRAMS_VERSION: u32 = 1;
/// Name of [`BatchPartsExtension`], offered by hosts.
pub const BATCH_PARTS: &str = "trts.batch_parts";
/// Its newest version.
pub const BATCH_PARTS_VERSION: u32 = 1;
/// Name of [`ProcessExtension`], offered by hosts.
pub const PROCESS: &str = "trts.process";
/// Its newest version.
pub const PROCESS_VERSION: u32 = 1;
/// Name of [`TraceExtension`], offered by hosts.
pub const TRACE: &str = "trts.trace";
/// Its newest version.
pub const TRACE_VERSION: u32 = 1;
/// Name of [`MemoryExtension`], offered by hosts.
pub const MEMORY: &str = "trts.memory";
/// Its newest version.
pub const MEMORY_VERSION: u32 = 1;
/// Name of [`DeviceExtension`], offered by hosts that have found a CUDA driver and a device.
pub const DEVICE: &str = "trts.device";
/// Its newest version.
pub const DEVICE_VERSION: u32 = 1;
/// Name of [`AutocompleteExtension`], offered by backends.
pub const AUTOCOMPLETE: &str = "trts.autocomplete";
/// Its newest version.
pub const AUTOCOMPLETE_VERSION: u32 = 1;
/// Name of [`CancelExtension`], offered by backends.
pub const CANCEL: &str = "trts.cancel";
/// Its newest version.
pub const CANCEL_VERSION: u32 = 1;
/// Name of [`ModelProbeExtension`], offered by backends.
pub const MODEL_PROBE: &str = "trts.model_probe";
/// Its newest version.
pub const MODEL_PROBE_VERSION: u32 = 1;

/// Name of [`BatchSizesExtension`], offered by backends.
pub const BATCH_SIZES: &str = "trts.batch_sizes";
/// Its newest version.
pub const BATCH_SIZES_VERSION: u32 = 1;

/// A metric. Owned by its scope.
#[repr(C)]
pub struct Metric {
    _private: [u8; 0],
}

/// Kinds of metrics.
pub mod metric_kind {
    /// A value that only rises.
    pub const COUNTER: u32 = 0;
    /// A value that is set.
    pub const GAUGE: u32 = 1;
    /// Made by [`histogram_new`](super::HistogramsExtension::histogram_new) only.
    pub const HISTOGRAM: u32 = 2;
}

/// Metrics on the server's metrics page.
#[repr(C)]
pub struct MetricsExtension {
    /// sizeof, as the host was built.
    pub size: u64,
    /// Creates a metric with labels of kind STRING. Equal names are one family, and with equal
    /// label values one metric; another kind or other label names for a family are an error while a
    /// scope uses it, and so is a name that begins like those of the server (`nv_inference_`,
    /// `nv_gpu_`, `nv_energy_`, `trtserver_`).
    pub metric_new: unsafe extern "C" fn(
        scope: *mut Scope,
        kind: u32,
        name: Str,
        help: Str,
        labels: *const Param,
        n_labels: u32,
        out: *mut *mut Metric,
    ) -> *mut Error,
    /// Adds to a counter (a value not below 0), sets a gauge, adds an observation to a histogram.
    pub metric_put: unsafe extern "C" fn(metric: *mut Metric, value: f64) -> *mut Error,
    /// The value; of a histogram the sum of its observations.
    pub metric_get: unsafe extern "C" fn(metric: *const Metric) -> f64,
    /// Gives up a handle. With the last one of a scope the metric leaves the page, unless another
    /// scope has it. Optional: a scope frees its metrics when it closes.
    pub metric_free: unsafe extern "C" fn(metric: *mut Metric),
    /// Since version 2. Adds to a counter (a value not below 0) or a gauge (any value). Of several
    /// threads, or of several scopes with the same metric, no addition is lost.
    pub metric_add: unsafe extern "C" fn(metric: *mut Metric, value: f64) -> *mut Error,
}

/// Histograms on the server's metrics page. Beside this one, the entries of [`MetricsExtension`]
/// take them.
#[repr(C)]
pub struct HistogramsExtension {
    /// sizeof, as the host was built.
    pub size: u64,
    /// Creates a histogram, as `metric_new` does; `bounds` are the upper bounds of its buckets,
    /// ascending, without the infinite one. All histograms of a family have the same bounds.
    pub histogram_new: unsafe extern "C" fn(
        scope: *mut Scope,
        name: Str,
        help: Str,
        labels: *const Param,
        n_labels: u32,
        bounds: *const f64,
        n_bounds: u32,
        out: *mut *mut Metric,
    ) -> *mut Error,
}

/// For backends that execute fewer requests at once than the host put into a batch, by a rule of
/// their own.
#[repr(C)]
pub struct BatchPartsExtension {
    /// sizeof, as the host was built.
    pub size: u64,
    /// The calling thread, in `execute`, executes the `n` requests from position `first` on as a
    /// part of the batch, which the statistics count as an execution: its time begins now, and the
    /// times of the batch, which become 0, are those of the part. Called before the first response
    /// to one of them. Parts do not overlap. `gather`, the scatter entries and `batch_finish`
    /// concern the whole batch.
    pub begin: unsafe extern "C" fn(batch: *mut Batch, first: u32, n: u32) -> *mut Error,
}

/// The process of an isolated model.
#[repr(C)]
pub struct ProcessExtension {
    /// sizeof, as the host was built.
    pub size: u64,
    /// The instance of this scope cannot go on, for this reason, and only another process helps.
    /// This one takes no further batches. It ends when no other instance executes, and what it has
    /// not taken goes to the next one; requests that the instance has not answered fail. Null: the
    /// process ends at once. UNSUPPORTED in the server's own process. On any thread; returns at
    /// once.
    pub restart: unsafe extern "C" fn(instance: *mut Scope, reason: Str) -> *mut Error,
}

/// Traces of requests. The flag [`TRACED`](super::request::request_flags::TRACED) says which
/// requests have one.
#[repr(C)]
pub struct TraceExtension {
    /// sizeof, as the host was built.
    pub size: u64,
    /// Adds a point in time to the trace of a request: it is in the trace file and in the span of
    /// the model under this name. Before the final response. No effect on a request without a
    /// trace; names are cut, and too many of them dropped. On any thread; returns at once.
    pub activity:
        unsafe extern "C" fn(responder: *mut Responder, name: Str, at_ns: u64) -> *mut Error,
    /// Writes the context of a request, for what the backend does elsewhere on its behalf. UNSUPPORTED
    /// for a request without a trace.
    pub context:
        unsafe extern "C" fn(responder: *mut Responder, out: *mut TraceContext) -> *mut Error,
}

/// A W3C trace context. The state is valid as long as the responder.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TraceContext {
    /// Of all spans of the trace.
    pub trace_id: [u8; 16],
    /// The span of the model.
    pub span_id: [u8; 8],
    /// Not 0: the span is recorded.
    pub sampled: u32,
    /// Zero.
    pub pad: u32,
    /// `tracestate`, as the client sent it.
    pub state: Str,
}

/// Memory of the host for the backend's own use, and reports of memory that the backend allocates
/// by itself.
#[repr(C)]
pub struct MemoryExtension {
    /// sizeof, as the host was built.
    pub size: u64,
    /// Allocates memory, owned by the caller until `memory_free` or the close of the scope. May
    /// block. CPU memory is offered by every host and zeroed; pinned and GPU memory by hosts with
    /// [`DEVICE`], with arbitrary contents. `align` is 0 or a power of two, up to 64 (GPU memory:
    /// 256); `flags` is 0. `stream` is null, or for GPU memory the CUDA stream on which it is first
    /// used: the memory may belong to earlier work of that stream. EXHAUSTED = not now, UNSUPPORTED
    /// = never.
    pub memory_alloc: unsafe extern "C" fn(
        scope: *mut Scope,
        memory: Memory,
        bytes: u64,
        align: u64,
        flags: u32,
        stream: *mut u8,
        out: *mut Buf,
    ) -> *mut Error,
    /// Frees the memory of a [`Buf::memory_handle`] once the event is reached; takes ownership of
    /// the event. Null = nothing uses the memory any more.
    pub memory_free: unsafe extern "C" fn(memory_handle: u64, after: *mut Event),
    /// Reports how many bytes of a memory type and device the backend holds for this scope beside
    /// memory of the host, such as a framework's own allocations. Replaces the scope's former
    /// report of that type and device. Reports of a scope end with it; bytes that are not 0 by then
    /// are logged.
    pub memory_report:
        unsafe extern "C" fn(scope: *mut Scope, memory: Memory, bytes: u64) -> *mut Error,
}

/// Results of [`DeviceExtension::device_fault`].
pub mod device_verdict {
    /// The device works: only the caller is affected.
    pub const WORKS: u32 = 0;
    /// No instance on the device executes any more.
    pub const LOST: u32 = 1;
}

/// GPUs: events, copies, faults. Streams are CUDA driver handles (`CUstream`) of the primary
/// context of a device: those of an `InstanceDesc`, or the backend's own. An event is a point in
/// the work of a stream.
///
/// Rules for memory of the host on a GPU instance. *Ready*: work submitted to the instance's
/// `cu_stream` may use inputs, gathered blocks and outputs at once; work on any other stream waits
/// for [`Buf::ready`] first, which is null when there is nothing to wait for. With `OWN_STREAM` the
/// host submits nothing to `cu_stream`, so every use waits for `ready`. *After*: a function that
/// takes an event as `after` reads outputs, or reuses inputs and memory, once that event is
/// reached. Null = once all work is done that was submitted to `cu_stream` before the call; with
/// `OWN_STREAM`, and on a CPU instance: at once.
#[repr(C)]
pub struct DeviceExtension {
    /// sizeof, as the host was built.
    pub size: u64,
    /// Creates an event of a device, owned by the caller until `event_destroy` or a function that
    /// takes ownership. Until it is recorded it counts as reached.
    pub event_new:
        unsafe extern "C" fn(scope: *mut Scope, device_id: i32, out: *mut *mut Event) -> *mut Error,
    /// Moves the event to the end of what was submitted to the stream so far.
    pub event_record: unsafe extern "C" fn(event: *mut Event, stream: *mut u8) -> *mut Error,
    /// Makes later work of the stream, of any device, wait for the event. Does not block the
    /// calling thread.
    pub event_wait: unsafe extern "C" fn(event: *const Event, stream: *mut u8) -> *mut Error,
    /// Writes whether the event is reached (not 0). Does not block.
    pub event_query: unsafe extern "C" fn(event: *const Event, reached: *mut u32) -> *mut Error,
    /// Takes ownership of the event, reached or not; null is allowed.
    pub event_destroy: unsafe extern "C" fn(event: *mut Event),
    /// Copies bytes between any two memories, in the order of the stream. Both must stay valid
    /// until the copy is done. Null stream: returns when the copy is done.
    pub copy: unsafe extern "C" fn(
        to: *mut u8,
        to_memory: Memory,
        from: *const u8,
        from_memory: Memory,
        bytes: u64,
        stream: *mut u8,
    ) -> *mut Error,
    /// Reports an error of a device that its context may not survive, such as an illegal address;
    /// `reason` is for the log. The host asks the driver: with LOST no instance on the device
    /// executes any more, and their requests fail with DEVICE_LOST; with WORKS only the caller is
    /// affected, and fails its requests by itself. `verdict` is one of [`device_verdict`].
    pub device_fault: unsafe extern "C" fn(
        scope: *mut Scope,
        device_id: i32,
        reason: Str,
        verdict: *mut u32,
    ) -> *mut Error,
}

/// Completion of model configurations from model files.
#[repr(C)]
pub struct AutocompleteExtension {
    /// sizeof, as the backend was built.
    pub size: u64,
    /// Adds what the configuration omits, with the host's `config_patch`. On a loader thread; may
    /// be slow.
    ///
    /// What it stores in `state` (null before the call), the host passes to `model_open` of the
    /// same version, as [`ModelDesc::state`]; so a model that was read here need not be read again
    /// there. The host owns the state after success.
    pub autocomplete: unsafe extern "C" fn(
        backend: *mut BackendHandle,
        desc: *const ModelDesc,
        state: *mut *mut u8,
    ) -> *mut Error,
    /// Takes ownership of a state: called once for each that is not null, after `model_open` has
    /// returned, or when the model is not opened; before `backend_close`. Null = `autocomplete`
    /// stores none.
    pub state_free: Option<unsafe extern "C" fn(state: *mut u8)>,
}

/// Notification of cancelled requests, for backends that block where they cannot poll `cancelled`.
#[repr(C)]
pub struct CancelExtension {
    /// sizeof, as the backend was built.
    pub size: u64,
    /// Notifies an instance that a request was cancelled which `execute` has received and which was
    /// not finished when the host checked; it may finish meanwhile, so `responder` serves for
    /// comparison only. The host sets `Request::cancelled` first. Called on a thread of the host,
    /// also during `execute`; must not block. At most once per request. A request cancelled before
    /// `execute` received it is not notified. The instance stays open during the call.
    pub cancel: unsafe extern "C" fn(instance: *mut InstanceHandle, responder: *mut Responder),
}

/// A number of rows that an instance is prepared for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize {
    /// The number.
    pub rows: u32,
    /// Zero.
    pub pad: u32,
    /// How long a run with that many rows takes, in nanoseconds; 0 = unknown.
    pub run_ns: u64,
}

/// Sizes of batches that an instance is prepared for, where other sizes cost as much as the next
/// larger one, because the backend pads. The host forms batches with regard to them.
#[repr(C)]
pub struct BatchSizesExtension {
    /// sizeof, as the backend was built.
    pub size: u64,
    /// Returns the sizes of an instance, from 1 to `max_rows` of its descriptor and ascending, and
    /// writes their number. 0 = there are none: every number of rows costs what it costs. Called
    /// once after `instance_open`, on the instance's thread; the list is valid until
    /// `instance_close`. The host may give the instance batches of any size all the same.
    pub batch_sizes:
        unsafe extern "C" fn(instance: *mut InstanceHandle, n: *mut u32) -> *const BatchSize,
}

/// A version directory in which a model is looked for; valid during the call of `model_probe`.
#[repr(C)]
pub struct ProbeDesc {
    /// `sizeof`, as its maker was built.
    pub size: u64,
    /// Name of the model.
    pub name: Str,
    /// Number of the version.
    pub version: i64,
    /// Path of the directory.
    pub version_dir: Str,
    /// One of the backend's platforms, and its default file.
    pub platform: Str,
    /// Of that platform.
    pub default_file: Str,
    /// What the directory contains.
    pub entries: *const DirEntry,
    /// Number of `entries`.
    pub n_entries: u32,
    /// Zero.
    pub pad: u32,
    /// Zeros.
    pub reserved: [u64; 4],
}

/// A file or directory of a version directory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DirEntry {
    /// Without directories.
    pub name: Str,
    /// Not 0: a directory, or a link to one.
    pub is_dir: u32,
    /// Zero.
    pub pad: u32,
}

/// Result of [`ModelProbeExtension::model_probe`]: the platform's default file decides.
pub const NO_ENTRY: u32 = 2147483647;

/// Recognition of model files, for configurations that leave platform or model file to be detected.
#[repr(C)]
pub struct ModelProbeExtension {
    /// sizeof, as the backend was built.
    pub size: u64,
    /// Checks whether a version directory holds a model of a platform. `found` is [`NO_ENTRY`]
    /// before the call; on success it is the index of the model's file or directory in
    /// [`ProbeDesc::entries`], or still [`NO_ENTRY`]. An error says why there is none; its text
    /// goes on after "no model of platform 'P': ".
    ///
    /// The backend need not be open. Looks at names, and at most at the beginnings of files: it
    /// must not load the framework. On any thread, several at once.
    pub model_probe: unsafe extern "C" fn(desc: *const ProbeDesc, found: *mut u32) -> *mut Error,
}
