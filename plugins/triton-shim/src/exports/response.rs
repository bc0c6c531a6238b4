//! `TRITONBACKEND_Response*`, `TRITONBACKEND_Output*`: building and sending responses.

use super::guard::{Ended, Flag, Maybe, Out, OutMaybe, Text, export, read_array};
use crate::execute;
use crate::fault::TritonFault;
use crate::handles::LiveObject;
use crate::objects::attributes::{BufferAttributes, memory_location, memory_numbers};
use crate::objects::error::ErrorObject;
use crate::objects::factory::ResponseFactory;
use crate::objects::output::{OutputBuffer, OutputObject};
use crate::objects::parameter::ParameterValue;
use crate::objects::request::RequestObject;
use crate::objects::response::{self, BuiltResponse, ResponseObject};
use std::ffi::{c_char, c_int, c_void};
use trtserver_plugin_api::abi::types::{MAX_RANK, Memory};

/// The last response of its request.
pub const FINAL: u32 = 1;

export! {
    /// A response to a request, owned by the caller until it is sent or deleted.
    fn TRITONBACKEND_ResponseNew(response: Out<*mut ResponseObject>, request: LiveObject<RequestObject>) {
        response.set(BuiltResponse::create(request.host()?.reply)?.raw());
    }

    /// A response of a factory, owned by the caller until it is sent or deleted.
    fn TRITONBACKEND_ResponseNewFromFactory(response: Out<*mut ResponseObject>, factory: LiveObject<ResponseFactory>) {
        response.set(BuiltResponse::create(factory.reply)?.raw());
    }

    /// Drops a response that was not sent.
    fn TRITONBACKEND_ResponseDelete(response: Ended<ResponseObject>) {
        response::delete_response(response.0)?;
    }

    /// Adds a parameter. Name and value are copied.
    fn TRITONBACKEND_ResponseSetStringParameter(response: LiveObject<ResponseObject>, name: Text, value: Text) {
        response.built()?.add_param(name.c(), ParameterValue::Text(value.c().into()))?;
    }

    /// Adds a parameter. The name is copied.
    fn TRITONBACKEND_ResponseSetIntParameter(response: LiveObject<ResponseObject>, name: Text, value: i64) {
        response.built()?.add_param(name.c(), ParameterValue::Int(value))?;
    }

    /// Adds a parameter. The name is copied.
    fn TRITONBACKEND_ResponseSetBoolParameter(response: LiveObject<ResponseObject>, name: Text, value: Flag) {
        response.built()?.add_param(name.c(), ParameterValue::Bool(value.0))?;
    }

    /// Adds a parameter. The name is copied.
    fn TRITONBACKEND_ResponseSetDoubleParameter(response: LiveObject<ResponseObject>, name: Text, value: f64) {
        response.built()?.add_param(name.c(), ParameterValue::Double(value))?;
    }

    /// Adds an output, owned by the response. Name and shape, which includes the batch dimension,
    /// are copied.
    fn TRITONBACKEND_ResponseOutput(
        response: LiveObject<ResponseObject>,
        output: Out<*mut OutputObject>,
        name: Text,
        datatype: c_int,
        shape: *const i64,
        dims_count: u32,
    ) {
        if dims_count > MAX_RANK {
            return Err(TritonFault::misuse(format_args!(
                "output '{}' is said to have {dims_count} dimensions",
                name.text()
            )));
        }
        // SAFETY: the caller passes that many dimensions.
        let shape = unsafe { read_array(shape, dims_count.into(), "shape")? };
        let datatype = u32::try_from(datatype).unwrap_or_default();
        output.set(response.built()?.add_output(name.c(), datatype, shape).raw());
    }

    /// Sends a response; its handle is invalid afterwards. The error, if any, stays the caller's
    /// and is sent instead.
    fn TRITONBACKEND_ResponseSend(
        response: Ended<ResponseObject>,
        send_flags: u32,
        error: Maybe<ErrorObject>,
    ) {
        let fault = error.0.map(|error| error.to_fault());
        response::send_response(response.0, send_flags & FINAL != 0, fault)?;
    }

    /// Memory for an output, owned by the response; once per output. Memory type and id: preferred,
    /// then actual.
    fn TRITONBACKEND_OutputBuffer(
        output: LiveObject<OutputObject>,
        buffer: Out<*mut c_void>,
        byte_size: u64,
        memory_type: InOut<c_int>,
        memory_type_id: InOut<i64>,
    ) {
        let preferred = memory_location(memory_type.get(), memory_type_id.get()).unwrap_or(Memory::CPU);
        execute::outputs_begin();
        let (p, memory) = output.allocate(byte_size, preferred)?;
        let (kind, id) = memory_numbers(memory);
        buffer.set(p.cast());
        memory_type.set(kind);
        memory_type_id.set(id);
    }

    /// Attributes of an output's buffer, owned by the response; after `TRITONBACKEND_OutputBuffer`.
    fn TRITONBACKEND_OutputBufferAttributes(
        output: LiveObject<OutputObject>,
        buffer_attributes: Out<*mut BufferAttributes>,
    ) {
        let (bytes, memory) = match &*output.buffer() {
            OutputBuffer::None => return Err(TritonFault::misuse("the output has no buffer yet")),
            OutputBuffer::Host(buf) => (buf.bytes, buf.memory),
            OutputBuffer::Own(_, bytes) => (*bytes, Memory::CPU),
        };
        let attributes = output.attributes.get_or_init(|| BufferAttributes::create(bytes, memory));
        buffer_attributes.set(attributes.raw());
    }

    /// Properties of an output that was added to the response, owned by the response.
    fn TRITONBACKEND_InferenceResponseOutput(
        response: LiveObject<ResponseObject>,
        index: u32,
        name: OutMaybe<*const c_char>,
        datatype: OutMaybe<c_int>,
        shape: OutMaybe<*const i64>,
        dim_count: OutMaybe<u64>,
    ) {
        let output = response.built()?.output(index)?;
        name.set(output.name.view().p.cast());
        datatype.set(output.dtype as c_int);
        shape.set(output.shape.as_ptr());
        dim_count.set(output.shape.len() as u64);
    }

    /// As `TRITONBACKEND_InferenceResponseOutput`, by name.
    fn TRITONBACKEND_InferenceResponseOutputByName(
        response: LiveObject<ResponseObject>,
        name: Text,
        datatype: OutMaybe<c_int>,
        shape: OutMaybe<*const i64>,
        dim_count: OutMaybe<u64>,
    ) {
        let output = response.built()?.output_named(name.c())?;
        datatype.set(output.dtype as c_int);
        shape.set(output.shape.as_ptr());
        dim_count.set(output.shape.len() as u64);
    }
}

/// A variable that is read and written.
pub struct InOut<T>(*mut T);

impl<T: Copy> super::guard::Argument for InOut<T> {
    type C = *mut T;
    unsafe fn take(raw: *mut T, name: &str) -> crate::fault::Result<Self> {
        if raw.is_null() {
            return Err(TritonFault::misuse(format_args!("{name} is null")));
        }
        Ok(Self(raw))
    }
}

impl<T: Copy> InOut<T> {
    fn get(&self) -> T {
        // SAFETY: by the contract of `Argument::take`.
        unsafe { self.0.read() }
    }

    pub fn set(&self, value: T) {
        // SAFETY: by the contract of `Argument::take` the pointer may be read and written.
        unsafe { self.0.write(value) }
    }
}
