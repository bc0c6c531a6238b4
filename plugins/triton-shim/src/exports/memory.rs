//! `TRITONBACKEND_MemoryManager*`: memory for a backend's own use.

use super::guard::{Out, export};
use crate::handles::LiveObject;
use crate::objects::memory::MemoryManager;
use std::ffi::{c_int, c_void};

export! {
    /// Memory, owned by the caller until it is freed with the same manager. UNSUPPORTED = this
    /// server never has such memory, UNAVAILABLE = not now.
    fn TRITONBACKEND_MemoryManagerAllocate(
        manager: LiveObject<MemoryManager>,
        buffer: Out<*mut c_void>,
        memory_type: c_int,
        memory_type_id: i64,
        byte_size: u64,
    ) {
        buffer.set(manager.allocate(memory_type, memory_type_id, byte_size)?.cast());
    }

    /// Frees memory of the manager; type and id are those of its allocation.
    fn TRITONBACKEND_MemoryManagerFree(
        manager: LiveObject<MemoryManager>,
        buffer: *mut c_void,
        memory_type: c_int,
        memory_type_id: i64,
    ) {
        manager.free(buffer.cast(), memory_type, memory_type_id)?;
    }
}
