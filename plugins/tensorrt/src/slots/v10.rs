//! TensorRT 10.
//!
//! Source: the slots that `mod_tests.rs` lists are pointer-to-member values of the 10.16 headers as
//! g++ lays them out; the others are counted from `NvInferImpl.h` of 10.7 (Apache-2.0). The
//! callback classes are counted from their declarations.

use super::{
    Context, ContextCreation, DimsLayout, Engine, GpuAllocator, Logger, Method, OutputAllocator,
    Refitter, Runtime, SlotTable, Version,
};

pub static TABLE: SlotTable = SlotTable {
    major: 10,
    oldest: Version::new(10, 0, 0),
    dims: DimsLayout::Int64,
    context_creation: ContextCreation::WithStrategy,
    deserialize_has_factory: false,
    logger_is_versioned: false,
    allocators_are_versioned: true,
    runtime: Runtime {
        deserialize_cuda_engine: Method::at(3),
        set_gpu_allocator: Method::at(8),
        set_engine_host_code_allowed: Method::at(21),
    },
    engine: Engine {
        create_execution_context: Method::at(5),
        get_nb_io_tensors: Method::at(30),
        get_io_tensor_name: Method::at(31),
        get_tensor_shape: Method::at(19),
        get_tensor_data_type: Method::at(20),
        get_tensor_location: Method::at(21),
        get_tensor_io_mode: Method::at(23),
        get_tensor_format: Method::at(26),
        is_shape_inference_io: Method::at(22),
        get_nb_optimization_profiles: Method::at(10),
        get_profile_shape: Method::at(29),
        get_profile_shape_values: Method::NONE,
        get_profile_tensor_values: Method::at(11),
        // Exists since 10.11; its place among what 10.9 to 10.11 added is not confirmed.
        get_profile_tensor_values_v2: Method::NONE,
        is_refittable: Method::at(8),
        has_implicit_batch_dimension: Method::NONE,
        get_max_batch_size: Method::NONE,
        get_nb_bindings: Method::NONE,
        get_binding_index: Method::NONE,
    },
    context: Context {
        set_optimization_profile_async: Method::at(17),
        set_input_shape: Method::at(21),
        get_tensor_shape: Method::at(22),
        set_tensor_address: Method::at(24),
        infer_shapes: Method::at(28),
        set_output_allocator: Method::at(32),
        set_temporary_storage_allocator: Method::at(35),
        enqueue_v3: Method::at(37),
        enqueue: Method::NONE,
    },
    refitter: Refitter {
        refit_cuda_engine: Method::at(4),
        set_named_weights: Method::at(13),
        get_missing_weights: Method::at(14),
        get_all_weights: Method::at(15),
    },
    logger: Logger { log: Method::at(0) },
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
