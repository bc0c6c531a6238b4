//! `TRITONSERVER_ResponseAllocator*`: who allocates the outputs of nested inference.

use super::guard::{Ended, Out, export};
use crate::fault::TritonFault;
use crate::handles::{LiveObject, create_object, free_object};
use crate::objects::allocator::{Allocate, Attributes, Free, Query, ResponseAllocator, Start};
use std::sync::{Mutex, PoisonError};

export! {
    /// An allocator of these functions, owned by the caller.
    fn TRITONSERVER_ResponseAllocatorNew(
        allocator: Out<*mut ResponseAllocator>,
        alloc_fn: Option<Allocate>,
        release_fn: Option<Free>,
        start_fn: Option<Start>,
    ) {
        let (Some(allocate), Some(free)) = (alloc_fn, release_fn) else {
            return Err(TritonFault::misuse("alloc_fn and release_fn must not be null"));
        };
        let (query, attributes) = (Mutex::default(), Mutex::default());
        let made = ResponseAllocator { allocate, free, start: start_fn, query, attributes };
        allocator.set(create_object(made).raw());
    }

    /// Sets the function that tells attributes of a buffer.
    fn TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
        allocator: LiveObject<ResponseAllocator>,
        buffer_attributes_fn: Option<Attributes>,
    ) {
        *allocator.attributes.lock().unwrap_or_else(PoisonError::into_inner) = buffer_attributes_fn;
    }

    /// Sets the function that tells which memory an allocation would have.
    fn TRITONSERVER_ResponseAllocatorSetQueryFunction(
        allocator: LiveObject<ResponseAllocator>,
        query_fn: Option<Query>,
    ) {
        *allocator.query.lock().unwrap_or_else(PoisonError::into_inner) = query_fn;
    }

    /// Frees an allocator, after the responses whose outputs it allocated.
    fn TRITONSERVER_ResponseAllocatorDelete(allocator: Ended<ResponseAllocator>) {
        free_object(allocator.0)?;
    }
}
