//! Descriptors: what the host tells about a model or an instance, and what a plugin tells about itself.

use super::types::{Bytes, Param, Scope, Str};
use abi_stable::StableAbi;

/// Everything about one model version; lives until `model_close` (during the call only, for `model_complete`).
#[repr(C)]
#[derive(StableAbi)]
pub struct ModelDesc {
    pub size: u64,
    pub scope: *mut Scope,
    pub name: Str,
    pub version: i64,
    /// The model's directory, its version directory, and the model file or directory inside that.
    pub dir: Str,
    pub version_dir: Str,
    pub file: Str,
    /// The effective `ModelConfig`, serialized; and the same as JSON with all defaults printed.
    pub config_pb: Bytes,
    pub config_json: Str,
    /// Server-wide settings of this plugin (`--backend-config=NAME,key=value`).
    pub settings: *const Param,
    pub n_settings: u32,
    /// Non-zero: the plugin may fill in what the configuration leaves out.
    pub autocomplete: u32,
    /// Model parameters (`parameters { key: … }` of the configuration), all of kind STRING.
    pub params: *const Param,
    pub n_params: u32,
    pub max_batch_size: i32,
    /// Declared tensors, as in the configuration: dims without the batch dimension, -1 = variable.
    pub inputs: *const TensorDecl,
    pub outputs: *const TensorDecl,
    pub n_inputs: u32,
    pub n_outputs: u32,
    /// `optimization.graph.level`; 0 when unset.
    pub graph_level: i32,
    /// Instances that the host is going to open for this version, over all groups.
    pub n_instances: u32,
    /// Threads that the framework may use for each instance, at least 1: the cores that the process
    /// may use, divided by the instances.
    pub threads: u32,
    pub pad: u32,
    pub reserved: [u64; 4],
}

/// A tensor as the configuration declares it.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct TensorDecl {
    pub name: Str,
    /// One of [`super::types::dtype`].
    pub dtype: u32,
    pub rank: u32,
    /// Without the batch dimension; -1 = variable. What the caller sees.
    pub dims: *const i64,
    /// What the model sees, where the configuration reshapes; else the same as `dims`.
    pub model_dims: *const i64,
    pub model_rank: u32,
    /// Bits of [`super::types::tensor_flags`].
    pub flags: u32,
}

/// Kinds of instance, [`InstanceDesc::kind`], numbered as in the configuration.
pub mod instance_kind {
    pub const GPU: u32 = 1;
    pub const CPU: u32 = 2;
    pub const MODEL: u32 = 3;
}

/// A device that an instance uses beside its own.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct SecondaryDevice {
    pub kind: Str,
    pub id: i64,
}

/// One instance of a model; lives until `instance_close`.
#[repr(C)]
#[derive(StableAbi)]
pub struct InstanceDesc {
    pub size: u64,
    pub scope: *mut Scope,
    pub name: Str,
    pub host_policy_json: Str,
    /// One of [`instance_kind`].
    pub kind: u32,
    /// Number among the model's instances, from 0.
    pub ordinal: u32,
    /// GPU ordinal, -1 for a CPU instance.
    pub device: i32,
    pub passive: u32,
    pub device_uuid: [u8; 16],
    pub cpus: *const u32,
    pub n_cpus: u32,
    /// Threads that the framework may use for this instance, at least 1.
    pub threads: u32,
    pub numa_node: i32,
    /// Largest number of rows in one batch, at least 1.
    pub max_rows: u32,
    /// CUDA driver handles, or null: the device's primary context and the host's three streams.
    pub cu_context: *mut u8,
    pub cu_stream: *mut u8,
    pub cu_copy_in: *mut u8,
    pub cu_copy_out: *mut u8,
    pub profiles: *const Str,
    pub n_profiles: u32,
    pub n_secondary: u32,
    pub secondary: *const SecondaryDevice,
    pub reserved: [u64; 4],
}

/// Bits of [`About::flags`]. A host acts on the first and the last; the others tell operators and later hosts.
pub mod about_flags {
    /// `instance_open` may run for several instances at once.
    pub const PARALLEL_OPEN: u32 = 1;
    /// An instance does not care which thread executes it, one at a time. It is opened and closed on its own.
    pub const ANY_THREAD: u32 = 2;
    /// An instance wants its device for itself.
    pub const DEVICE_EXCLUSIVE: u32 = 4;
    /// It gathers every input of a batch into one block.
    pub const WANTS_GATHER: u32 = 8;
    /// It uses CUDA streams of its own and none of the host's.
    pub const OWN_STREAM: u32 = 16;
    /// Its models run in a process of their own unless the operator says otherwise.
    pub const MUST_ISOLATE: u32 = 32;
}

/// Instances that a plugin prefers when the configuration names no group.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct PreferredGroup {
    /// One of [`instance_kind`].
    pub kind: u32,
    pub count: u32,
}

/// What a plugin says of itself. Static, or valid until `plugin_close` when asked with an open plugin.
#[repr(C)]
#[derive(StableAbi)]
pub struct About {
    pub size: u64,
    /// Backend name, as `backend:` in a configuration says it.
    pub name: Str,
    pub version: Str,
    /// The framework behind it, e.g. "ONNX Runtime 1.31.1"; empty until the library is open.
    pub runtime: Str,
    /// Platforms served, as `platform:` in a configuration says them.
    pub platforms: *const Str,
    /// Default model file of each platform, same order; empty = none.
    pub default_files: *const Str,
    pub features: *const Str,
    pub n_platforms: u32,
    pub n_features: u32,
    /// Bits of [`about_flags`].
    pub flags: u32,
    /// Executes accepted but unanswered per instance; 1 = ordinary.
    pub max_in_flight: u32,
    /// Bit sets by place kind: bit `1 << place::CPU` and so on.
    pub input_places: u32,
    pub output_places: u32,
    /// Stack of an instance thread in KiB; 0 = the host's default of 8 MiB.
    pub stack_kib: u32,
    /// Alignment that inputs need, a power of two up to 64; 0 = natural alignment of the element.
    pub align: u32,
    pub preferred: *const PreferredGroup,
    pub n_preferred: u32,
    pub pad: u32,
    pub reserved: [u64; 4],
}

// SAFETY: an `About` is read-only after it was made and points at memory that lives as long; sharing it is sharing constants.
unsafe impl Sync for About {}
