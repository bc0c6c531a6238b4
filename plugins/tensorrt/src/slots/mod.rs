//! Slots of TensorRT's virtual tables for each major version, as data: which entry of a class's
//! table is which method.
//!
//! TensorRT's C++ methods are inline and call a virtual method of the object that `mImpl` points to
//! (classes `VRuntime`, `VCudaEngine` and so on). Within a major version these classes only grow at
//! their end; between majors they are reordered. So a table for each major describes all its
//! releases, and a method says since which release it exists.
//!
//! A number is the index in the table of the Itanium C++ ABI: a virtual destructor takes two
//! entries. Each table states where its numbers come from. The fake library of the tests has
//! numbers of its own, counted independently.

mod v10;
mod v11;
mod v8;
mod version;

pub use version::Version;

/// A method in the virtual table of its class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Method {
    slot: u16,
    since: Version,
}

impl Method {
    /// In every supported release of the major.
    const fn at(slot: u16) -> Method {
        Method { slot, since: Version::new(0, 0, 0) }
    }

    const fn since(slot: u16, major: u32, minor: u32) -> Method {
        Method { slot, since: Version::new(major, minor, 0) }
    }

    /// The class has no such method in this major.
    const NONE: Method = Method::at(u16::MAX);

    /// The slot, if a library of `version` has the method.
    pub fn slot(self, version: Version) -> Option<usize> {
        (self != Method::NONE && version >= self.since).then_some(usize::from(self.slot))
    }
}

/// `Dims`: the type of a dimension. The struct has a count of 32 bits and eight dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DimsLayout {
    /// 36 bytes.
    Int32,
    /// 72 bytes, the dimensions at offset 8.
    Int64,
}

/// How `createExecutionContext` is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContextCreation {
    /// Without an argument.
    Plain,
    /// With an `ExecutionContextAllocationStrategy`.
    WithStrategy,
}

macro_rules! classes {
    ($($(#[$doc:meta])* $field:ident: $class:ident { $($method:ident = $name:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $class { $(pub $method: Method,)* }

            #[cfg(test)]
            impl $class {
                fn list(&self, to: &mut Vec<(&'static str, &'static str, Method)>) {
                    $(to.push((stringify!($class), $name, self.$method));)*
                }
            }
        )*

        /// All slots of a major version.
        #[derive(Clone, Copy, Debug)]
        pub struct SlotTable {
            pub major: u32,
            /// The oldest release that is used.
            pub oldest: Version,
            pub dims: DimsLayout,
            pub context_creation: ContextCreation,
            /// `deserializeCudaEngine` has a third argument, a null pointer.
            pub deserialize_has_factory: bool,
            /// Callback classes derive from `IVersionedInterface`, whose four entries come first;
            /// the others have none.
            pub logger_is_versioned: bool,
            pub allocators_are_versioned: bool,
            $(pub $field: $class,)*
        }

        #[cfg(test)]
        impl SlotTable {
            /// Class, method and slot of every method.
            pub fn methods(&self) -> Vec<(&'static str, &'static str, Method)> {
                let mut all = Vec::new();
                $(self.$field.list(&mut all);)*
                all
            }
        }
    };
}

classes! {
    /// `VRuntime`, behind the `mImpl` of `IRuntime`.
    runtime: Runtime {
        deserialize_cuda_engine = "deserializeCudaEngine",
        set_gpu_allocator = "setGpuAllocator",
        set_engine_host_code_allowed = "setEngineHostCodeAllowed",
    }
    /// `VCudaEngine`.
    engine: Engine {
        create_execution_context = "createExecutionContext",
        get_nb_io_tensors = "getNbIOTensors",
        get_io_tensor_name = "getIOTensorName",
        get_tensor_shape = "getTensorShape",
        get_tensor_data_type = "getTensorDataType",
        get_tensor_location = "getTensorLocation",
        get_tensor_io_mode = "getTensorIOMode",
        get_tensor_format = "getTensorFormat",
        is_shape_inference_io = "isShapeInferenceIO",
        get_nb_optimization_profiles = "getNbOptimizationProfiles",
        get_profile_shape = "getProfileShape",
        get_profile_shape_values = "getProfileShapeValues",
        get_profile_tensor_values = "getProfileTensorValues",
        get_profile_tensor_values_v2 = "getProfileTensorValuesV2",
        is_refittable = "isRefittable",
        has_implicit_batch_dimension = "hasImplicitBatchDimension",
        get_max_batch_size = "getMaxBatchSize",
        get_nb_bindings = "getNbBindings",
        get_binding_index = "getBindingIndex",
    }
    /// `VExecutionContext`.
    context: Context {
        set_optimization_profile_async = "setOptimizationProfileAsync",
        set_input_shape = "setInputShape",
        get_tensor_shape = "getTensorShape",
        set_tensor_address = "setTensorAddress",
        infer_shapes = "inferShapes",
        set_output_allocator = "setOutputAllocator",
        set_temporary_storage_allocator = "setTemporaryStorageAllocator",
        enqueue_v3 = "enqueueV3",
        enqueue = "enqueue",
    }
    /// `VRefitter`.
    refitter: Refitter {
        refit_cuda_engine = "refitCudaEngine",
        set_named_weights = "setNamedWeights",
        get_missing_weights = "getMissingWeights",
        get_all_weights = "getAllWeights",
    }
    /// `ILogger`, implemented by the plugin.
    logger: Logger {
        log = "log",
    }
    /// `IGpuAllocator`, implemented by the plugin.
    gpu_allocator: GpuAllocator {
        allocate = "allocate",
        free = "free",
        reallocate = "reallocate",
        deallocate = "deallocate",
        allocate_async = "allocateAsync",
        deallocate_async = "deallocateAsync",
    }
    /// `IOutputAllocator`, implemented by the plugin.
    output_allocator: OutputAllocator {
        get_interface_version = "getInterfaceVersion",
        reallocate_output = "reallocateOutput",
        reallocate_output_async = "reallocateOutputAsync",
        notify_shape = "notifyShape",
    }
}

/// Entries of `IVersionedInterface`, which come first in the tables of classes that derive from it;
/// 2 and 3 are destructors.
pub mod versioned {
    pub const GET_API_LANGUAGE: usize = 0;
    pub const GET_INTERFACE_INFO: usize = 1;
}

/// Objects of the API (`IRuntime`, `ICudaEngine`, `IExecutionContext`, `IRefitter`): two pointers,
/// the virtual table, whose second entry deletes the object, and `mImpl`.
pub mod object {
    pub const DELETE: usize = 1;
    pub const IMPL_OFFSET: usize = 8;
}

/// The majors that have a table, oldest first.
pub static TABLES: [&SlotTable; 3] = [&v8::TABLE, &v10::TABLE, &v11::TABLE];

/// The table of a major version.
pub fn slot_table(major: u32) -> Option<&'static SlotTable> {
    TABLES.into_iter().find(|table| table.major == major)
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
