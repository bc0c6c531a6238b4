//! `trtc_v2_result`: the outputs of a response, in place.

use super::request::{RawParameter, raw_parameters};
use crate::arguments::result_place;
use crate::failure::{ErrorObject, c_string, guard_call, ignore_panic};
use crate::handle::{HandleObject, ObjectHandle};
use std::ffi::{CString, c_char};
use std::ptr;
use trtserver_client::v2::{InferResponse, Output};

#[repr(C)]
struct RawOutput {
    name: *const c_char,
    datatype: *const c_char,
    shape: *const i64,
    rank: usize,
    data: *const u8,
    size: usize,
    in_region: bool,
}

#[repr(C)]
pub struct RawInfo {
    model_name: *const c_char,
    model_version: *const c_char,
    id: *const c_char,
    is_final: bool,
    outputs: *const RawOutput,
    output_count: usize,
    parameters: *const RawParameter,
    parameter_count: usize,
}

/// The response and the structures that point into it.
pub struct V2Result {
    info: RawInfo,
    _response: InferResponse,
    _outputs: Vec<RawOutput>,
    _parameters: Vec<RawParameter>,
    _texts: Vec<CString>,
}

// SAFETY: the pointers lead to parts of the object, which do not change.
unsafe impl Send for V2Result {}
// SAFETY: all that the result points to is its own and never changes, so threads only read it.
unsafe impl Sync for V2Result {}

impl HandleObject for V2Result {
    const NAME: &'static str = "v2 result";
}

impl V2Result {
    pub fn new(response: InferResponse) -> Self {
        let mut texts = Vec::new();
        let mut text = |value: &str| {
            let value = c_string(value);
            let pointer = value.as_ptr();
            texts.push(value);
            pointer
        };
        let output = |output: &Output, text: &mut dyn FnMut(&str) -> *const c_char| RawOutput {
            name: text(&output.name),
            datatype: text(&output.datatype),
            shape: output.shape.as_ptr(),
            rank: output.shape.len(),
            data: if output.in_shared_memory { ptr::null() } else { output.data.as_ptr() },
            size: output.data.len(),
            in_region: output.in_shared_memory,
        };
        let outputs: Vec<_> = response.outputs.iter().map(|o| output(o, &mut text)).collect();
        let parameters = raw_parameters(&response.parameters, &mut text);
        let info = RawInfo {
            model_name: text(&response.model),
            model_version: text(&response.version),
            id: text(&response.id),
            is_final: response.is_final,
            outputs: outputs.as_ptr(),
            output_count: outputs.len(),
            parameters: parameters.as_ptr(),
            parameter_count: parameters.len(),
        };
        V2Result {
            info,
            _response: response,
            _outputs: outputs,
            _parameters: parameters,
            _texts: texts,
        }
    }
}

/// # Safety
/// `info` is NULL or points to a writable pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_result_get(
    handle: ObjectHandle<V2Result>,
    info: *mut *const RawInfo,
) -> ObjectHandle<ErrorObject> {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let place = unsafe { result_place(info, "info") }?;
        place.write(&raw const handle.get()?.info);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v2_result_free(result: ObjectHandle<V2Result>) {
    ignore_panic((), || drop(result.release()));
}
