//! Tensors, and the type and shape of tensors and of a session's inputs and outputs.

use super::handles::{OK, handle, release, status};
use crate::value::{MemoryInfo, Tensor, Value};
use ort_sys::*;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// A tensor's element type and dimensions, as type info and as shape info.
type Info = (i32, Vec<i64>);

pub unsafe extern "system" fn GetOnnxTypeFromTypeInfo(
    _: *const OrtTypeInfo,
    out: *mut ONNXType,
) -> OrtStatusPtr {
    give!(out, ONNXType::ONNX_TYPE_TENSOR);
    OK
}

pub unsafe extern "system" fn CastTypeInfoToTensorInfo(
    info: *const OrtTypeInfo,
    out: *mut *const OrtTensorTypeAndShapeInfo,
) -> OrtStatusPtr {
    give!(out, info.cast());
    OK
}

pub unsafe extern "system" fn GetTensorElementType(
    info: *const OrtTensorTypeAndShapeInfo,
    out: *mut ONNXTensorElementDataType,
) -> OrtStatusPtr {
    give!(out.cast::<i32>(), at!(info, Info).0);
    OK
}

pub unsafe extern "system" fn GetDimensionsCount(
    info: *const OrtTensorTypeAndShapeInfo,
    out: *mut usize,
) -> OrtStatusPtr {
    give!(out, at!(info, Info).1.len());
    OK
}

pub unsafe extern "system" fn GetDimensions(
    info: *const OrtTensorTypeAndShapeInfo,
    out: *mut i64,
    n: usize,
) -> OrtStatusPtr {
    for (i, dim) in at!(info, Info).1.iter().enumerate().take(n) {
        // SAFETY: the caller passes a list of `n`.
        unsafe { out.add(i).write(*dim) };
    }
    OK
}

/// No dimension has a name.
pub unsafe extern "system" fn GetSymbolicDimensions(
    _: *const OrtTensorTypeAndShapeInfo,
    out: *mut *const c_char,
    n: usize,
) -> OrtStatusPtr {
    for i in 0..n {
        // SAFETY: the caller passes a list of `n`.
        unsafe { out.add(i).write(c"".as_ptr()) };
    }
    OK
}

pub unsafe extern "system" fn GetTensorTypeAndShape(
    value: *const OrtValue,
    out: *mut *mut OrtTensorTypeAndShapeInfo,
) -> OrtStatusPtr {
    let value = at!(value, Value);
    give!(out, handle((value.element, value.shape.clone())));
    OK
}

pub unsafe extern "system" fn ReleaseTypeInfo(info: *mut OrtTypeInfo) {
    // SAFETY: the caller's handle.
    unsafe { release::<Info, _>(info) }
}

pub unsafe extern "system" fn ReleaseTensorTypeAndShapeInfo(info: *mut OrtTensorTypeAndShapeInfo) {
    // SAFETY: the caller's handle.
    unsafe { release::<Info, _>(info) }
}

pub unsafe extern "system" fn CreateTensorWithDataAsOrtValue(
    info: *const OrtMemoryInfo,
    data: *mut c_void,
    bytes: usize,
    shape: *const i64,
    rank: usize,
    element: ONNXTensorElementDataType,
    out: *mut *mut OrtValue,
) -> OrtStatusPtr {
    // SAFETY: the caller passes `rank` dimensions.
    let shape = unsafe { std::slice::from_raw_parts(shape, rank) };
    let place = at!(info, MemoryInfo).place;
    let made = Tensor::over(element as i32, shape, data.cast(), bytes, place);
    status(made.map(|tensor| give!(out, handle(Arc::new(tensor)))))
}

pub unsafe extern "system" fn ReleaseValue(value: *mut OrtValue) {
    // SAFETY: the caller's handle.
    unsafe { release::<Value, _>(value) }
}

pub unsafe extern "system" fn IsTrue(_: *const OrtValue, out: *mut c_int) -> OrtStatusPtr {
    give!(out, 1);
    OK
}

pub unsafe extern "system" fn GetTensorMutableData(
    value: *mut OrtValue,
    out: *mut *mut c_void,
) -> OrtStatusPtr {
    give!(out, at!(value, Value).data.cast());
    OK
}
