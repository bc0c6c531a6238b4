//! What `execute` receives: a batch of requests, each a flat read-only view.

use super::types::{Param, RequestHandle, Responder, Str, Tensor};
use abi_stable::StableAbi;

/// Bits of [`Request::flags`].
pub mod request_flags {
    /// The first request of a sequence.
    pub const SEQUENCE_START: u32 = 1;
    /// The last request of a sequence.
    pub const SEQUENCE_END: u32 = 2;
    /// A warm-up request of the host, whose response is discarded.
    pub const WARMUP: u32 = 4;
    /// The request is traced.
    pub const TRACED: u32 = 8;
    /// The client accepts several responses.
    pub const STREAMING: u32 = 16;
}

/// An output requested by the client or, after those, by the host (state of a sequence).
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RequestedOutput {
    /// As in the model configuration.
    pub name: Str,
    /// Position in the model configuration's output list, `u32::MAX` if not listed there.
    pub index: u32,
    /// Not 0: the host sends this many top classes; the backend produces the tensor all the same.
    pub classes: u32,
}

/// One request: a read-only view, and the two handles of the request. Everything it points at stays
/// at a fixed address until `request_release` of `handle`; `cancelled` is valid as long as the
/// responder.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Request {
    /// sizeof, as the host was built.
    pub size: u64,
    /// Input side; released exactly once, with `request_release` or `batch_finish`.
    pub handle: *mut RequestHandle,
    /// Borrowed; `responder_detach` to use it after `execute`.
    pub responder: *mut Responder,
    /// That the client gave; may be empty.
    pub id: Str,
    /// Empty when the correlation id is a number or absent.
    pub correlation_id_string: Str,
    /// 0 = none.
    pub correlation_id: u64,
    /// Bits of [`request_flags`].
    pub flags: u32,
    /// Rows of this request, 1 for a model without batch dimension.
    pub batch_size: u32,
    /// Level, 1 is the highest; 0 = the model's default.
    pub priority: u64,
    /// CLOCK_MONOTONIC nanoseconds, like all times of this interface.
    pub received_ns: u64,
    /// When it entered the queue.
    pub queued_ns: u64,
    /// 0 = no deadline.
    pub deadline_ns: u64,
    /// Load atomically; not 0 = cancelled.
    pub cancelled: *const u32,
    /// Number of `inputs`.
    pub n_inputs: u32,
    /// Number of `requested_outputs`.
    pub n_requested_outputs: u32,
    /// Number of `params`.
    pub n_params: u32,
    /// Zero.
    pub pad: u32,
    /// Of the client, in the order of the configuration, then those that the host adds.
    pub inputs: *const Tensor,
    /// That responses should have.
    pub requested_outputs: *const RequestedOutput,
    /// That the client gave.
    pub params: *const Param,
    /// What the client gave as the longest time in the queue, in microseconds; 0 = nothing.
    pub timeout_us: u64,
    /// Zeros.
    pub reserved: [u64; 3],
}

/// The unit of execution. The array is valid during `execute`, each request until its release.
#[repr(C)]
#[derive(StableAbi)]
pub struct Batch {
    /// `sizeof`, as its maker was built.
    pub size: u64,
    /// For traces.
    pub id: u64,
    /// Number of `requests`.
    pub n_requests: u32,
    /// Sum of the requests' batch sizes.
    pub rows: u32,
    /// In the order of their rows.
    pub requests: *const *const Request,
    /// The four times are written by the backend; the host measures those left 0 around `execute`.
    pub exec_start_ns: u64,
    /// Inputs are ready.
    pub compute_start_ns: u64,
    /// Outputs are being written.
    pub compute_end_ns: u64,
    /// Outputs are written.
    pub exec_end_ns: u64,
    /// Zeros.
    pub reserved: [u64; 4],
}
