//! The C functions that this plugin calls: those of torch's library, and those that each compiled
//! model exports.
//!
//! The declarations follow `aoti_torch/c/shim.h` and `aoti_runtime/interface.h`, which torch keeps
//! stable. Each function that can fail returns 0 or another number; the reason goes to the standard
//! error.

use std::ffi::{c_char, c_int, c_void};
use trtserver_framework::{function_table, opaque_types};

opaque_types! { AtenTensor AotiContainer }

function_table! {
    /// Of `libtorch_cpu.so`.
    TorchTable;

    // The release in the highest three bytes.
    abi_version = "aoti_torch_abi_version": fn() -> u64;
    device_type_cpu = "aoti_torch_device_type_cpu": fn() -> i32;
    layout_strided = "aoti_torch_layout_strided": fn() -> i32;
    float16 = "aoti_torch_dtype_float16": fn() -> i32;
    bfloat16 = "aoti_torch_dtype_bfloat16": fn() -> i32;
    float32 = "aoti_torch_dtype_float32": fn() -> i32;
    float64 = "aoti_torch_dtype_float64": fn() -> i32;
    uint8 = "aoti_torch_dtype_uint8": fn() -> i32;
    uint16 = "aoti_torch_dtype_uint16": fn() -> i32;
    uint32 = "aoti_torch_dtype_uint32": fn() -> i32;
    uint64 = "aoti_torch_dtype_uint64": fn() -> i32;
    int8 = "aoti_torch_dtype_int8": fn() -> i32;
    int16 = "aoti_torch_dtype_int16": fn() -> i32;
    int32 = "aoti_torch_dtype_int32": fn() -> i32;
    int64 = "aoti_torch_dtype_int64": fn() -> i32;
    bool8 = "aoti_torch_dtype_bool": fn() -> i32;
    // Data, rank, sizes, strides, offset, type, type of the device, its index, result.
    from_blob = "aoti_torch_create_tensor_from_blob": fn(
        *mut c_void, i64, *const i64, *const i64, i64, i32, i32, i32, *mut *mut AtenTensor
    ) -> i32;
    delete = "aoti_torch_delete_tensor_object": fn(*mut AtenTensor) -> i32;
    data = "aoti_torch_get_data_ptr": fn(*mut AtenTensor, *mut *mut c_void) -> i32;
    rank = "aoti_torch_get_dim": fn(*mut AtenTensor, *mut i64) -> i32;
    sizes = "aoti_torch_get_sizes": fn(*mut AtenTensor, *mut *mut i64) -> i32;
    dtype = "aoti_torch_get_dtype": fn(*mut AtenTensor, *mut i32) -> i32;
    layout = "aoti_torch_get_layout": fn(*mut AtenTensor, *mut i32) -> i32;
    device_type = "aoti_torch_get_device_type": fn(*mut AtenTensor, *mut i32) -> i32;
    is_contiguous = "aoti_torch_is_contiguous": fn(*mut AtenTensor, *mut bool) -> i32;
    // To, from, whether to return before it is done.
    copy = "aoti_torch_copy_": fn(*mut AtenTensor, *mut AtenTensor, i32) -> i32;
}

/// Sets the threads of the calling thread's next parallel regions; of the OpenMP library that torch
/// uses.
pub type SetThreads = unsafe extern "C" fn(c_int);

function_table! {
    /// Of the compiled model of a package.
    ContainerTable;

    // Result, runs at a time, device, directory of GPU code.
    create = "AOTInductorModelContainerCreateWithDevice": fn(
        *mut *mut AotiContainer, usize, *const c_char, *const c_char
    ) -> i32;
    delete = "AOTInductorModelContainerDelete": fn(*mut AotiContainer) -> i32;
    num_inputs = "AOTInductorModelContainerGetNumInputs": fn(
        *mut AotiContainer, *mut usize
    ) -> i32;
    num_outputs = "AOTInductorModelContainerGetNumOutputs": fn(
        *mut AotiContainer, *mut usize
    ) -> i32;
    call_spec = "AOTInductorModelContainerGetCallSpec": fn(
        *mut AotiContainer, *mut *const c_char, *mut *const c_char
    ) -> i32;
    // Inputs, which the call takes, their number, outputs, which become the caller's, their number,
    // stream, executor of operators that have no C function.
    run = "AOTInductorModelContainerRun": fn(
        *mut AotiContainer, *mut *mut AtenTensor, usize, *mut *mut AtenTensor, usize,
        *mut c_void, *mut c_void
    ) -> i32;
}
