//! `TRITONSERVER_BufferAttributes*`: size and memory of a buffer.

use super::guard::{Ended, Out, export};
use crate::handles::{LiveObject, create_object, free_object};
use crate::objects::attributes::BufferAttributes;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

export! {
    /// New attributes of an empty buffer in CPU memory, owned by the caller.
    fn TRITONSERVER_BufferAttributesNew(buffer_attributes: Out<*mut BufferAttributes>) {
        buffer_attributes.set(create_object(BufferAttributes::default()).raw());
    }

    /// Frees attributes that the caller owns; null is allowed.
    fn TRITONSERVER_BufferAttributesDelete(buffer_attributes: Ended<BufferAttributes>) {
        if !buffer_attributes.0.is_null() {
            free_object(buffer_attributes.0)?;
        }
    }

    /// Sets the device of the memory.
    fn TRITONSERVER_BufferAttributesSetMemoryTypeId(
        buffer_attributes: LiveObject<BufferAttributes>,
        memory_type_id: i64,
    ) {
        buffer_attributes.memory_id.store(memory_type_id, Relaxed);
    }

    /// Sets the type of the memory.
    fn TRITONSERVER_BufferAttributesSetMemoryType(
        buffer_attributes: LiveObject<BufferAttributes>,
        memory_type: c_int,
    ) {
        buffer_attributes.memory_type.store(memory_type, Relaxed);
    }

    /// Sets the CUDA IPC handle, which stays the caller's.
    fn TRITONSERVER_BufferAttributesSetCudaIpcHandle(
        buffer_attributes: LiveObject<BufferAttributes>,
        cuda_ipc_handle: *mut c_void,
    ) {
        buffer_attributes.cuda_ipc_handle.store(cuda_ipc_handle, Relaxed);
    }

    /// Sets the size.
    fn TRITONSERVER_BufferAttributesSetByteSize(
        buffer_attributes: LiveObject<BufferAttributes>,
        byte_size: usize,
    ) {
        buffer_attributes.bytes.store(byte_size as u64, Relaxed);
    }

    /// The device of the memory.
    fn TRITONSERVER_BufferAttributesMemoryTypeId(
        buffer_attributes: LiveObject<BufferAttributes>,
        memory_type_id: Out<i64>,
    ) {
        memory_type_id.set(buffer_attributes.memory_id.load(Relaxed));
    }

    /// The type of the memory.
    fn TRITONSERVER_BufferAttributesMemoryType(
        buffer_attributes: LiveObject<BufferAttributes>,
        memory_type: Out<c_int>,
    ) {
        memory_type.set(buffer_attributes.memory_type.load(Relaxed));
    }

    /// The CUDA IPC handle, or null. It points to memory of the caller that set it.
    fn TRITONSERVER_BufferAttributesCudaIpcHandle(
        buffer_attributes: LiveObject<BufferAttributes>,
        cuda_ipc_handle: Out<*mut c_void>,
    ) {
        cuda_ipc_handle.set(buffer_attributes.cuda_ipc_handle.load(Relaxed));
    }

    /// The size.
    fn TRITONSERVER_BufferAttributesByteSize(
        buffer_attributes: LiveObject<BufferAttributes>,
        byte_size: Out<usize>,
    ) {
        byte_size.set(buffer_attributes.bytes.load(Relaxed) as usize);
    }
}
