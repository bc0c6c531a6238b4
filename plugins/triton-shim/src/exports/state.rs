//! `TRITONBACKEND_State*`: states of sequences, written by one request and read by the next as an input.

use super::guard::{Out, Text, array, export};
use super::response::InOut;
use crate::fault::Fault;
use crate::handles::Live;
use crate::objects::attributes::{BufferAttributes, numbers};
use crate::objects::output::{Buffer, Output};
use crate::objects::request::Request;
use crate::objects::state::State;
use std::ffi::{c_int, c_void};
use trtserver_plugin_api::abi::types::{MAX_RANK, Memory};

export! {
    /// A state that the configuration lists, owned by the request. Name and shape, which includes the batch dimension, are copied.
    fn TRITONBACKEND_StateNew(
        state: Out<*mut State>,
        request: Live<Request>,
        name: Text,
        datatype: c_int,
        shape: *const i64,
        dims_count: u32,
    ) {
        if dims_count > MAX_RANK {
            return Err(Fault::misuse(format_args!(
                "state '{}' is said to have {dims_count} dimensions",
                name.text()
            )));
        }
        let host = request.host()?;
        if !host.states().any(|output| output == name.c().to_bytes()) {
            return Err(Fault::invalid(format_args!(
                "the request has no state '{}': 'sequence_batching.state' of the configuration lists none of that name",
                name.text()
            )));
        }
        // SAFETY: the caller passes that many dimensions.
        let shape = unsafe { array(shape, dims_count.into(), "shape")? };
        let datatype = u32::try_from(datatype).unwrap_or_default();
        let output = Output::new(std::ptr::null_mut(), name.c(), datatype, shape);
        state.set(host.reply.add_state(output)?.raw());
    }

    /// Memory for a state, owned by the request; again the same for the same size, and new for another one. Memory type and id: preferred, then actual.
    fn TRITONBACKEND_StateBuffer(
        state: Live<State>,
        buffer: Out<*mut c_void>,
        buffer_byte_size: u64,
        memory_type: InOut<c_int>,
        memory_type_id: InOut<i64>,
    ) {
        let (kind, id) = numbers(Memory::CPU);
        buffer.set(state.buffer(buffer_byte_size)?.cast());
        memory_type.set(kind);
        memory_type_id.set(id);
    }

    /// Attributes of a state's buffer, owned by the request; after `TRITONBACKEND_StateBuffer`.
    fn TRITONBACKEND_StateBufferAttributes(
        state: Live<State>,
        buffer_attributes: Out<*mut BufferAttributes>,
    ) {
        let bytes = match &*state.output.buffer() {
            Buffer::Own(_, bytes) => *bytes,
            _ => return Err(Fault::misuse("the state has no buffer yet")),
        };
        let attributes =
            state.output.attributes.get_or_init(|| BufferAttributes::create(bytes, Memory::CPU));
        buffer_attributes.set(attributes.raw());
    }

    /// Commits a state: the next request of the sequence reads it, once this one has its response. Before that is sent.
    fn TRITONBACKEND_StateUpdate(state: Live<State>) {
        state.commit()?;
    }
}
