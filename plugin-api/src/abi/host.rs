//! The host's table: everything a plugin may ask of the host.
//!
//! Unless said otherwise a call may come from any thread, returns null on success or an error that
//! the plugin frees, and borrows what it is given for the duration of the call only. An entry that
//! is null is not offered by this host; the layout is fixed so that filling one in later breaks nobody.

use super::call::Batch;
use super::types::{
    Buf, Error, Event, Infer, Metric, Param, Place, Reply, Request, Response, Scope, Str,
};
use abi_stable::StableAbi;

/// Called by the host exactly once, on any thread, when it no longer needs donated memory.
/// Null = nobody needs to know. In C a plain function pointer, `void (*)(void *ctx)`.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct Release {
    pub func: Option<unsafe extern "C" fn(ctx: *mut u8)>,
}

/// Called by the host when a nested call is over. In C a plain function pointer.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct InferDone {
    pub func: unsafe extern "C" fn(ctx: *mut u8, infer: *mut Infer),
}

/// Bits for [`HostTable::response_send`].
pub mod send_flags {
    /// No further response follows for this reply.
    pub const LAST: u32 = 1;
}

/// Modes for [`HostTable::gather`].
pub mod gather_mode {
    /// The rows of all calls, one after another.
    pub const ROWS: u32 = 0;
}

/// Formats for [`HostTable::config_patch`].
pub mod patch_format {
    /// A serialized `ModelConfig` that holds only what is to be added.
    pub const PROTOBUF: u32 = 0;
    pub const JSON: u32 = 1;
    /// Protobuf text, as in `config.pbtxt`.
    pub const TEXT: u32 = 2;
}

/// Kinds for [`HostTable::metric_new`].
pub mod metric_kind {
    pub const COUNTER: u32 = 0;
    pub const GAUGE: u32 = 1;
}

/// Bits of [`HostTable1_1::flags`].
pub mod host_flags {
    /// The host's process runs this plugin's model and nothing else, and a server that outlives it starts another one
    /// should it end.
    pub const ISOLATED: u32 = 1;
}

/// The table of hosts since 1.1; plugins get its address as that of its first part. In C it is one struct.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostTable1_1 {
    /// Its `size` counts all of this.
    pub first: HostTable,
    /// Bits of [`host_flags`].
    pub flags: u32,
    pub pad: u32,
}

/// See the module text for the rules common to all entries.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostTable {
    /// sizeof, as the host knows it.
    pub size: u64,
    pub abi_major: u32,
    pub abi_minor: u32,
    /// Name and version of the host, for logs.
    pub name: Str,
    pub version: Str,

    // -- errors -----------------------------------------------------------------------------------
    /// Makes an error; code of `types::code`, flags of `types::error_flags`; the text is copied.
    pub error_new: unsafe extern "C" fn(code: u32, flags: u32, text: Str) -> *mut Error,
    pub error_code: unsafe extern "C" fn(error: *const Error) -> u32,
    /// Text of the error; lives as long as the error.
    pub error_text: unsafe extern "C" fn(error: *const Error) -> Str,
    /// Null is allowed.
    pub error_free: unsafe extern "C" fn(error: *mut Error),

    // -- log and time -----------------------------------------------------------------------------
    /// Address of the highest level wanted; read it atomically, it lives for ever.
    pub log_level: unsafe extern "C" fn(scope: *const Scope) -> *const u32,
    pub log: unsafe extern "C" fn(scope: *const Scope, level: u32, file: Str, line: u32, text: Str),
    /// CLOCK_MONOTONIC nanoseconds.
    pub now_ns: unsafe extern "C" fn() -> u64,

    // -- model files and loading ------------------------------------------------------------------
    /// Inside `model_complete`: the part of the configuration that the plugin found out. Copied.
    pub config_patch:
        unsafe extern "C" fn(scope: *mut Scope, format: u32, p: *const u8, n: u64) -> *mut Error,
    pub file_map:
        Option<unsafe extern "C" fn(scope: *mut Scope, path: Str, out: *mut Buf) -> *mut Error>,
    pub file_unmap: Option<unsafe extern "C" fn(lease: u64)>,
    /// Reports how far a load has come (0 to 1000); non-zero back = the load was given up.
    pub progress: unsafe extern "C" fn(scope: *mut Scope, stage: Str, permille: u32) -> u32,

    // -- memory -----------------------------------------------------------------------------------
    /// Memory for the plugin's own use, owned by the host and freed with the scope at the latest.
    /// `stream` null = ready at once; `flags` 0. Blocks. EXHAUSTED = not now, UNSUPPORTED = never.
    pub mem_alloc: unsafe extern "C" fn(
        scope: *mut Scope,
        place: Place,
        bytes: u64,
        align: u64,
        flags: u32,
        stream: *mut u8,
        out: *mut Buf,
    ) -> *mut Error,
    pub mem_free: unsafe extern "C" fn(lease: u64, after: *mut Event),
    pub mem_export: Option<unsafe extern "C" fn(lease: u64, how: u32, out: *mut u8) -> *mut Error>,
    pub mem_budget: Option<unsafe extern "C" fn(scope: *mut Scope, place: Place) -> u64>,
    pub mem_report: Option<unsafe extern "C" fn(scope: *mut Scope, place: Place, bytes: u64)>,

    // -- points in streams (GPU) ------------------------------------------------------------------
    pub event_record: Option<
        unsafe extern "C" fn(
            scope: *mut Scope,
            stream: *mut u8,
            out: *mut *mut Event,
        ) -> *mut Error,
    >,
    pub event_wait: Option<unsafe extern "C" fn(event: *mut Event, stream: *mut u8) -> *mut Error>,
    pub event_done: Option<unsafe extern "C" fn(event: *mut Event) -> u32>,
    pub event_free: Option<unsafe extern "C" fn(event: *mut Event)>,
    pub copy: Option<
        unsafe extern "C" fn(dst: *const Buf, src: *const Buf, stream: *mut u8) -> *mut Error,
    >,
    pub device_fault: Option<unsafe extern "C" fn(device: i32, code: i32) -> u32>,

    // -- inputs -----------------------------------------------------------------------------------
    /// An input of all calls of a batch as one block along dimension 0: the rows of the calls in the
    /// batch's order, strings one after another. Only while the batch's `execute` runs and before a
    /// request of it was released; the block is read-only and the host's until the last release. Nothing
    /// is copied for a single call or where the parts already follow each other in memory; a copy begins
    /// on 64 bytes.
    ///
    /// `input` is the position in the calls' `inputs`, which all calls of a batch have in the same order;
    /// `mode` one of [`gather_mode`]; `stream` null. INVALID, naming the input, when shapes differ beyond
    /// dimension 0, or when there are several calls and no batch dimension. The same input twice is the
    /// same block.
    pub gather: Option<
        unsafe extern "C" fn(
            batch: *const Batch,
            input: u32,
            place: Place,
            mode: u32,
            stream: *mut u8,
            out: *mut Buf,
        ) -> *mut Error,
    >,
    /// Gives a request back: its view and inputs must not be touched once `after` is reached (null = now).
    pub request_release: unsafe extern "C" fn(request: *mut Request, after: *mut Event),
    pub request_requeue: Option<unsafe extern "C" fn(request: *mut Request) -> *mut Error>,

    // -- answers ----------------------------------------------------------------------------------
    pub reply_retain: unsafe extern "C" fn(reply: *mut Reply),
    pub reply_release: unsafe extern "C" fn(reply: *mut Reply),
    /// Begins a response. Finish it (send or drop) before beginning the next one of the same reply.
    pub response_new:
        unsafe extern "C" fn(reply: *mut Reply, out: *mut *mut Response) -> *mut Error,
    pub response_drop: unsafe extern "C" fn(response: *mut Response),
    pub output_query: Option<
        unsafe extern "C" fn(
            reply: *mut Reply,
            name: Str,
            bytes: u64,
            out: *mut Place,
        ) -> *mut Error,
    >,
    /// Host memory for an output: what the plugin writes there goes on the wire as it is.
    /// `shape` has the batch dimension first when the model batches. The buffer (64-byte aligned) is
    /// valid until the response is sent or dropped. For an output nobody asked for `out` is null memory of 0 bytes.
    pub output_alloc: unsafe extern "C" fn(
        response: *mut Response,
        name: Str,
        dtype: u32,
        rank: u32,
        shape: *const i64,
        bytes: u64,
        wish: Place,
        out: *mut Buf,
    ) -> *mut Error,
    /// Donates plugin memory as an output, without a copy. The host calls `release(ctx)` exactly once
    /// on any thread, also when this call fails or nobody asked for the output, and perhaps after the
    /// model or the plugin was closed.
    pub output_adopt: unsafe extern "C" fn(
        response: *mut Response,
        name: Str,
        dtype: u32,
        rank: u32,
        shape: *const i64,
        parts: *const Buf,
        n_parts: u32,
        release: Release,
        ctx: *mut u8,
    ) -> *mut Error,
    pub response_param:
        unsafe extern "C" fn(response: *mut Response, param: *const Param) -> *mut Error,
    /// Sends and frees the response. With an error the caller gets the error instead of the outputs;
    /// the error stays the sender's. Flags of [`send_flags`]. Never runs user code on this thread.
    pub response_send: unsafe extern "C" fn(
        response: *mut Response,
        flags: u32,
        error: *const Error,
        after: *mut Event,
    ) -> *mut Error,
    /// Ends a reply without another response: with an error, or (null) as the end of a stream.
    pub reply_end: unsafe extern "C" fn(reply: *mut Reply, error: *const Error) -> *mut Error,
    /// Host memory for an output (or state) of all calls of a batch. `shape` is that of the whole: first
    /// the rows of all calls together, [`Batch::rows`], also of those that have failed meanwhile. What the
    /// plugin writes there until [`HostTable::batch_send`] goes on the wire as it is, each call's rows by
    /// reference; 64-byte aligned, zeroed. Null memory of 0 bytes when no call wants it.
    ///
    /// Only while the batch's `execute` runs. Each output once for a batch, and not while a response of
    /// one of its calls is being built. A model without batch dimension has one call in a batch, whose
    /// whole output this then is.
    pub scatter_alloc: Option<
        unsafe extern "C" fn(
            batch: *const Batch,
            name: Str,
            dtype: u32,
            rank: u32,
            shape: *const i64,
            bytes: u64,
            wish: Place,
            out: *mut Buf,
        ) -> *mut Error,
    >,
    /// The same with donated memory, without a copy. The host calls `release(ctx)` exactly once on any
    /// thread when the last call's rows are no longer needed, at once when nobody wants them, also when
    /// this call fails, and perhaps after the model or the plugin was closed.
    pub scatter_adopt: Option<
        unsafe extern "C" fn(
            batch: *const Batch,
            name: Str,
            dtype: u32,
            rank: u32,
            shape: *const i64,
            buf: *const Buf,
            release: Release,
            ctx: *mut u8,
        ) -> *mut Error,
    >,
    /// Only while the batch's `execute` runs. Ends everything of it that is still open and not
    /// retained, and releases the requests. With an error every such reply gets it, and what was scattered
    /// is dropped. With null each gets its rows of the scattered outputs that it wants as its last
    /// response; if nothing was scattered, or its request was released or a response begun before, an error
    /// that names the plugin's omission. Scattered memory must not be written any more.
    pub batch_send: unsafe extern "C" fn(
        batch: *const Batch,
        error: *const Error,
        after: *mut Event,
    ) -> *mut Error,

    // -- sequence state ---------------------------------------------------------------------------
    pub state_alloc: Option<
        unsafe extern "C" fn(
            reply: *mut Reply,
            name: Str,
            dtype: u32,
            rank: u32,
            shape: *const i64,
            bytes: u64,
            wish: Place,
            out: *mut Buf,
        ) -> *mut Error,
    >,
    pub state_commit: Option<unsafe extern "C" fn(reply: *mut Reply, name: Str) -> *mut Error>,

    // -- reports and traces -----------------------------------------------------------------------
    pub report_request: Option<
        unsafe extern "C" fn(request: *mut Request, ok: u32, times: *const u64) -> *mut Error,
    >,
    pub report_batch:
        Option<unsafe extern "C" fn(batch: *const Batch, times: *const u64) -> *mut Error>,
    pub report_response: Option<
        unsafe extern "C" fn(reply: *mut Reply, index: u32, times: *const u64) -> *mut Error,
    >,
    pub trace_mark: Option<unsafe extern "C" fn(reply: *mut Reply, name: Str, at_ns: u64)>,
    pub trace_context: Option<unsafe extern "C" fn(reply: *mut Reply) -> Str>,

    // -- metrics ----------------------------------------------------------------------------------
    /// A metric of the scope, with labels of kind STRING. Kinds of [`metric_kind`]. The same name
    /// twice is the same family, with the same label values the same metric; a different kind or other
    /// label names for it are an error.
    pub metric_new: unsafe extern "C" fn(
        scope: *mut Scope,
        kind: u32,
        name: Str,
        help: Str,
        labels: *const Param,
        n_labels: u32,
        out: *mut *mut Metric,
    ) -> *mut Error,
    /// Adds to a counter (`value` ≥ 0), sets a gauge.
    pub metric_put: unsafe extern "C" fn(metric: *mut Metric, value: f64) -> *mut Error,
    pub metric_get: unsafe extern "C" fn(metric: *const Metric) -> f64,
    /// Optional: metrics go with their scope.
    pub metric_free: unsafe extern "C" fn(metric: *mut Metric),

    // -- nested calls -----------------------------------------------------------------------------
    pub infer_new: Option<
        unsafe extern "C" fn(
            parent: *mut Reply,
            model: Str,
            version: i64,
            out: *mut *mut Infer,
        ) -> *mut Error,
    >,
    pub infer_input: Option<
        unsafe extern "C" fn(
            infer: *mut Infer,
            name: Str,
            dtype: u32,
            rank: u32,
            shape: *const i64,
            parts: *const Buf,
            n_parts: u32,
        ) -> *mut Error,
    >,
    pub infer_want: Option<unsafe extern "C" fn(infer: *mut Infer, name: Str) -> *mut Error>,
    pub infer_param:
        Option<unsafe extern "C" fn(infer: *mut Infer, param: *const Param) -> *mut Error>,
    pub infer_start: Option<
        unsafe extern "C" fn(infer: *mut Infer, done: InferDone, ctx: *mut u8) -> *mut Error,
    >,
    pub infer_free: Option<unsafe extern "C" fn(infer: *mut Infer)>,
    pub model_query:
        Option<unsafe extern "C" fn(scope: *mut Scope, model: Str, version: i64) -> u32>,
    pub model_control:
        Option<unsafe extern "C" fn(scope: *mut Scope, model: Str, load: u32) -> *mut Error>,
}
