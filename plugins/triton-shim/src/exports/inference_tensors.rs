//! `TRITONSERVER_InferenceRequest*`: inputs and requested outputs of the requests that a backend
//! makes.

use super::guard::{MEMORY, Text, TextMaybe, export, read_array};
use crate::fault::{Result, TritonFault};
use crate::handles::LiveObject;
use crate::objects::attributes::{BufferAttributes, memory_location};
use crate::objects::nested_request::OwnInput;
use crate::objects::request::RequestObject;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering;
use trtserver_plugin_api::abi::types::{Buf, MAX_RANK};

/// Numbers of data types end here.
const DTYPES: c_int = 15;

/// Adds a piece of data to an input; it stays the backend's until the request is released.
fn append(
    request: &RequestObject,
    name: Text,
    (base, bytes): (*const c_void, usize),
    (kind, id): (c_int, i64),
) -> Result<()> {
    let mut state = request.own()?.editable()?;
    let input = state.input(name.c())?;
    let memory = memory_location(kind, id).ok_or_else(|| {
        TritonFault::misuse(format_args!("memory type {kind} with id {id} does not exist"))
    })?;
    if base.is_null() && bytes > 0 {
        return Err(TritonFault::misuse(format_args!("input '{}': base is null", name.text())));
    }
    let whole = input.parts.iter().try_fold(bytes as u64, |sum, part| sum.checked_add(part.bytes));
    if whole.is_none_or(|whole| whole > MEMORY) {
        return Err(TritonFault::misuse(format_args!(
            "input '{}': {bytes} bytes and what was added before are more than memory has",
            name.text()
        )));
    }
    let ptr = base.cast_mut().cast();
    let part = Buf { ptr, bytes: bytes as u64, memory, ready: ptr::null_mut(), memory_handle: 0 };
    input.parts.push(part);
    Ok(())
}

export! {
    /// Adds an input. Name and shape, which includes the batch dimension, are copied.
    fn TRITONSERVER_InferenceRequestAddInput(
        inference_request: LiveObject<RequestObject>,
        name: Text,
        datatype: c_int,
        shape: *const i64,
        dim_count: u64,
    ) {
        let mut state = inference_request.own()?.editable()?;
        if state.input(name.c()).is_ok() {
            return Err(TritonFault::misuse(format_args!("input '{}' was added before", name.text())));
        }
        if dim_count > MAX_RANK.into() || !(0..DTYPES).contains(&datatype) {
            return Err(TritonFault::misuse(format_args!(
                "input '{}' is said to have {dim_count} dimensions and data type {datatype}",
                name.text()
            )));
        }
        // SAFETY: the caller passes that many dimensions.
        let shape = unsafe { read_array(shape, dim_count, "shape")? }.to_vec();
        let name = name.c().to_owned();
        state.inputs.push(OwnInput { name, dtype: datatype as u32, shape, parts: Vec::new() });
    }

    /// Removes an input.
    fn TRITONSERVER_InferenceRequestRemoveInput(inference_request: LiveObject<RequestObject>, name: Text) {
        let mut state = inference_request.own()?.editable()?;
        state.input(name.c())?;
        state.inputs.retain(|input| *input.name != *name.c());
    }

    /// Removes all inputs.
    fn TRITONSERVER_InferenceRequestRemoveAllInputs(inference_request: LiveObject<RequestObject>) {
        inference_request.own()?.editable()?.inputs.clear();
    }

    /// Adds a piece of data to an input. It is read when the request is sent, and stays the
    /// caller's.
    fn TRITONSERVER_InferenceRequestAppendInputData(
        inference_request: LiveObject<RequestObject>,
        name: Text,
        base: *const c_void,
        byte_size: usize,
        memory_type: c_int,
        memory_type_id: i64,
    ) {
        append(&inference_request, name, (base, byte_size), (memory_type, memory_type_id))?;
    }

    /// The same; this server has no host policies, so the data is for all.
    fn TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
        inference_request: LiveObject<RequestObject>,
        name: Text,
        base: *const c_void,
        byte_size: usize,
        memory_type: c_int,
        memory_type_id: i64,
        _host_policy_name: TextMaybe,
    ) {
        append(&inference_request, name, (base, byte_size), (memory_type, memory_type_id))?;
    }

    /// The same, with size and memory from attributes, which stay the caller's.
    fn TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
        inference_request: LiveObject<RequestObject>,
        name: Text,
        base: *const c_void,
        buffer_attributes: LiveObject<BufferAttributes>,
    ) {
        let a = &buffer_attributes;
        let bytes = usize::try_from(a.bytes.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        let memory = (a.memory_type.load(Ordering::Relaxed), a.memory_id.load(Ordering::Relaxed));
        append(&inference_request, name, (base, bytes), memory)?;
    }

    /// Removes the data of an input.
    fn TRITONSERVER_InferenceRequestRemoveAllInputData(
        inference_request: LiveObject<RequestObject>,
        name: Text,
    ) {
        inference_request.own()?.editable()?.input(name.c())?.parts.clear();
    }

    /// Requests an output; without any, the model returns all. The name is copied.
    fn TRITONSERVER_InferenceRequestAddRequestedOutput(
        inference_request: LiveObject<RequestObject>,
        name: Text,
    ) {
        let mut state = inference_request.own()?.editable()?;
        if !state.outputs.iter().any(|known| **known == *name.c()) {
            state.outputs.push(name.c().to_owned());
        }
    }

    /// Takes back the request of an output.
    fn TRITONSERVER_InferenceRequestRemoveRequestedOutput(
        inference_request: LiveObject<RequestObject>,
        name: Text,
    ) {
        let mut state = inference_request.own()?.editable()?;
        state.outputs.retain(|known| **known != *name.c());
    }

    /// Requests all outputs.
    fn TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(inference_request: LiveObject<RequestObject>) {
        inference_request.own()?.editable()?.outputs.clear();
    }
}
