//! Plain values that cross the boundary: strings, places, buffers, tensors, parameters, opaque handles.

use abi_stable::StableAbi;

/// Counted UTF-8 text. `p[n]` is 0 always, so `p` is also a C string when the text holds no NUL.
/// An empty text may have a null `p`.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Str {
    pub p: *const u8,
    /// Bytes, without the terminator.
    pub n: u64,
}

/// Counted bytes.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Bytes {
    pub p: *const u8,
    pub n: u64,
}

/// Kinds of memory, [`Place::kind`]. The first three have Triton's numbers.
pub mod place {
    pub const CPU: u32 = 0;
    pub const PINNED: u32 = 1;
    pub const GPU: u32 = 2;
    pub const MANAGED: u32 = 3;
}

/// Where a piece of memory lives.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// One of [`place`].
    pub kind: u32,
    /// Device ordinal for GPU and managed memory, 0 otherwise.
    pub device: i32,
}

impl Place {
    pub const CPU: Place = Place { kind: place::CPU, device: 0 };
}

/// One contiguous piece of memory.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Buf {
    pub ptr: *mut u8,
    pub bytes: u64,
    pub place: Place,
    /// A point in some stream after which the memory may be touched; null = now. Borrowed.
    pub ready: *mut Event,
    /// The host's name for memory it owns (for [`super::host::HostTable::mem_free`]); 0 = none.
    pub lease: u64,
}

/// Element types, [`Tensor::dtype`]. Numbers are those of `DataType` in the model configuration.
pub mod dtype {
    pub const INVALID: u32 = 0;
    pub const BOOL: u32 = 1;
    pub const UINT8: u32 = 2;
    pub const UINT16: u32 = 3;
    pub const UINT32: u32 = 4;
    pub const UINT64: u32 = 5;
    pub const INT8: u32 = 6;
    pub const INT16: u32 = 7;
    pub const INT32: u32 = 8;
    pub const INT64: u32 = 9;
    pub const FP16: u32 = 10;
    pub const FP32: u32 = 11;
    pub const FP64: u32 = 12;
    /// Each element is a little-endian u32 byte count followed by that many bytes.
    pub const STRING: u32 = 13;
    pub const BF16: u32 = 14;
}

/// Bits of [`Tensor::flags`].
pub mod tensor_flags {
    /// The model configuration lets callers leave this input out.
    pub const OPTIONAL: u32 = 1;
    /// State that the host keeps for a sequence.
    pub const STATE: u32 = 2;
    /// A sequence control (START, READY, …) that the host adds.
    pub const CONTROL: u32 = 4;
    /// Values describe a shape; never carries a batch dimension.
    pub const SHAPE_TENSOR: u32 = 8;
}

/// One input of one call. Read-only; stays put until the call's request is released.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Tensor {
    pub name: Str,
    /// Position in the model configuration's input list, `u32::MAX` if it is not there.
    pub index: u32,
    /// One of [`dtype`].
    pub dtype: u32,
    pub rank: u32,
    /// Bits of [`tensor_flags`].
    pub flags: u32,
    /// `rank` numbers; the batch dimension comes first when the model batches.
    pub shape: *const i64,
    /// Sum of the parts' sizes.
    pub bytes: u64,
    pub n_parts: u32,
    pub pad: u32,
    /// Consecutive pieces of the tensor, in order. A host-owned CPU part is aligned to the larger of
    /// its element's alignment and [`super::describe::About::align`].
    pub parts: *const Buf,
}

/// Kinds of parameter value, [`Param::kind`].
pub mod param {
    pub const STRING: u32 = 0;
    pub const INT: u32 = 1;
    pub const BOOL: u32 = 2;
    pub const DOUBLE: u32 = 3;
    pub const UINT: u32 = 4;
    pub const BYTES: u32 = 5;
}

/// A named value: request and response parameters, settings.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Param {
    pub key: Str,
    /// One of [`param`]; says which of the two value fields counts.
    pub kind: u32,
    pub pad: u32,
    /// The value of kinds STRING and BYTES.
    pub text: Str,
    /// The value of the other kinds: an i64, a u64, 0/1, or the bits of a double.
    pub bits: u64,
}

/// Codes of a [`Error`]. 0 to 7 have Triton's numbers.
pub mod code {
    pub const UNKNOWN: u32 = 0;
    pub const INTERNAL: u32 = 1;
    pub const NOT_FOUND: u32 = 2;
    pub const INVALID: u32 = 3;
    pub const UNAVAILABLE: u32 = 4;
    pub const UNSUPPORTED: u32 = 5;
    pub const EXISTS: u32 = 6;
    pub const CANCELLED: u32 = 7;
    pub const DEADLINE: u32 = 8;
    pub const EXHAUSTED: u32 = 9;
    pub const DEVICE_LOST: u32 = 10;
    pub const PERMISSION: u32 = 11;
    pub const ABORTED: u32 = 12;
}

/// Bits that an error carries beside its code.
pub mod error_flags {
    /// The same request may succeed if sent again.
    pub const RETRYABLE: u32 = 1;
    /// The caller's mistake, not the model's.
    pub const CLIENT: u32 = 2;
    pub const DEVICE_LOST: u32 = 4;
    /// The model cannot answer any more; the host says so in its log.
    pub const MODEL_BROKEN: u32 = 8;
}

/// Log levels. A record is wanted when its level is at most the scope's.
pub mod level {
    pub const ERROR: u32 = 1;
    pub const WARNING: u32 = 2;
    pub const INFO: u32 = 3;
    pub const VERBOSE: u32 = 4;
    pub const TRACE: u32 = 5;
}

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident,)*) => { $(
        $(#[$doc])*
        #[repr(C)]
        #[derive(StableAbi)]
        pub struct $name { _private: [u8; 0] }
    )* };
}

opaque! {
    /// A failure. Made by the host's `error_new`; a null pointer means success; whoever receives one frees it.
    Error,
    /// A point in some stream, or "already done".
    Event,
    /// The input side of one call; the plugin gives it back with `request_release`.
    Request,
    /// The answer side of one call; counted, may outlive the request.
    Reply,
    /// One answer being built.
    Response,
    /// Who speaks and who pays: a plugin, a model or an instance.
    Scope,
    /// A nested call.
    Infer,
    /// A metric that belongs to a scope.
    Metric,
    /// What `plugin_open` made. The plugin's own.
    PluginHandle,
    /// What `model_open` made. The plugin's own.
    ModelHandle,
    /// What `instance_open` made. The plugin's own.
    InstanceHandle,
    /// A custom batcher's state. The plugin's own.
    BatcherHandle,
}
