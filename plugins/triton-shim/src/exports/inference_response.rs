//! `TRITONSERVER_InferenceResponse*`: responses to requests of a backend.

use super::guard::{Ended, Out, OutMaybe, export};
use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject, create_object};
use crate::objects::error::ErrorObject;
use crate::objects::parameter::{ParameterValue, parameter_type};
use crate::objects::received_response::ReceivedResponse;
use crate::objects::response::ResponseObject;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

fn at<'a, T>(all: &'a [T], index: u32, what: &str, of: &ReceivedResponse) -> Result<&'a T> {
    all.get(index as usize).ok_or_else(|| {
        let (model, n) = (of.model.to_string_lossy(), all.len());
        TritonFault::invalid(format_args!(
            "the response of model '{model}' has {n} {what}, index {index} is none of them"
        ))
    })
}

export! {
    /// Frees a response; its allocator gets the outputs back. Null is allowed.
    fn TRITONSERVER_InferenceResponseDelete(inference_response: Ended<ResponseObject>) {
        if inference_response.0.is_null() {
            return Ok(());
        }
        handles::get_object(inference_response.0)?.arrived()?;
        drop(handles::free_object(inference_response.0)?);
    }

    /// Why the request failed, owned by the caller; null if it did not.
    fn TRITONSERVER_InferenceResponseError(
        inference_response: LiveObject<ResponseObject>,
    ) -> *mut ErrorObject, ptr::null_mut(); {
        let fault = inference_response.arrived()?.fault.as_ref();
        Ok(fault.map_or(ptr::null_mut(), |fault| create_object(ErrorObject::from_fault(fault)).raw()))
    }

    /// The model that was asked, owned by the response.
    fn TRITONSERVER_InferenceResponseModel(
        inference_response: LiveObject<ResponseObject>,
        model_name: Out<*const c_char>,
        model_version: Out<i64>,
    ) {
        let arrived = inference_response.arrived()?;
        model_name.set(arrived.model.as_ptr());
        model_version.set(arrived.version);
    }

    /// The id of the request, owned by the response.
    fn TRITONSERVER_InferenceResponseId(
        inference_response: LiveObject<ResponseObject>,
        request_id: Out<*const c_char>,
    ) {
        request_id.set(inference_response.arrived()?.id.as_ptr());
    }

    /// Number of parameters.
    fn TRITONSERVER_InferenceResponseParameterCount(
        inference_response: LiveObject<ResponseObject>,
        count: Out<u32>,
    ) {
        count.set(inference_response.arrived()?.params.len() as u32);
    }

    /// A parameter, owned by the response: the value is a text or points at an `int64_t`, `bool` or
    /// `double`.
    fn TRITONSERVER_InferenceResponseParameter(
        inference_response: LiveObject<ResponseObject>,
        index: u32,
        name: Out<*const c_char>,
        kind: Out<c_int>,
        vvalue: Out<*const c_void>,
    ) {
        let arrived = inference_response.arrived()?;
        let (key, param) = at(&arrived.params, index, "parameters", arrived)?;
        name.set(key.as_ptr());
        kind.set(match param.value {
            ParameterValue::Text(_) => parameter_type::STRING,
            ParameterValue::Int(_) => parameter_type::INT,
            ParameterValue::Bool(_) => parameter_type::BOOL,
            ParameterValue::Double(_) => parameter_type::DOUBLE,
            ParameterValue::Bytes(..) => parameter_type::BYTES,
        });
        vvalue.set(param.pointer());
    }

    /// Number of outputs.
    fn TRITONSERVER_InferenceResponseOutputCount(
        inference_response: LiveObject<ResponseObject>,
        count: Out<u32>,
    ) {
        count.set(inference_response.arrived()?.outputs.len() as u32);
    }

    /// An output, owned by the response, in memory of the allocator, whose pointer is `userp`.
    fn TRITONSERVER_InferenceResponseOutput(
        inference_response: LiveObject<ResponseObject>,
        index: u32,
        name: OutMaybe<*const c_char>,
        datatype: OutMaybe<c_int>,
        shape: OutMaybe<*const i64>,
        dim_count: OutMaybe<u64>,
        base: OutMaybe<*const c_void>,
        byte_size: OutMaybe<usize>,
        memory_type: OutMaybe<c_int>,
        memory_type_id: OutMaybe<i64>,
        userp: OutMaybe<*mut c_void>,
    ) {
        let arrived = inference_response.arrived()?;
        let output = at(&arrived.outputs, index, "outputs", arrived)?;
        name.set(output.name.as_ptr());
        datatype.set(output.dtype as c_int);
        shape.set(output.shape.as_ptr());
        dim_count.set(output.shape.len() as u64);
        base.set(output.buffer.p.0);
        byte_size.set(output.buffer.bytes);
        memory_type.set(output.buffer.kind);
        memory_type_id.set(output.buffer.id);
        userp.set(output.buffer.user.0);
    }
}
