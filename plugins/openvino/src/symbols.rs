//! The functions of OpenVINO's C library that this plugin calls, looked up by name in a library that
//! is opened at run time.
//!
//! The declarations follow the headers in `openvino/c/`. No crate is used for them: the one that
//! exists is bound to a range of releases.

use std::ffi::{c_char, c_int, c_void};
use trtserver_framework::{function_table, opaque_types};

opaque_types! { OvCore OvNetwork OvCompiled OvRequest OvPort OvTensor }

/// A result: 0, or what went wrong.
pub type Status = c_int;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct OvShape {
    pub rank: i64,
    pub dims: *mut i64,
}

/// Limits of a dimension, both inclusive; -1 = none above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct OvDimension {
    pub min: i64,
    pub max: i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct OvPartialShape {
    /// Dynamic, or the number of `dims`.
    pub rank: OvDimension,
    pub dims: *mut OvDimension,
}

#[repr(C)]
pub struct OvVersion {
    pub build: *const c_char,
    pub description: *const c_char,
}

#[repr(C)]
pub struct OvDevices {
    pub names: *mut *mut c_char,
    pub count: usize,
}

/// Compiles a network for a device: number of the arguments that follow the result, which are keys
/// and values by turns.
pub type CompileFunction = unsafe extern "C" fn(
    *const OvCore,
    *const OvNetwork,
    *const c_char,
    usize,
    *mut *mut OvCompiled,
    ...
) -> Status;

/// Adds the operations of a library.
pub type ExtendFunction = unsafe extern "C" fn(*const OvCore, *const c_char) -> Status;

function_table! {
    /// OpenVINO, as its releases have it since 2025.0.
    OvTable;

    version = "ov_get_openvino_version": fn(*mut OvVersion) -> Status;
    version_free = "ov_version_free": fn(*mut OvVersion);
    last_error = "ov_get_last_err_msg": fn() -> *const c_char;
    status_text = "ov_get_error_info": fn(Status) -> *const c_char;
    free = "ov_free": fn(*const c_char);

    core_create = "ov_core_create": fn(*mut *mut OvCore) -> Status;
    core_free = "ov_core_free": fn(*mut OvCore);
    devices = "ov_core_get_available_devices": fn(*const OvCore, *mut OvDevices) -> Status;
    devices_free = "ov_available_devices_free": fn(*mut OvDevices);

    // Path of the model, path of its weights or null.
    network_read = "ov_core_read_model": fn(
        *const OvCore, *const c_char, *const c_char, *mut *mut OvNetwork
    ) -> Status;
    network_free = "ov_model_free": fn(*mut OvNetwork);
    inputs_size = "ov_model_inputs_size": fn(*const OvNetwork, *mut usize) -> Status;
    outputs_size = "ov_model_outputs_size": fn(*const OvNetwork, *mut usize) -> Status;
    input_at = "ov_model_const_input_by_index": fn(
        *const OvNetwork, usize, *mut *mut OvPort
    ) -> Status;
    output_at = "ov_model_const_output_by_index": fn(
        *const OvNetwork, usize, *mut *mut OvPort
    ) -> Status;
    input_named = "ov_model_const_input_by_name": fn(
        *const OvNetwork, *const c_char, *mut *mut OvPort
    ) -> Status;
    output_named = "ov_model_const_output_by_name": fn(
        *const OvNetwork, *const c_char, *mut *mut OvPort
    ) -> Status;
    // Positions of inputs, their shapes, number.
    reshape = "ov_model_reshape_by_port_indexes": fn(
        *const OvNetwork, *const usize, *const OvPartialShape, usize
    ) -> Status;

    port_name = "ov_port_get_any_name": fn(*const OvPort, *mut *mut c_char) -> Status;
    port_shape = "ov_port_get_partial_shape": fn(*const OvPort, *mut OvPartialShape) -> Status;
    port_element = "ov_port_get_element_type": fn(*const OvPort, *mut c_int) -> Status;
    port_free = "ov_output_const_port_free": fn(*mut OvPort);
    partial_shape_free = "ov_partial_shape_free": fn(*mut OvPartialShape);

    compiled_free = "ov_compiled_model_free": fn(*mut OvCompiled);
    property = "ov_compiled_model_get_property": fn(
        *const OvCompiled, *const c_char, *mut *mut c_char
    ) -> Status;
    request_create = "ov_compiled_model_create_infer_request": fn(
        *const OvCompiled, *mut *mut OvRequest
    ) -> Status;
    request_free = "ov_infer_request_free": fn(*mut OvRequest);
    set_input = "ov_infer_request_set_input_tensor_by_index": fn(
        *mut OvRequest, usize, *const OvTensor
    ) -> Status;
    set_output = "ov_infer_request_set_output_tensor_by_index": fn(
        *mut OvRequest, usize, *const OvTensor
    ) -> Status;
    output = "ov_infer_request_get_output_tensor_by_index": fn(
        *const OvRequest, usize, *mut *mut OvTensor
    ) -> Status;
    infer = "ov_infer_request_infer": fn(*mut OvRequest) -> Status;

    // Element type, shape, memory.
    tensor_over = "ov_tensor_create_from_host_ptr": fn(
        c_int, OvShape, *mut c_void, *mut *mut OvTensor
    ) -> Status;
    tensor_shape = "ov_tensor_get_shape": fn(*const OvTensor, *mut OvShape) -> Status;
    tensor_set_shape = "ov_tensor_set_shape": fn(*mut OvTensor, OvShape) -> Status;
    tensor_bytes = "ov_tensor_get_byte_size": fn(*const OvTensor, *mut usize) -> Status;
    tensor_data = "ov_tensor_data": fn(*const OvTensor, *mut *mut c_void) -> Status;
    tensor_free = "ov_tensor_free": fn(*mut OvTensor);
    shape_free = "ov_shape_free": fn(*mut OvShape) -> Status;
}
