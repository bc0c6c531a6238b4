//! The host table: functions that the host offers to backends.
//!
//! Unless an entry says otherwise it may be called from any thread, returns null on success or an
//! error that the caller frees, and borrows its arguments for the duration of the call. All entries
//! are present; what only some hosts offer is in [`super::extensions`].

use super::request::Batch;
use super::types::{
    Backlog, Buf, Error, Event, Extension, Memory, Param, RequestHandle, Responder, Response,
    Scope, Str,
};
use abi_stable::StableAbi;

/// Called by the host exactly once, on any thread, when it no longer needs adopted memory. Null =
/// no call. In C a plain function pointer, `void (*)(void *ctx)`.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct Release {
    /// The function; null = no call.
    pub func: Option<unsafe extern "C" fn(ctx: *mut u8)>,
}

/// Bits of [`HostTable::flags`].
pub mod host_flags {
    /// This process runs one model of this backend and nothing else; a supervisor restarts it when
    /// it ends.
    pub const ISOLATED: u32 = 1;
}

/// Formats of [`HostTable::config_patch`].
pub mod patch_format {
    /// A serialized `ModelConfig` with the fields to add.
    pub const PROTOBUF: u32 = 0;
    /// The same as JSON.
    pub const JSON: u32 = 1;
    /// Protobuf text, as in `config.pbtxt`.
    pub const TEXT: u32 = 2;
    /// JSON of which these fields replace those of the configuration, as the backend has decided:
    /// `max_batch_size`, `input`, `output`, `model_transaction_policy`; a scheduler is taken if the
    /// configuration has none. Other fields are ignored.
    pub const COMPLETED_JSON: u32 = 3;
}

/// Modes of [`HostTable::gather`].
pub mod gather_mode {
    /// The rows of all requests, one after another.
    pub const ROWS: u32 = 0;
}

/// Flags of [`HostTable::response_send`].
pub mod send_flags {
    /// No further response follows for this request.
    pub const FINAL: u32 = 1;
    /// Fails with EXHAUSTED instead of waiting for a client that does not read; the response stays
    /// owned by the caller.
    pub const NO_WAIT: u32 = 2;
}

/// Functions that the host offers to backends; the module states the rules that all entries share.
/// Immutable; valid for the life of the process.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostTable {
    /// sizeof, as the host was built.
    pub size: u64,
    /// [`super::ABI_MAJOR`], as the host was built.
    pub abi_major: u32,
    /// [`super::ABI_MINOR`], as the host was built.
    pub abi_minor: u32,
    /// Name and version of the host, for logs.
    pub name: Str,
    /// Of the host, for logs.
    pub version: Str,
    /// Bits of [`host_flags`].
    pub flags: u32,
    /// Number of `extensions`.
    pub n_extensions: u32,
    /// That `get_extension` returns.
    pub extensions: *const Extension,

    /// Returns an extension table of at least this version, or null when the host has no such
    /// extension or only an older version. The table is valid for the life of the process. Look
    /// tables up when the library is loaded or a backend is opened, not per request.
    pub get_extension: unsafe extern "C" fn(name: Str, version: u32) -> *const u8,

    // -- errors -----------------------------------------------------------------------------------
    /// Creates an error; code of `types::code`, flags of `types::error_flags`. The text is copied.
    pub error_new: unsafe extern "C" fn(code: u32, flags: u32, text: Str) -> *mut Error,
    /// Returns one of [`super::types::code`].
    pub error_code: unsafe extern "C" fn(error: *const Error) -> u32,
    /// The text is owned by the error.
    pub error_text: unsafe extern "C" fn(error: *const Error) -> Str,
    /// Takes ownership of the error; null is allowed.
    pub error_free: unsafe extern "C" fn(error: *mut Error),

    // -- log and time -----------------------------------------------------------------------------
    /// Returns the address of the scope's log level: load it atomically; valid for the life of the
    /// process.
    pub log_level: unsafe extern "C" fn(scope: *const Scope) -> *const u32,
    /// Writes a record of one of [`super::types::level`] to the server's log, unless the scope's level leaves it
    /// out. `file` and `line` are the place in the source. The texts are copied.
    pub log: unsafe extern "C" fn(scope: *const Scope, level: u32, file: Str, line: u32, text: Str),
    /// CLOCK_MONOTONIC nanoseconds.
    pub now_ns: unsafe extern "C" fn() -> u64,

    // -- loading ----------------------------------------------------------------------------------
    /// In `autocomplete` only: adds fields to the model configuration, in a format of
    /// [`patch_format`]. Copied.
    pub config_patch:
        unsafe extern "C" fn(scope: *mut Scope, format: u32, p: *const u8, n: u64) -> *mut Error,
    /// Reports the progress of a load, 0 to 1000. Returns not 0 when the load was abandoned.
    pub progress: unsafe extern "C" fn(scope: *mut Scope, stage: Str, permille: u32) -> u32,

    // -- inputs -----------------------------------------------------------------------------------
    /// Returns an input of all requests of a batch as one block: their rows one after another along
    /// dimension 0, strings likewise. Only in the batch's `execute` and before a request of it is
    /// released; the block is read-only, owned by the host and valid until the last release.
    /// Nothing is copied for a single request or when the parts are adjacent in memory; a copy is
    /// 64-byte aligned.
    ///
    /// The block is in the preferred memory: CPU, or GPU of the instance's device; UNSUPPORTED for
    /// others. GPU memory is ready as [`DeviceExtension`](super::extensions::DeviceExtension) says,
    /// and also for later work of `stream` unless that is null.
    ///
    /// `input` is the position in the requests' `inputs`, which all requests of a batch have in the
    /// same order; `mode` one of [`gather_mode`]. INVALID, naming the input, when shapes differ
    /// beyond dimension 0, or for several requests of a model without batch dimension. The same
    /// input twice is the same block.
    pub gather: unsafe extern "C" fn(
        batch: *const Batch,
        input: u32,
        preferred_memory: Memory,
        mode: u32,
        stream: *mut u8,
        out: *mut Buf,
    ) -> *mut Error,
    /// Takes ownership of the handle and the event: the request's view and inputs are invalid once
    /// the event is reached (null = now).
    pub request_release: unsafe extern "C" fn(request: *mut RequestHandle, after: *mut Event),

    // -- responses --------------------------------------------------------------------------------
    /// Detaches a responder, so that it stays valid after `execute` until `responder_release`. May
    /// be called several times; the instance stays open until each call is matched by a release.
    pub responder_detach: unsafe extern "C" fn(responder: *mut Responder),
    /// Undoes one `responder_detach`. The last one frees an unsent response of the responder.
    pub responder_release: unsafe extern "C" fn(responder: *mut Responder),
    /// Creates a response, owned by the caller until `response_send` or `response_free`. One
    /// response of a responder may exist at a time.
    pub response_new:
        unsafe extern "C" fn(responder: *mut Responder, out: *mut *mut Response) -> *mut Error,
    /// Takes ownership of the response and discards it; null is allowed.
    pub response_free: unsafe extern "C" fn(response: *mut Response),
    /// Allocates an output in memory of the host, or in the memory in which the client wants it,
    /// which the client can change meanwhile; what is written there is sent as it is. `shape` has
    /// the batch dimension first when the model batches. 64-byte aligned, uninitialized, writable
    /// until the response is sent or freed. An output that was not requested: success, null and 0
    /// bytes. The host may choose other memory than the preferred one: read `Buf::memory`. GPU
    /// memory of the instance's device is given where it is preferred, and ready as
    /// [`DeviceExtension`](super::extensions::DeviceExtension) says.
    pub output_alloc: unsafe extern "C" fn(
        response: *mut Response,
        name: Str,
        dtype: u32,
        rank: u32,
        shape: *const i64,
        bytes: u64,
        preferred_memory: Memory,
        out: *mut Buf,
    ) -> *mut Error,
    /// Adds an output in memory of the backend, without a copy. The host takes ownership and calls
    /// `release(ctx)` exactly once on any thread: also after a failure, for an output that was not
    /// requested, and possibly after the model or the backend was closed. Parts in GPU memory are
    /// read after the event of `response_send`.
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
    /// Adds a parameter to the response. Copied.
    pub response_param:
        unsafe extern "C" fn(response: *mut Response, param: *const Param) -> *mut Error,
    /// Takes ownership of the response and the event, also on failure. The error stays owned by the
    /// caller and is sent instead of the outputs. Flags of [`send_flags`]. Never runs backend code
    /// on this thread. Outputs in GPU memory are read after the event; the response then leaves
    /// later, from another thread, and a failure of the device meanwhile is sent instead.
    ///
    /// In a decoupled model it blocks while the client has not read enough of the earlier
    /// responses, see `responder_backlog`: not longer than until the request is cancelled, then
    /// with CANCELLED unless the response is final, or until the client has read nothing for a time
    /// that the server's operator sets, then with EXHAUSTED.
    pub response_send: unsafe extern "C" fn(
        response: *mut Response,
        flags: u32,
        error: *const Error,
        after: *mut Event,
    ) -> *mut Error,
    /// Finishes a request without a further response: with an error, or with null, which ends a
    /// stream.
    pub responder_finish:
        unsafe extern "C" fn(responder: *mut Responder, error: *const Error) -> *mut Error,
    /// Returns what was sent to the stream of the request and not read by its client; zeros for a
    /// request that did not arrive on a stream.
    pub responder_backlog:
        unsafe extern "C" fn(responder: *mut Responder, out: *mut Backlog) -> *mut Error,

    // -- a batch as a whole -----------------------------------------------------------------------
    /// Allocates one block of the host for an output (or state) of all requests of a batch. `shape`
    /// begins with [`Batch::rows`], which counts requests that have failed meanwhile, too. What is
    /// written there until [`HostTable::batch_finish`] is sent as it is, each request's rows by
    /// reference; 64-byte aligned, and zeroed unless it is memory of the client; memory as for
    /// `output_alloc`. Null and 0 bytes when no request asked for the output.
    ///
    /// Only in the batch's `execute`; once per output and batch; not while a response of one of its
    /// requests exists. A model without batch dimension has one request in a batch, whose whole
    /// output this is.
    pub scatter_alloc: unsafe extern "C" fn(
        batch: *const Batch,
        name: Str,
        dtype: u32,
        rank: u32,
        shape: *const i64,
        bytes: u64,
        preferred_memory: Memory,
        out: *mut Buf,
    ) -> *mut Error,
    /// The same with memory of the backend, without a copy. The host takes ownership and calls
    /// `release(ctx)` exactly once on any thread after the last request's rows were sent: at once
    /// for an output that was not requested, also after a failure, and possibly after the model or
    /// the backend was closed.
    pub scatter_adopt: unsafe extern "C" fn(
        batch: *const Batch,
        name: Str,
        dtype: u32,
        rank: u32,
        shape: *const i64,
        buf: *const Buf,
        release: Release,
        ctx: *mut u8,
    ) -> *mut Error,
    /// Finishes what is still open of a batch, except detached requests, and releases the request
    /// handles; only in the batch's `execute`. With an error each open request fails with it, and
    /// what was scattered is discarded. With null each gets its rows of the scattered outputs that
    /// it requested as its final response, or an error when nothing was scattered, its handle was
    /// released or a response of it exists. Scattered memory must not be written any more, in GPU
    /// memory after the event.
    pub batch_finish: unsafe extern "C" fn(
        batch: *const Batch,
        error: *const Error,
        after: *mut Event,
    ) -> *mut Error,
}
