//! The extension `trts.inference`: a backend sends requests to other models of the server, asks for
//! their status, loads and unloads them.

use super::types::{Buf, Error, Param, Scope, Str};

/// Name of [`InferenceExtension`], offered by hosts that serve the models of a repository, also to
/// backends in processes of their own.
pub const INFERENCE: &str = "trts.inference";
/// Its newest version.
pub const INFERENCE_VERSION: u32 = 1;

/// A nested request that was accepted. Owned by the backend until `nested_release`.
#[repr(C)]
pub struct Nested {
    _private: [u8; 0],
}

/// An input of a nested request. Read during `infer` only: the host copies shape and data.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NestedInput {
    /// As the model's configuration calls it.
    pub name: Str,
    /// One of [`super::types::dtype`].
    pub dtype: u32,
    /// Number of dimensions.
    pub rank: u32,
    /// `rank` numbers; the batch dimension comes first when the model batches.
    pub shape: *const i64,
    /// Consecutive pieces of the tensor, in CPU or pinned memory; event and memory handle are
    /// ignored.
    pub parts: *const Buf,
    /// Number of `parts`.
    pub n_parts: u32,
    /// Zero.
    pub pad: u32,
}

/// A request to a model of the server. Read during `infer` only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NestedRequest {
    /// sizeof, as the backend was built.
    pub size: u64,
    /// Name of the model.
    pub model: Str,
    /// Below 0 = the version that clients reach without a number.
    pub version: i64,
    /// Of the request, for logs; may be empty.
    pub id: Str,
    /// Empty when the correlation id is a number or absent.
    pub correlation_id_string: Str,
    /// 0 = none.
    pub correlation_id: u64,
    /// 0 = the model's default.
    pub priority: u64,
    /// Longest time in the queue in microseconds, where the model's policy allows it; 0 = the
    /// model's default.
    pub timeout_us: u64,
    /// 0 = no deadline.
    pub deadline_ns: u64,
    /// `SEQUENCE_START` and `SEQUENCE_END` of [`super::request::request_flags`].
    pub flags: u32,
    /// Number of `inputs`.
    pub n_inputs: u32,
    /// Number of `outputs`.
    pub n_outputs: u32,
    /// Number of `params`.
    pub n_params: u32,
    /// In any order.
    pub inputs: *const NestedInput,
    /// Names of the requested outputs; none = all.
    pub outputs: *const Str,
    /// For the model.
    pub params: *const Param,
    /// Zeros.
    pub reserved: [u64; 4],
}

/// An output of a response.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NestedOutput {
    /// As the model's configuration calls it.
    pub name: Str,
    /// One of [`super::types::dtype`].
    pub dtype: u32,
    /// Number of dimensions.
    pub rank: u32,
    /// Batch dimension first when the model batches.
    pub shape: *const i64,
    /// In CPU memory.
    pub data: Buf,
}

/// A response to a nested request. Valid during the call of the handler.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NestedResponse {
    /// `sizeof`, as its maker was built.
    pub size: u64,
    /// Why the request failed; borrowed. An error is the last response.
    pub error: *const Error,
    /// In requested order. The last response of a decoupled model may have none.
    pub outputs: *const NestedOutput,
    /// Of the response.
    pub params: *const Param,
    /// Number of `outputs`.
    pub n_outputs: u32,
    /// Number of `params`.
    pub n_params: u32,
    /// Not 0: the handler is not called again.
    pub last: u32,
    /// Zero.
    pub pad: u32,
    /// The version that has executed the request; below 0 when none has.
    pub version: i64,
    /// Zeros.
    pub reserved: [u64; 3],
}

/// Receives the responses of a nested request.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NestedHandler {
    /// Called once for each response.
    pub func: unsafe extern "C" fn(user: *mut u8, response: *const NestedResponse),
    /// Passed to `func`.
    pub user: *mut u8,
}

/// What is known of a model version.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ModelStatus {
    /// `sizeof`, as its maker was built.
    pub size: u64,
    /// The version that a request would reach, 0 if none serves.
    pub version: i64,
    /// Not 0: a request would be executed now.
    pub ready: u32,
    /// Not 0: a request gets any number of responses.
    pub decoupled: u32,
    /// Zeros.
    pub reserved: [u64; 4],
}

/// Nested inference. All entries may be called from any thread, also during `execute`.
#[repr(C)]
pub struct InferenceExtension {
    /// sizeof, as the host was built.
    pub size: u64,
    /// Sends a request to a model of the server. After an error the handler is never called. After
    /// success it is called once for each response, until one is the last, on a thread of the host
    /// that serves the handlers of this scope one after another: never on the calling thread,
    /// possibly before this returns. It must not block, and must not wait for another nested
    /// request.
    ///
    /// A nested request counts like one of a client: in the queue, its limits, and the statistics.
    /// A backend that waits for the responses in `execute` keeps its instance busy: a model that
    /// calls itself detaches the responder and returns.
    ///
    /// Before the host closes the model or instance of the scope, it cancels the scope's requests;
    /// their handlers receive CANCELLED as the last response before `model_close` or
    /// `instance_close` is called, and `infer` fails from then on.
    ///
    /// `out`, if not null, receives a handle for `nested_cancel`; free it with `nested_release`.
    pub infer: unsafe extern "C" fn(
        scope: *mut Scope,
        request: *const NestedRequest,
        handler: NestedHandler,
        out: *mut *mut Nested,
    ) -> *mut Error,
    /// Cancels the request, as a client that disconnects. The handler still receives a last
    /// response.
    pub nested_cancel: unsafe extern "C" fn(nested: *const Nested),
    /// Takes ownership of the handle; the request goes on. Null is allowed.
    pub nested_release: unsafe extern "C" fn(nested: *mut Nested),
    /// Writes the status of a version of a model; `version` as in [`NestedRequest`]. `NOT_FOUND` =
    /// there is no such model or version.
    pub model_status: unsafe extern "C" fn(
        scope: *mut Scope,
        model: Str,
        version: i64,
        out: *mut ModelStatus,
    ) -> *mut Error,
    /// Loads a model, or loads it again, and waits for the end. Parameters as in the load request
    /// of v2: `config` (STRING) and `file:PATH` (BYTES). `UNAVAILABLE` unless the server's control
    /// mode is explicit. The caller's own model is refused.
    pub model_load: unsafe extern "C" fn(
        scope: *mut Scope,
        model: Str,
        params: *const Param,
        n_params: u32,
    ) -> *mut Error,
    /// Unloads a model; with `dependents` not 0 also the models of its steps. Otherwise as
    /// `model_load`.
    pub model_unload:
        unsafe extern "C" fn(scope: *mut Scope, model: Str, dependents: u32) -> *mut Error,
}
