//! TensorRT 8.5 and 8.6. Older releases have no calls by tensor name.
//!
//! Source: the slots that `mod_tests.rs` lists are pointer-to-member values of the 8.6.1 headers
//! (`NvInferImpl.h`, Apache-2.0) as g++ lays them out; the others follow from the order of
//! declaration between them. The callback classes are counted from their declarations.

use super::{
    Context, ContextCreation, DimsLayout, Engine, GpuAllocator, Logger, Method, OutputAllocator,
    Refitter, Runtime, SlotTable, Version,
};

pub static TABLE: SlotTable = SlotTable {
    major: 8,
    oldest: Version::new(8, 5, 0),
    dims: DimsLayout::Int32,
    context_creation: ContextCreation::Plain,
    deserialize_has_factory: true,
    logger_is_versioned: false,
    allocators_are_versioned: false,
    runtime: Runtime {
        deserialize_cuda_engine: Method::at(2),
        set_gpu_allocator: Method::at(6),
        set_engine_host_code_allowed: Method::since(20, 8, 6),
    },
    engine: Engine {
        create_execution_context: Method::at(11),
        get_nb_io_tensors: Method::at(45),
        get_io_tensor_name: Method::at(46),
        get_tensor_shape: Method::at(34),
        get_tensor_data_type: Method::at(35),
        get_tensor_location: Method::at(36),
        get_tensor_io_mode: Method::at(38),
        get_tensor_format: Method::at(41),
        is_shape_inference_io: Method::at(37),
        get_nb_optimization_profiles: Method::at(22),
        get_profile_shape: Method::at(44),
        get_profile_shape_values: Method::at(24),
        get_profile_tensor_values: Method::NONE,
        get_profile_tensor_values_v2: Method::NONE,
        is_refittable: Method::at(15),
        has_implicit_batch_dimension: Method::at(30),
        get_max_batch_size: Method::at(8),
        get_nb_bindings: Method::at(2),
        get_binding_index: Method::at(3),
    },
    context: Context {
        set_optimization_profile_async: Method::at(25),
        set_input_shape: Method::at(29),
        get_tensor_shape: Method::at(30),
        set_tensor_address: Method::at(32),
        infer_shapes: Method::at(35),
        set_output_allocator: Method::at(39),
        set_temporary_storage_allocator: Method::at(42),
        enqueue_v3: Method::at(44),
        enqueue: Method::at(3),
    },
    refitter: Refitter {
        refit_cuda_engine: Method::at(3),
        set_named_weights: Method::at(12),
        get_missing_weights: Method::at(13),
        get_all_weights: Method::at(14),
    },
    logger: Logger { log: Method::at(0) },
    gpu_allocator: GpuAllocator {
        allocate: Method::at(0),
        free: Method::at(1),
        // 2 and 3 are destructors.
        reallocate: Method::at(4),
        deallocate: Method::at(5),
        allocate_async: Method::NONE,
        deallocate_async: Method::NONE,
    },
    output_allocator: OutputAllocator {
        get_interface_version: Method::at(0),
        reallocate_output: Method::at(1),
        reallocate_output_async: Method::NONE,
        notify_shape: Method::at(2),
    },
};
