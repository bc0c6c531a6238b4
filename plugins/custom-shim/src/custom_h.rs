//! The functions and structures of `custom.h` in all its generations, for LP64 machines.
//!
//! Functions of a library are `C-unwind`: a C++ exception that escapes one then aborts the process
//! instead of being undefined behaviour. Version 2's callbacks omit the last pointer,
//! `memory_type_id`: libraries of 1.6 and 1.7 do not pass it, and libraries of later releases set
//! the variable behind it themselves.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

/// Payload of generation A: one request of an execution.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PayloadA {
    pub batch_size: u32,
    pub output_cnt: u32,
    pub required_output_names: *const *const c_char,
    pub input_context: *mut c_void,
    pub output_context: *mut c_void,
    /// Set by the library: not 0 fails this payload alone.
    pub error_code: c_int,
}

/// Payload of all later generations: one request of an execution.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Payload {
    pub batch_size: u32,
    pub input_cnt: u32,
    pub input_names: *const *const c_char,
    /// Rank of each input, without the batch dimension.
    pub input_shape_dim_cnts: *const usize,
    /// Dimensions of each input, without the batch dimension.
    pub input_shape_dims: *const *const i64,
    pub output_cnt: u32,
    pub required_output_names: *const *const c_char,
    pub input_context: *mut c_void,
    pub output_context: *mut c_void,
    /// Set by the library: not 0 fails this payload alone.
    pub error_code: c_int,
}

/// What generation C and later get at initialise.
#[repr(C)]
pub struct InitializeData {
    pub instance_name: *const c_char,
    pub serialized_model_config: *const c_char,
    pub serialized_model_config_size: usize,
    /// -1 = CPU.
    pub gpu_device_id: c_int,
    pub server_parameter_cnt: usize,
    /// Server version, path of the model repository.
    pub server_parameters: *const *const c_char,
}

const _: () = {
    assert!(size_of::<usize>() == 8 && size_of::<c_int>() == 4);
    assert!(size_of::<PayloadA>() == 40 && align_of::<PayloadA>() == 8);
    assert!(offset_of!(PayloadA, output_cnt) == 4);
    assert!(offset_of!(PayloadA, required_output_names) == 8);
    assert!(offset_of!(PayloadA, input_context) == 16);
    assert!(offset_of!(PayloadA, output_context) == 24);
    assert!(offset_of!(PayloadA, error_code) == 32);
    assert!(size_of::<Payload>() == 72 && align_of::<Payload>() == 8);
    assert!(offset_of!(Payload, input_cnt) == 4);
    assert!(offset_of!(Payload, input_names) == 8);
    assert!(offset_of!(Payload, input_shape_dim_cnts) == 16);
    assert!(offset_of!(Payload, input_shape_dims) == 24);
    assert!(offset_of!(Payload, output_cnt) == 32);
    assert!(offset_of!(Payload, required_output_names) == 40);
    assert!(offset_of!(Payload, input_context) == 48);
    assert!(offset_of!(Payload, output_context) == 56);
    assert!(offset_of!(Payload, error_code) == 64);
    assert!(size_of::<InitializeData>() == 48 && align_of::<InitializeData>() == 8);
    assert!(offset_of!(InitializeData, serialized_model_config) == 8);
    assert!(offset_of!(InitializeData, serialized_model_config_size) == 16);
    assert!(offset_of!(InitializeData, gpu_device_id) == 24);
    assert!(offset_of!(InitializeData, server_parameter_cnt) == 32);
    assert!(offset_of!(InitializeData, server_parameters) == 40);
};

/// `CustomMemoryType`; pinned (2) and GPU (1) memory is never returned here.
pub const MEMORY_CPU: c_int = 0;

pub type Context = *mut c_void;

pub type GetNextInput =
    unsafe extern "C" fn(Context, *const c_char, *mut *const c_void, *mut u64) -> bool;
pub type GetNextInputV2 =
    unsafe extern "C" fn(Context, *const c_char, *mut *const c_void, *mut u64, *mut c_int) -> bool;
pub type GetOutputA = unsafe extern "C" fn(Context, *const c_char, u64, *mut *mut c_void) -> bool;
pub type GetOutput =
    unsafe extern "C" fn(Context, *const c_char, usize, *mut i64, u64, *mut *mut c_void) -> bool;
pub type GetOutputV2 = unsafe extern "C" fn(
    Context,
    *const c_char,
    usize,
    *mut i64,
    u64,
    *mut *mut c_void,
    *mut c_int,
) -> bool;

pub type Version = unsafe extern "C-unwind" fn() -> u32;
pub type Finalize = unsafe extern "C-unwind" fn(Context) -> c_int;
pub type ErrorString = unsafe extern "C-unwind" fn(Context, c_int) -> *const c_char;

pub type InitializeA = unsafe extern "C-unwind" fn(*const c_char, c_int, *mut Context) -> c_int;
pub type InitializeB =
    unsafe extern "C-unwind" fn(*const c_char, usize, c_int, *mut Context) -> c_int;
pub type InitializeC = unsafe extern "C-unwind" fn(*const InitializeData, *mut Context) -> c_int;

#[derive(Clone, Copy)]
pub enum Initialize {
    A(InitializeA),
    B(InitializeB),
    C(InitializeC),
}

pub type ExecuteA =
    unsafe extern "C-unwind" fn(Context, u32, *mut PayloadA, GetNextInput, GetOutputA) -> c_int;
pub type ExecuteB =
    unsafe extern "C-unwind" fn(Context, u32, *mut Payload, GetNextInput, GetOutput) -> c_int;
pub type ExecuteV2 =
    unsafe extern "C-unwind" fn(Context, u32, *mut Payload, GetNextInputV2, GetOutputV2) -> c_int;

#[derive(Clone, Copy)]
pub enum Execute {
    A(ExecuteA),
    B(ExecuteB),
    V2(ExecuteV2),
}
