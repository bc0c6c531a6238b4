//! Descriptors: a model and an instance as the host describes them, a backend as it describes
//! itself.

use super::types::{Bytes, Extension, Param, Scope, Str};
use abi_stable::StableAbi;

/// One version of a model; valid until `model_close` (for `autocomplete`: during the call).
#[repr(C)]
#[derive(StableAbi)]
pub struct ModelDesc {
    /// `sizeof`, as the host was built.
    pub size: u64,
    /// Of the model: owner of its logs and metrics.
    pub scope: *mut Scope,
    /// Of the model.
    pub name: Str,
    /// Number of the version, which is the name of its directory.
    pub version: i64,
    /// The model's directory, its version directory, and the model file or directory inside that.
    pub dir: Str,
    /// The version's directory.
    pub version_dir: Str,
    /// Model file or directory inside `version_dir`.
    pub file: Str,
    /// The effective `ModelConfig`, serialized; and the same as JSON with all defaults printed.
    pub config_pb: Bytes,
    /// The same as JSON, with all defaults.
    pub config_json: Str,
    /// Server-wide settings of this backend (`--backend-config=NAME,key=value`).
    pub settings: *const Param,
    /// Number of `settings`.
    pub n_settings: u32,
    /// Not 0: the backend may add what the configuration omits.
    pub autocomplete: u32,
    /// Model parameters (`parameters { key: … }` of the configuration), all of kind STRING.
    pub params: *const Param,
    /// Number of `params`.
    pub n_params: u32,
    /// Rows; 0 = tensors have no batch dimension.
    pub max_batch_size: i32,
    /// Tensors as the configuration declares them.
    pub inputs: *const TensorDecl,
    /// In the order of the configuration.
    pub outputs: *const TensorDecl,
    /// Number of `inputs`.
    pub n_inputs: u32,
    /// Number of `outputs`.
    pub n_outputs: u32,
    /// `optimization.graph.level`; 0 when unset.
    pub graph_level: i32,
    /// Instances that the host will open with this version, over all instance groups. A change of
    /// the instance groups opens and closes instances of the kind CPU while the version serves.
    pub n_instances: u32,
    /// Threads that the framework may use for each instance, at least 1: the cores that the process
    /// may use, divided by the instances.
    pub threads: u32,
    /// Zero.
    pub pad: u32,
    /// For `model_open`: what `autocomplete` of this version stored in this process, else null.
    /// Borrowed until `model_open` returns.
    pub state: *mut u8,
    /// Zeros.
    pub reserved: [u64; 4],
}

/// A tensor as the configuration declares it.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct TensorDecl {
    /// As clients and the configuration call it.
    pub name: Str,
    /// One of [`super::types::dtype`].
    pub dtype: u32,
    /// Number of `dims`.
    pub rank: u32,
    /// Shape for clients, without the batch dimension; -1 = variable.
    pub dims: *const i64,
    /// Shape for the model, where the configuration reshapes; else the same as `dims`.
    pub model_dims: *const i64,
    /// Number of `model_dims`.
    pub model_rank: u32,
    /// Bits of [`super::types::tensor_flags`].
    pub flags: u32,
}

/// Kinds of instance, [`InstanceDesc::kind`], numbered as in the configuration.
pub mod instance_kind {
    /// It executes on a GPU.
    pub const GPU: u32 = 1;
    /// It executes on the CPU.
    pub const CPU: u32 = 2;
    /// The model decides where it executes.
    pub const MODEL: u32 = 3;
}

/// A further device of an instance.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct SecondaryDevice {
    /// As in `secondary_devices` of the configuration, such as `KIND_NVDLA`.
    pub kind: Str,
    /// Number of the device among those of its kind.
    pub id: i64,
}

/// One instance of a model; valid until `instance_close`.
#[repr(C)]
#[derive(StableAbi)]
pub struct InstanceDesc {
    /// `sizeof`, as the host was built.
    pub size: u64,
    /// Of the instance: owner of its logs and metrics.
    pub scope: *mut Scope,
    /// Of the instance, for logs.
    pub name: Str,
    /// `{"NAME":{"cpu-cores":"0-3"}}`: the policy of the instance group, by default `cpu`, `gpu_N` or
    /// `model`, with its settings, to which the thread is bound.
    pub host_policy_json: Str,
    /// One of [`instance_kind`].
    pub kind: u32,
    /// Number among the model's instances, from 0.
    pub ordinal: u32,
    /// GPU ordinal, -1 for a CPU instance.
    pub device_id: i32,
    /// Not 0: opened, but not scheduled yet.
    pub passive: u32,
    /// Of the GPU; zeros on the CPU.
    pub device_uuid: [u8; 16],
    /// The cores of the policy; none: any.
    pub cpus: *const u32,
    /// Number of `cpus`.
    pub n_cpus: u32,
    /// Threads that the framework may use for this instance, at least 1.
    pub threads: u32,
    /// The memory node of the policy; -1: any.
    pub numa_node: i32,
    /// Largest number of rows in one batch, at least 1.
    pub max_rows: u32,
    /// CUDA driver handles, or null: the device's primary context and the host's three streams.
    pub cu_context: *mut u8,
    /// Stream for compute (`CUstream`), or null.
    pub cu_stream: *mut u8,
    /// Stream for copies to the device, or null.
    pub cu_copy_in: *mut u8,
    /// Stream for copies from the device, or null.
    pub cu_copy_out: *mut u8,
    /// `instance_group.profile` of the configuration.
    pub profiles: *const Str,
    /// Number of `profiles`.
    pub n_profiles: u32,
    /// Number of `secondary`.
    pub n_secondary: u32,
    /// `instance_group.secondary_devices` of the configuration.
    pub secondary: *const SecondaryDevice,
    /// Zeros.
    pub reserved: [u64; 4],
}

/// Bits of [`BackendInfo::flags`]. The host acts on `PARALLEL_OPEN`, `ANY_THREAD`, `MUST_ISOLATE`,
/// `SECONDARY_DEVICES`, `ACCELERATORS`, `BATCH_INPUTS`, `FREE_OUTPUTS` and those after it; the
/// others inform operators.
pub mod backend_flags {
    /// `instance_open` may run for several instances at once.
    pub const PARALLEL_OPEN: u32 = 1;
    /// An instance may execute on any thread, one at a time. It is opened and closed on its own.
    pub const ANY_THREAD: u32 = 2;
    /// An instance needs its device for itself.
    pub const DEVICE_EXCLUSIVE: u32 = 4;
    /// It gathers every input of a batch into one block.
    pub const USES_GATHER: u32 = 8;
    /// It uses CUDA streams of its own and none of the host's.
    pub const OWN_STREAM: u32 = 16;
    /// Its models run in a child process unless the operator says otherwise.
    pub const MUST_ISOLATE: u32 = 32;
    /// It uses the secondary devices of an instance; else the host warns that they have no effect.
    pub const SECONDARY_DEVICES: u32 = 64;
    /// It reads `optimization.execution_accelerators` and refuses accelerators that it does not
    /// support. Without this flag the host refuses all.
    pub const ACCELERATORS: u32 = 128;
    /// It reads batch inputs: those of all requests of a batch, one after another. Without this
    /// flag the host refuses `batch_input`.
    pub const BATCH_INPUTS: u32 = 256;
    /// Outputs of its responses may differ from the configuration: clients get the data type and
    /// the shape that it sends. Without this flag the host refuses such outputs. The host still
    /// checks that the bytes fit the shape, and checks states, reshaped outputs and outputs of a
    /// whole batch against the configuration.
    pub const FREE_OUTPUTS: u32 = 512;
    /// Files of its models are data: no model can make the process run, read or write anything
    /// else. Without this flag the host refuses models that come with a load request where the
    /// operator allows no code in them.
    pub const DATA_MODELS: u32 = 1024;
    /// It uses the optimization profiles of an instance (`instance_group.profile`); else the host
    /// refuses them.
    pub const PROFILES: u32 = 2048;
    /// It has shape tensors (`is_shape_tensor`); else the host refuses them, because it would read
    /// them as ordinary ones.
    pub const SHAPE_TENSORS: u32 = 4096;
    /// It has tensors in formats of their own (`is_non_linear_format_io`); else the host refuses
    /// them.
    pub const NON_LINEAR_IO: u32 = 8192;
    /// Of the fields of a configuration that only some backends use, it uses those that a flag
    /// after this one names, and no others: the host warns of the others at load. Without this flag
    /// the host knows nothing of them and does not warn.
    pub const LISTS_FIELDS: u32 = 16384;
    /// With `LISTS_FIELDS`: it uses `optimization.graph.level`.
    pub const GRAPH_LEVELS: u32 = 32768;
    /// With `LISTS_FIELDS`: it uses `optimization.cuda.graphs` and `graph_spec`.
    pub const CUDA_GRAPHS: u32 = 65536;
    /// With `LISTS_FIELDS`: it uses `model_operations.op_library_filename`.
    pub const OPERATION_LIBRARIES: u32 = 131072;
    /// It completes models with the batch size of the setting `default-max-batch-size`, which was 1
    /// in v1.x: with a start line of v1.x the host sets it to 1, unless the operator sets it.
    pub const V1_BATCH_SIZE: u32 = 262144;
    /// Its setting `version` is its own, such as the generation of its framework. Without this flag
    /// the host takes it: it is the version of the plugin that models get.
    pub const OWN_VERSION_SETTING: u32 = 524288;
}

/// Instances that a backend prefers where the configuration names no kind or no count.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct PreferredGroup {
    /// One of [`instance_kind`].
    pub kind: u32,
    /// Number of instances on each device of that kind.
    pub count: u32,
}

/// A backend as it describes itself. Static, or valid until `backend_close` when it was returned
/// for an open backend.
#[repr(C)]
#[derive(StableAbi)]
pub struct BackendInfo {
    /// sizeof, as the backend was built.
    pub size: u64,
    /// As in `backend:` of a model configuration.
    pub name: Str,
    /// Of the backend, for logs and the list of backends.
    pub version: Str,
    /// The framework and its version, e.g. "ONNX Runtime 1.31.1"; empty until the backend is open.
    pub runtime: Str,
    /// As in `platform:` of a model configuration.
    pub platforms: *const Str,
    /// Default model file of each platform, same order; empty = none.
    pub default_files: *const Str,
    /// That `get_extension` of the backend table returns.
    pub extensions: *const Extension,
    /// Extensions that the backend requires of the host; a host that lacks one refuses to load it.
    pub required_extensions: *const Extension,
    /// Number of `platforms`.
    pub n_platforms: u32,
    /// Number of `extensions`.
    pub n_extensions: u32,
    /// Number of `required_extensions`.
    pub n_required_extensions: u32,
    /// Bits of [`backend_flags`].
    pub flags: u32,
    /// Batches accepted but unanswered per instance; 1 = ordinary.
    pub max_in_flight: u32,
    /// Bit sets by memory type: bit `1 << memory_type::CPU` and so on.
    pub input_memory_types: u32,
    /// Bit set of what it writes.
    pub output_memory_types: u32,
    /// Kinds of instance that it opens: bit `1 << instance_kind::GPU` and so on; 0 = CPU and MODEL.
    /// An open backend may list fewer, if its framework has no others here: KIND_AUTO chooses among
    /// those, and `model_open` refuses a configuration that names one of the others, with the
    /// reason.
    pub instance_kinds: u32,
    /// Stack of an instance's thread in KiB; 0 = the host's default of 8 MiB.
    pub stack_kib: u32,
    /// Alignment required of inputs, a power of two up to 64; 0 = natural alignment of the element.
    pub align: u32,
    /// Number of `preferred`.
    pub n_preferred: u32,
    /// As `max_in_flight`, for instances on GPUs; 0 = the same.
    pub gpu_max_in_flight: u32,
    /// In the order of preference.
    pub preferred: *const PreferredGroup,
    /// As `max_in_flight`, for instances of decoupled models; 0 = the same.
    pub decoupled_max_in_flight: u32,
    /// Zero.
    pub pad: u32,
    /// Zeros.
    pub reserved: [u64; 3],
}

// SAFETY: a `BackendInfo` is read-only once created and points at memory that lives as long;
// sharing it is sharing constants.
unsafe impl Sync for BackendInfo {}
