//! What `execute` gets: a batch of calls, each a flat read-only view of one request.

use super::types::{Param, Reply, Request, Str, Tensor};
use abi_stable::StableAbi;

/// Bits of [`Call::flags`].
pub mod call_flags {
    pub const SEQUENCE_START: u32 = 1;
    pub const SEQUENCE_END: u32 = 2;
    pub const WARMUP: u32 = 4;
    pub const TRACED: u32 = 8;
    /// The caller can take several responses.
    pub const STREAMING: u32 = 16;
}

/// An output that is wanted: by the caller, or, behind those, by the host for the next step of a
/// sequence (a state).
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Wanted {
    pub name: Str,
    /// Position in the model configuration's output list, `u32::MAX` if it is not there.
    pub index: u32,
    /// Non-zero: the caller gets this many top classes; the plugin still delivers the tensor.
    pub classes: u32,
}

/// One request. Everything it points at stays put until `request_release` of its `request`;
/// `cancelled` stays valid while the reply is held.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Call {
    /// sizeof, as the host knows it.
    pub size: u64,
    pub request: *mut Request,
    /// Borrowed; `reply_retain` to keep it past the release of the request.
    pub reply: *mut Reply,
    pub id: Str,
    /// Correlation id as text; empty when it is a number or absent.
    pub sequence_text: Str,
    /// Correlation id as a number; 0 = none.
    pub sequence: u64,
    /// Bits of [`call_flags`].
    pub flags: u32,
    /// Rows of this call, 1 for a model without batch dimension.
    pub batch: u32,
    pub priority: u64,
    /// CLOCK_MONOTONIC nanoseconds, like every time in this interface.
    pub received_ns: u64,
    pub queued_ns: u64,
    /// 0 = no deadline.
    pub deadline_ns: u64,
    /// Read atomically; non-zero = nobody waits for the answer any more.
    pub cancelled: *const u32,
    pub n_inputs: u32,
    pub n_outputs: u32,
    pub n_params: u32,
    pub pad: u32,
    pub inputs: *const Tensor,
    pub outputs: *const Wanted,
    pub params: *const Param,
    pub reserved: [u64; 4],
}

/// The unit of work. The `calls` array is valid during `execute`, each call until its release.
#[repr(C)]
#[derive(StableAbi)]
pub struct Batch {
    pub size: u64,
    /// Batch number, for traces.
    pub id: u64,
    /// Number of calls.
    pub n: u32,
    /// Sum of the calls' batch sizes.
    pub rows: u32,
    pub calls: *const *const Call,
    /// Written by the plugin, CLOCK_MONOTONIC nanoseconds; zero = the host measures around `execute`.
    /// Start of work, inputs ready (compute begins), outputs being made, end.
    pub t_start: u64,
    pub t_compute: u64,
    pub t_output: u64,
    pub t_end: u64,
    pub reserved: [u64; 4],
}
