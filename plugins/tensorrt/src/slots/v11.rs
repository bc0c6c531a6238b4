//! TensorRT 11.
//!
//! Source: pointer-to-member values of the 11.4 headers (`NvInferImpl.h`, `NvInferRuntime.h`,
//! `NvInferRuntimeBase.h`, Apache-2.0, in the crate `trtx-sys` 0.9.1) as g++ lays them out.

use super::{
    Context, ContextCreation, DimsLayout, Engine, GpuAllocator, Logger, Method, OutputAllocator,
    Refitter, Runtime, SlotTable, Version,
};

pub static TABLE: SlotTable = SlotTable {
    major: 11,
    oldest: Version::new(11, 0, 0),
    dims: DimsLayout::Int64,
    context_creation: ContextCreation::WithStrategy,
    deserialize_has_factory: false,
    logger_is_versioned: true,
    allocators_are_versioned: true,
    runtime: Runtime {
        deserialize_cuda_engine: Method::at(3),
        set_gpu_allocator: Method::at(7),
        set_engine_host_code_allowed: Method::at(20),
    },
    engine: Engine {
        create_execution_context: Method::at(5),
        get_nb_io_tensors: Method::at(26),
        get_io_tensor_name: Method::at(27),
        get_tensor_shape: Method::at(15),
        get_tensor_data_type: Method::at(16),
        get_tensor_location: Method::at(17),
        get_tensor_io_mode: Method::at(19),
        get_tensor_format: Method::at(22),
        is_shape_inference_io: Method::at(18),
        get_nb_optimization_profiles: Method::at(8),
        get_profile_shape: Method::at(25),
        get_profile_shape_values: Method::NONE,
        get_profile_tensor_values: Method::NONE,
        get_profile_tensor_values_v2: Method::at(46),
        is_refittable: Method::at(6),
        has_implicit_batch_dimension: Method::NONE,
        get_max_batch_size: Method::NONE,
        get_nb_bindings: Method::NONE,
        get_binding_index: Method::NONE,
    },
    context: Context {
        set_optimization_profile_async: Method::at(16),
        set_input_shape: Method::at(20),
        get_tensor_shape: Method::at(21),
        set_tensor_address: Method::at(23),
        infer_shapes: Method::at(27),
        set_output_allocator: Method::at(31),
        set_temporary_storage_allocator: Method::at(34),
        enqueue_v3: Method::at(36),
        enqueue: Method::NONE,
    },
    refitter: Refitter {
        refit_cuda_engine: Method::at(4),
        set_named_weights: Method::at(9),
        get_missing_weights: Method::at(10),
        get_all_weights: Method::at(11),
    },
    logger: Logger { log: Method::at(4) },
    gpu_allocator: GpuAllocator {
        allocate: Method::at(4),
        free: Method::NONE,
        reallocate: Method::at(5),
        deallocate: Method::at(6),
        allocate_async: Method::at(7),
        deallocate_async: Method::at(8),
    },
    output_allocator: OutputAllocator {
        get_interface_version: Method::NONE,
        reallocate_output: Method::at(4),
        reallocate_output_async: Method::at(5),
        notify_shape: Method::at(6),
    },
};
