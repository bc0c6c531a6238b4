//! `TRITONBACKEND_State*`: states of sequences, written by one request and read by the next as an
//! input.

use super::guard::{Out, Text, export, read_array};
use super::response::InOut;
use crate::fault::TritonFault;
use crate::handles::LiveObject;
use crate::objects::attributes::{BufferAttributes, memory_numbers};
use crate::objects::output::{OutputBuffer, OutputObject};
use crate::objects::request::RequestObject;
use crate::objects::state::StateObject;
use std::ffi::{c_int, c_void};
use trtserver_plugin_api::abi::types::{MAX_RANK, Memory};

export! {
    /// A state that the configuration lists, owned by the request. Name and shape, which includes
    /// the batch dimension, are copied.
    fn TRITONBACKEND_StateNew(
        state: Out<*mut StateObject>,
        request: LiveObject<RequestObject>,
        name: Text,
        datatype: c_int,
        shape: *const i64,
        dims_count: u32,
    ) {
        if dims_count > MAX_RANK {
            return Err(TritonFault::misuse(format_args!(
                "state '{}' is said to have {dims_count} dimensions",
                name.text()
            )));
        }
        let host = request.host()?;
        if !host.states().any(|output| output == name.c().to_bytes()) {
            return Err(TritonFault::invalid(format_args!(
                "the request has no state '{}': 'sequence_batching.state' of the configuration lists none of that name",
                name.text()
            )));
        }
        // SAFETY: the caller passes that many dimensions.
        let shape = unsafe { read_array(shape, dims_count.into(), "shape")? };
        let datatype = u32::try_from(datatype).unwrap_or_default();
        let output = OutputObject::new(std::ptr::null_mut(), name.c(), datatype, shape);
        state.set(host.reply.add_state(output)?.raw());
    }

    /// Memory for a state, owned by the request; again the same for the same size, and new for
    /// another one. Memory type and id: preferred, then actual.
    fn TRITONBACKEND_StateBuffer(
        state: LiveObject<StateObject>,
        buffer: Out<*mut c_void>,
        buffer_byte_size: u64,
        memory_type: InOut<c_int>,
        memory_type_id: InOut<i64>,
    ) {
        let (kind, id) = memory_numbers(Memory::CPU);
        buffer.set(state.buffer(buffer_byte_size)?.cast());
        memory_type.set(kind);
        memory_type_id.set(id);
    }

    /// Attributes of a state's buffer, owned by the request; after `TRITONBACKEND_StateBuffer`.
    fn TRITONBACKEND_StateBufferAttributes(
        state: LiveObject<StateObject>,
        buffer_attributes: Out<*mut BufferAttributes>,
    ) {
        let bytes = match &*state.output.buffer() {
            OutputBuffer::Own(_, bytes) => *bytes,
            _ => return Err(TritonFault::misuse("the state has no buffer yet")),
        };
        let attributes =
            state.output.attributes.get_or_init(|| BufferAttributes::create(bytes, Memory::CPU));
        buffer_attributes.set(attributes.raw());
    }

    /// Commits a state: the next request of the sequence reads it, once this one has its response.
    /// Before that is sent.
    fn TRITONBACKEND_StateUpdate(state: LiveObject<StateObject>) {
        state.commit()?;
    }
}
