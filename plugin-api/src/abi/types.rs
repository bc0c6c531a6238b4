//! Plain values of the interface: strings, buffers, tensors, parameters, opaque handles.

use abi_stable::StableAbi;

/// UTF-8 text with its length. `p[n]` is always 0, so `p` is also a C string when the text contains
/// no NUL. `p` may be null when the text is empty.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Str {
    /// The first byte.
    pub p: *const u8,
    /// Bytes, without the terminator.
    pub n: u64,
}

/// Bytes with their length.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Bytes {
    /// The first byte; may be null when there are none.
    pub p: *const u8,
    /// Bytes.
    pub n: u64,
}

/// Types of memory, [`Memory::memory_type`]. The first three have Triton's numbers.
pub mod memory_type {
    /// Ordinary memory.
    pub const CPU: u32 = 0;
    /// Memory of the CPU that GPUs reach at full speed.
    pub const PINNED: u32 = 1;
    /// Memory of a GPU.
    pub const GPU: u32 = 2;
    /// Memory that CPU and GPU share, as CUDA manages it.
    pub const MANAGED: u32 = 3;
}

/// Type of memory, and the device that it belongs to.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// One of [`memory_type`].
    pub memory_type: u32,
    /// Device ordinal for GPU and managed memory, 0 otherwise.
    pub device_id: i32,
}

impl Memory {
    /// Ordinary memory.
    pub const CPU: Memory = Memory { memory_type: memory_type::CPU, device_id: 0 };
    /// Memory of the CPU that GPUs reach at full speed.
    pub const PINNED: Memory = Memory { memory_type: memory_type::PINNED, device_id: 0 };

    /// Memory of that GPU.
    pub const fn gpu(device_id: i32) -> Memory {
        Memory { memory_type: memory_type::GPU, device_id }
    }
}

/// One contiguous block of memory.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Buf {
    /// The first byte; of GPU memory, an address of the device.
    pub ptr: *mut u8,
    /// Length.
    pub bytes: u64,
    /// Where it is.
    pub memory: Memory,
    /// The memory may be accessed after this event; null = now. Borrowed. GPU memory:
    /// [`DeviceExtension`](super::extensions::DeviceExtension).
    pub ready: *mut Event,
    /// Identifies memory that the host allocated, for
    /// [`MemoryExtension::memory_free`](super::extensions::MemoryExtension::memory_free); 0 = none.
    pub memory_handle: u64,
}

/// Element types, [`Tensor::dtype`]. Numbers are those of `DataType` in the model configuration.
pub mod dtype {
    /// No type.
    pub const INVALID: u32 = 0;
    /// One byte: 0 or 1.
    pub const BOOL: u32 = 1;
    /// 8 bits, unsigned.
    pub const UINT8: u32 = 2;
    /// 16 bits, unsigned.
    pub const UINT16: u32 = 3;
    /// 32 bits, unsigned.
    pub const UINT32: u32 = 4;
    /// 64 bits, unsigned.
    pub const UINT64: u32 = 5;
    /// 8 bits, signed.
    pub const INT8: u32 = 6;
    /// 16 bits, signed.
    pub const INT16: u32 = 7;
    /// 32 bits, signed.
    pub const INT32: u32 = 8;
    /// 64 bits, signed.
    pub const INT64: u32 = 9;
    /// IEEE 754, 16 bits.
    pub const FP16: u32 = 10;
    /// IEEE 754, 32 bits.
    pub const FP32: u32 = 11;
    /// IEEE 754, 64 bits.
    pub const FP64: u32 = 12;
    /// Each element is a little-endian u32 byte count followed by that many bytes.
    pub const STRING: u32 = 13;
    /// The upper half of an FP32.
    pub const BF16: u32 = 14;
}

/// Bits of [`Tensor::flags`].
pub mod tensor_flags {
    /// Requests may omit this input.
    pub const OPTIONAL: u32 = 1;
    /// State that the host stores for a sequence.
    pub const STATE: u32 = 2;
    /// A sequence control (START, READY, …) added by the host.
    pub const CONTROL: u32 = 4;
    /// The values are a shape; never has a batch dimension.
    pub const SHAPE_TENSOR: u32 = 8;
    /// Shapes may differ within a batch; `gather` returns the elements of all requests one after
    /// another.
    pub const RAGGED: u32 = 16;
    /// A batch input added by the host: it describes the requests of the batch, and has no batch
    /// dimension.
    pub const BATCH: u32 = 32;
}

/// Dimensions that an output may have; hosts refuse a greater rank without reading the shape.
pub const MAX_RANK: u32 = 1024;

/// One input of a request. Read-only, at a fixed address until the request is released.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Tensor {
    /// As in the model configuration.
    pub name: Str,
    /// Position in the model configuration's input list, `u32::MAX` if not listed there.
    pub index: u32,
    /// One of [`dtype`].
    pub dtype: u32,
    /// Number of dimensions.
    pub rank: u32,
    /// Bits of [`tensor_flags`].
    pub flags: u32,
    /// `rank` numbers; the batch dimension comes first when the model batches.
    pub shape: *const i64,
    /// Sum of the parts' sizes.
    pub bytes: u64,
    /// Number of `parts`.
    pub n_parts: u32,
    /// Zero.
    pub pad: u32,
    /// Consecutive pieces of the tensor, in order. A part in CPU memory of the host is aligned to
    /// the larger of its element's alignment and [`super::descriptors::BackendInfo::align`].
    pub parts: *const Buf,
}

/// Kinds of parameter value, [`Param::kind`].
pub mod param {
    /// UTF-8, in `text`.
    pub const STRING: u32 = 0;
    /// An `i64`, in `bits`.
    pub const INT: u32 = 1;
    /// 0 or 1, in `bits`.
    pub const BOOL: u32 = 2;
    /// The bits of an `f64`, in `bits`.
    pub const DOUBLE: u32 = 3;
    /// A `u64`, in `bits`.
    pub const UINT: u32 = 4;
    /// Any bytes, in `text`.
    pub const BYTES: u32 = 5;
}

/// A named value: request and response parameters, settings.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Param {
    /// Name.
    pub key: Str,
    /// One of [`param`]; selects one of the two value fields.
    pub kind: u32,
    /// Zero.
    pub pad: u32,
    /// The value of kinds STRING and BYTES.
    pub text: Str,
    /// The value of the other kinds: an i64, a u64, 0/1, or the bits of a double.
    pub bits: u64,
}

/// Codes of a [`Error`]. 0 to 7 have Triton's numbers.
pub mod code {
    /// None of the others.
    pub const UNKNOWN: u32 = 0;
    /// A defect of the server or the backend.
    pub const INTERNAL: u32 = 1;
    /// There is no such thing.
    pub const NOT_FOUND: u32 = 2;
    /// The request or the configuration is wrong.
    pub const INVALID: u32 = 3;
    /// Not now: the model or the server is starting or ending.
    pub const UNAVAILABLE: u32 = 4;
    /// This backend or host cannot do it.
    pub const UNSUPPORTED: u32 = 5;
    /// There is one already.
    pub const EXISTS: u32 = 6;
    /// The client or the host no longer wants it.
    pub const CANCELLED: u32 = 7;
    /// Its time has passed.
    pub const DEADLINE: u32 = 8;
    /// A limit is reached: memory, queue or stream.
    pub const EXHAUSTED: u32 = 9;
    /// The GPU can execute nothing any more.
    pub const DEVICE_LOST: u32 = 10;
    /// The caller may not do it.
    pub const PERMISSION: u32 = 11;
    /// It was interrupted and may be tried again.
    pub const ABORTED: u32 = 12;
}

/// Flags of an error.
pub mod error_flags {
    /// The same request may succeed if sent again.
    pub const RETRYABLE: u32 = 1;
    /// Caused by the request, not by the model.
    pub const CLIENT: u32 = 2;
    /// The GPU can execute nothing any more.
    pub const DEVICE_LOST: u32 = 4;
    /// The host takes the instance out of service.
    pub const MODEL_BROKEN: u32 = 8;
}

/// Responses of a stream that its client has not read.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Of tensors that wait for the client.
    pub bytes: u64,
    /// That have them.
    pub responses: u64,
    /// `response_send` waits while `bytes` is at least this.
    pub limit: u64,
    /// Zeros.
    pub reserved: u64,
}

/// Log levels. A record is written when its level is at most that of its scope.
pub mod level {
    /// Something failed.
    pub const ERROR: u32 = 1;
    /// A warning: a setting or a call has no effect, or another one than expected.
    pub const WARNING: u32 = 2;
    /// What an operator wants to know.
    pub const INFO: u32 = 3;
    /// Details of what the server does.
    pub const VERBOSE: u32 = 4;
    /// Details of each request.
    pub const TRACE: u32 = 5;
}

/// Name and version of an extension table; see [`super::extensions`].
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Extension {
    /// `TRTS_EXTENSION_…`.
    pub name: Str,
    /// `TRTS_EXTENSION_…`_VERSION: the newest that is offered, or the oldest that is required.
    pub version: u32,
    /// Zero.
    pub pad: u32,
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
    /// A failure, created by the host's `error_new`. Null = success. Freed by its receiver.
    Error,
    /// A point in a stream of device work.
    Event,
    /// The input side of a request, released exactly once by the backend.
    RequestHandle,
    /// The response side of a request: sends its responses. May be detached to outlive the request.
    Responder,
    /// One response under construction.
    Response,
    /// A backend, model or instance: owner of logs, metrics and memory.
    Scope,
    /// Created by `backend_open`. Owned by the backend.
    BackendHandle,
    /// Created by `model_open`. Owned by the backend.
    ModelHandle,
    /// Created by `instance_open`. Owned by the backend.
    InstanceHandle,
}
