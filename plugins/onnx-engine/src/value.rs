//! An ONNX Runtime value that frees itself: tensors over foreign memory, and tensors of the
//! library's own.

use crate::runtime::{self, OnnxRuntime, ort};
use crate::types;
use ort_sys::{
    ONNXTensorElementDataType as Element, OrtMemoryInfo, OrtTensorTypeAndShapeInfo, OrtValue,
};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::shape::MAX_RANK;
use trtserver_plugin_api::abi::types::dtype;

pub struct OnnxValue {
    raw: NonNull<OrtValue>,
    runtime: &'static OnnxRuntime,
}

// SAFETY: a value is plain memory with a shape; the library allows any thread to use it, one at a
// time.
unsafe impl Send for OnnxValue {}

impl OnnxValue {
    /// Takes ownership of a value that the library allocated.
    ///
    /// # Safety
    /// `raw` is null or a value that has no other owner.
    pub unsafe fn from_raw(
        runtime: &'static OnnxRuntime,
        raw: *mut OrtValue,
    ) -> Result<Self, PluginFault> {
        let raw = NonNull::new(raw).ok_or_else(|| {
            PluginFault::internal("ONNX Runtime reported success without a value")
        })?;
        Ok(Self { raw, runtime })
    }

    /// A tensor over memory owned by the caller, without a copy.
    ///
    /// # Safety
    /// `bytes` at `data` stay valid (and writable, if the value is used as an output) until the
    /// value is dropped, and `data` is aligned for the element type.
    pub unsafe fn over(
        runtime: &'static OnnxRuntime,
        element: Element,
        shape: &[i64],
        data: *mut u8,
        bytes: usize,
    ) -> Result<Self, PluginFault> {
        // SAFETY: the caller's promise.
        unsafe { Self::over_in(runtime, runtime.memory, element, shape, data, bytes) }
    }

    /// As [`OnnxValue::over`], in the memory that `memory` describes.
    ///
    /// # Safety
    /// The conditions of [`OnnxValue::over`]; `memory` is alive.
    pub unsafe fn over_in(
        runtime: &'static OnnxRuntime,
        memory: *const OrtMemoryInfo,
        element: Element,
        shape: &[i64],
        data: *mut u8,
        bytes: usize,
    ) -> Result<Self, PluginFault> {
        // The library requires an address even for an empty tensor.
        let data = if data.is_null() { ptr::without_provenance_mut(64) } else { data };
        let mut raw = ptr::null_mut();
        // SAFETY: memory as the caller promises; the shape is copied during the call.
        unsafe {
            ort!(
                runtime,
                CreateTensorWithDataAsOrtValue(
                    memory,
                    data.cast::<c_void>(),
                    bytes,
                    shape.as_ptr(),
                    shape.len(),
                    element,
                    &raw mut raw
                )
            )?;
            Self::from_raw(runtime, raw)
        }
    }

    /// A tensor in memory of the library, which strings require.
    pub fn new(
        runtime: &'static OnnxRuntime,
        element: Element,
        shape: &[i64],
    ) -> Result<Self, PluginFault> {
        let mut raw = ptr::null_mut();
        // SAFETY: the shape is copied during the call; the out pointer is ours.
        unsafe {
            ort!(
                runtime,
                CreateTensorAsOrtValue(
                    runtime.allocator,
                    shape.as_ptr(),
                    shape.len(),
                    element,
                    &raw mut raw
                )
            )?;
            Self::from_raw(runtime, raw)
        }
    }

    pub fn as_ptr(&self) -> *mut OrtValue {
        self.raw.as_ptr()
    }

    pub fn runtime(&self) -> &'static OnnxRuntime {
        self.runtime
    }

    /// Address of a tensor's elements. Not for strings.
    pub fn data(&self) -> Result<*mut u8, PluginFault> {
        let mut data = ptr::null_mut();
        // SAFETY: the value is alive; the out pointer is ours.
        unsafe { ort!(self.runtime, GetTensorMutableData(self.as_ptr(), &raw mut data))? };
        Ok(data.cast())
    }

    /// Element type (one of the interface's) and shape, which is written into `shape`; returns the
    /// rank.
    pub fn describe(&self, shape: &mut [i64; MAX_RANK]) -> Result<(u32, usize), PluginFault> {
        let mut is_tensor = 0;
        let mut has_value = 0;
        // SAFETY: the value is alive; out pointers are ours.
        unsafe {
            ort!(self.runtime, HasValue(self.as_ptr(), &raw mut has_value))?;
            ort!(self.runtime, IsTensor(self.as_ptr(), &raw mut is_tensor))?;
        }
        if is_tensor == 0 || has_value == 0 {
            return Err(PluginFault::unsupported(
                "the model returned a value that is not a dense tensor",
            ));
        }
        let mut info: *mut OrtTensorTypeAndShapeInfo = ptr::null_mut();
        // SAFETY: a tensor has this information; it is ours until the release below.
        unsafe {
            ort!(self.runtime, GetTensorTypeAndShape(self.as_ptr(), &raw mut info))?;
            let result = read_info(self.runtime, info, shape);
            ((*self.runtime.api).ReleaseTensorTypeAndShapeInfo)(info);
            let (element, rank) = result?;
            let dtype = types::to_dtype(element);
            if dtype == dtype::INVALID {
                let name = types::element_name(element);
                return Err(PluginFault::unsupported(format!(
                    "the model returned a tensor of {name}"
                )));
            }
            Ok((dtype, rank))
        }
    }

    /// Gives up ownership; [`release_value`] frees the value.
    pub fn into_raw(self) -> *mut u8 {
        let raw = self.as_ptr().cast();
        std::mem::forget(self);
        raw
    }
}

impl Drop for OnnxValue {
    fn drop(&mut self) {
        // SAFETY: the value is ours and this is the only release.
        unsafe { ((*self.runtime.api).ReleaseValue)(self.as_ptr()) }
    }
}

/// Frees a value of [`OnnxValue::into_raw`]; any thread, once.
///
/// # Safety
/// `value` came from [`OnnxValue::into_raw`].
pub unsafe extern "C" fn release_value(value: *mut u8) {
    // A value implies an open runtime, which is never closed.
    if let Some(runtime) = runtime::opened_runtime() {
        // SAFETY: the caller's promise.
        unsafe { ((*runtime.api).ReleaseValue)(value.cast()) }
    }
}

/// Element number (ONNX Runtime's) and rank; dimensions go into `shape`.
///
/// # Safety
/// `info` is alive.
pub unsafe fn read_info(
    runtime: &OnnxRuntime,
    info: *const OrtTensorTypeAndShapeInfo,
    shape: &mut [i64; MAX_RANK],
) -> Result<(i32, usize), PluginFault> {
    let mut element = 0i32;
    let mut rank = 0;
    // SAFETY: alive by the caller's promise. The element type is read as an integer because
    // newer libraries may have types that the enum lacks.
    unsafe {
        ort!(runtime, GetTensorElementType(info, (&raw mut element).cast()))?;
        ort!(runtime, GetDimensionsCount(info, &raw mut rank))?;
        if rank > MAX_RANK {
            return Err(PluginFault::unsupported(format!(
                "a tensor of {rank} dimensions, more than the {MAX_RANK} supported"
            )));
        }
        ort!(runtime, GetDimensions(info, shape.as_mut_ptr(), rank))?;
    }
    Ok((element, rank))
}
