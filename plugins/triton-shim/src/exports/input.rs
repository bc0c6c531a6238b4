//! `TRITONBACKEND_Input*`: type, shape and data of an input.

use super::guard::{Out, OutMaybe, TextMaybe, export};
use crate::handles::LiveObject;
use crate::host::c_str;
use crate::objects::attributes::{BufferAttributes, memory_numbers};
use crate::objects::request::InputObject;
use std::ffi::{c_char, c_int, c_void};

/// Where the properties of an input go.
struct Properties {
    name: OutMaybe<*const c_char>,
    datatype: OutMaybe<c_int>,
    shape: OutMaybe<*const i64>,
    dims_count: OutMaybe<u32>,
    byte_size: OutMaybe<u64>,
    buffer_count: OutMaybe<u32>,
}

impl Properties {
    fn set(self, input: &InputObject) {
        let tensor = input.tensor();
        self.name.set(c_str(tensor.name));
        self.datatype.set(tensor.dtype as c_int);
        self.shape.set(tensor.shape);
        self.dims_count.set(tensor.rank);
        self.byte_size.set(tensor.bytes);
        self.buffer_count.set(tensor.n_parts);
    }
}

/// Where a buffer of an input goes.
struct BufferPlace {
    buffer: Out<*const c_void>,
    byte_size: Out<u64>,
    memory_type: Out<c_int>,
    memory_type_id: Out<i64>,
}

impl BufferPlace {
    fn set(self, input: &InputObject, index: u32) -> crate::fault::Result<()> {
        let part = input.part(index)?;
        let (kind, id) = memory_numbers(part.memory);
        self.buffer.set(part.ptr.cast());
        self.byte_size.set(part.bytes);
        self.memory_type.set(kind);
        self.memory_type_id.set(id);
        Ok(())
    }
}

export! {
    /// Properties of an input, owned by its request. The shape includes the batch dimension; the
    /// size is that of the data.
    fn TRITONBACKEND_InputProperties(
        input: LiveObject<InputObject>,
        name: OutMaybe<*const c_char>,
        datatype: OutMaybe<c_int>,
        shape: OutMaybe<*const i64>,
        dims_count: OutMaybe<u32>,
        byte_size: OutMaybe<u64>,
        buffer_count: OutMaybe<u32>,
    ) {
        Properties { name, datatype, shape, dims_count, byte_size, buffer_count }.set(&input);
    }

    /// The same: requests have one copy of the data for all host policies.
    fn TRITONBACKEND_InputPropertiesForHostPolicy(
        input: LiveObject<InputObject>,
        _host_policy_name: TextMaybe,
        name: OutMaybe<*const c_char>,
        datatype: OutMaybe<c_int>,
        shape: OutMaybe<*const i64>,
        dims_count: OutMaybe<u32>,
        byte_size: OutMaybe<u64>,
        buffer_count: OutMaybe<u32>,
    ) {
        Properties { name, datatype, shape, dims_count, byte_size, buffer_count }.set(&input);
    }

    /// One buffer of the data, owned by the request; memory type and id are where it is.
    fn TRITONBACKEND_InputBuffer(
        input: LiveObject<InputObject>,
        index: u32,
        buffer: Out<*const c_void>,
        byte_size: Out<u64>,
        memory_type: Out<c_int>,
        memory_type_id: Out<i64>,
    ) {
        BufferPlace { buffer, byte_size, memory_type, memory_type_id }.set(&input, index)?;
    }

    /// The same: requests have one copy of the data for all host policies.
    fn TRITONBACKEND_InputBufferForHostPolicy(
        input: LiveObject<InputObject>,
        _host_policy_name: TextMaybe,
        index: u32,
        buffer: Out<*const c_void>,
        byte_size: Out<u64>,
        memory_type: Out<c_int>,
        memory_type_id: Out<i64>,
    ) {
        BufferPlace { buffer, byte_size, memory_type, memory_type_id }.set(&input, index)?;
    }

    /// One buffer of the data and its attributes, both owned by the request.
    fn TRITONBACKEND_InputBufferAttributes(
        input: LiveObject<InputObject>,
        index: u32,
        buffer: Out<*const c_void>,
        buffer_attributes: Out<*mut BufferAttributes>,
    ) {
        let attributes = input.attributes(index)?;
        buffer.set(input.part(index)?.ptr.cast());
        buffer_attributes.set(attributes.raw());
    }
}
