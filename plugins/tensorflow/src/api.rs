//! The functions of TensorFlow's C API that this plugin calls, looked up by name in a library
//! opened at run time.
//!
//! Declared here, not taken from the crate `tensorflow`: that crate wants its library at build
//! time, panics when it is absent, and copies tensors. The declarations follow
//! `tensorflow/c/c_api.h`, which is stable across 2.x.

use std::ffi::{c_char, c_int, c_void};
use trtserver_framework::{function_table, opaque_types};

opaque_types! {
    TfStatus TfTensor TfGraph TfOperation TfSession TfSessionOptions TfImportOptions TfLibrary TfDeviceList
}

/// `TF_Buffer`: bytes, and how the library frees them.
#[repr(C)]
pub struct TfBuffer {
    pub data: *const c_void,
    pub length: usize,
    pub free: Option<unsafe extern "C" fn(*mut c_void, usize)>,
}

/// `TF_Output`: an output of an operation.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct TfOutput {
    pub operation: *mut TfOperation,
    pub index: c_int,
}

/// Frees the memory of a tensor: address, size, argument.
pub type Free = unsafe extern "C" fn(*mut c_void, usize, *mut c_void);

function_table! {
    /// One field per function, named without `TF_`.
    Api;

    version = "TF_Version": fn() -> *const c_char;

    new_status = "TF_NewStatus": fn() -> *mut TfStatus;
    delete_status = "TF_DeleteStatus": fn(*mut TfStatus);
    get_code = "TF_GetCode": fn(*const TfStatus) -> c_int;
    message = "TF_Message": fn(*const TfStatus) -> *const c_char;

    new_buffer = "TF_NewBuffer": fn() -> *mut TfBuffer;
    delete_buffer = "TF_DeleteBuffer": fn(*mut TfBuffer);

    new_tensor = "TF_NewTensor": fn(
        c_int, *const i64, c_int, *mut c_void, usize, Free, *mut c_void
    ) -> *mut TfTensor;
    allocate_tensor = "TF_AllocateTensor": fn(c_int, *const i64, c_int, usize) -> *mut TfTensor;
    delete_tensor = "TF_DeleteTensor": fn(*mut TfTensor);
    tensor_type = "TF_TensorType": fn(*const TfTensor) -> c_int;
    num_dims = "TF_NumDims": fn(*const TfTensor) -> c_int;
    dim = "TF_Dim": fn(*const TfTensor, c_int) -> i64;
    tensor_byte_size = "TF_TensorByteSize": fn(*const TfTensor) -> usize;
    tensor_data = "TF_TensorData": fn(*const TfTensor) -> *mut c_void;
    // Since 2.4: the releases before have another layout of strings.
    string_copy = "TF_StringCopy": fn(*mut c_void, *const c_char, usize);
    string_dealloc = "TF_StringDealloc": fn(*mut c_void);

    new_graph = "TF_NewGraph": fn() -> *mut TfGraph;
    delete_graph = "TF_DeleteGraph": fn(*mut TfGraph);
    new_import_options = "TF_NewImportGraphDefOptions": fn() -> *mut TfImportOptions;
    delete_import_options = "TF_DeleteImportGraphDefOptions": fn(*mut TfImportOptions);
    import_graph_def = "TF_GraphImportGraphDef": fn(
        *mut TfGraph, *const TfBuffer, *const TfImportOptions, *mut TfStatus
    );
    operation_by_name = "TF_GraphOperationByName": fn(
        *mut TfGraph, *const c_char
    ) -> *mut TfOperation;
    operation_outputs = "TF_OperationNumOutputs": fn(*mut TfOperation) -> c_int;
    output_type = "TF_OperationOutputType": fn(TfOutput) -> c_int;
    tensor_num_dims = "TF_GraphGetTensorNumDims": fn(
        *mut TfGraph, TfOutput, *mut TfStatus
    ) -> c_int;
    tensor_shape = "TF_GraphGetTensorShape": fn(
        *mut TfGraph, TfOutput, *mut i64, c_int, *mut TfStatus
    );

    new_session_options = "TF_NewSessionOptions": fn() -> *mut TfSessionOptions;
    delete_session_options = "TF_DeleteSessionOptions": fn(*mut TfSessionOptions);
    set_config = "TF_SetConfig": fn(
        *mut TfSessionOptions, *const c_void, usize, *mut TfStatus
    );
    new_session = "TF_NewSession": fn(
        *mut TfGraph, *const TfSessionOptions, *mut TfStatus
    ) -> *mut TfSession;
    load_saved_model = "TF_LoadSessionFromSavedModel": fn(
        *const TfSessionOptions, *const TfBuffer, *const c_char, *const *const c_char, c_int,
        *mut TfGraph, *mut TfBuffer, *mut TfStatus
    ) -> *mut TfSession;
    close_session = "TF_CloseSession": fn(*mut TfSession, *mut TfStatus);
    delete_session = "TF_DeleteSession": fn(*mut TfSession, *mut TfStatus);
    session_run = "TF_SessionRun": fn(
        *mut TfSession, *const TfBuffer,
        *const TfOutput, *const *mut TfTensor, c_int,
        *const TfOutput, *mut *mut TfTensor, c_int,
        *const *const TfOperation, c_int,
        *mut TfBuffer, *mut TfStatus
    );
    list_devices = "TF_SessionListDevices": fn(*mut TfSession, *mut TfStatus) -> *mut TfDeviceList;
    device_count = "TF_DeviceListCount": fn(*const TfDeviceList) -> c_int;
    device_type = "TF_DeviceListType": fn(
        *const TfDeviceList, c_int, *mut TfStatus
    ) -> *const c_char;
    delete_device_list = "TF_DeleteDeviceList": fn(*mut TfDeviceList);

    all_operations = "TF_GetAllOpList": fn() -> *mut TfBuffer;
    registered_kernels = "TF_GetRegisteredKernelsForOp": fn(*const c_char, *mut TfStatus) -> *mut TfBuffer;
    load_library = "TF_LoadLibrary": fn(*const c_char, *mut TfStatus) -> *mut TfLibrary;
    delete_library_handle = "TF_DeleteLibraryHandle": fn(*mut TfLibrary);
    register_log_listener = "TF_RegisterLogListener": fn(unsafe extern "C" fn(*const c_char));
}
