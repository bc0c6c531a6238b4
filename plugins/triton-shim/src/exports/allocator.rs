//! `TRITONSERVER_ResponseAllocator*`: who allocates the outputs of nested inference.

use super::guard::{Ended, Out, export};
use crate::fault::Fault;
use crate::handles::{Live, create, free};
use crate::objects::allocator::{Allocate, Allocator, Attributes, Free, Query, Start};
use std::sync::{Mutex, PoisonError};

export! {
    /// An allocator of these functions, owned by the caller.
    fn TRITONSERVER_ResponseAllocatorNew(
        allocator: Out<*mut Allocator>,
        alloc_fn: Option<Allocate>,
        release_fn: Option<Free>,
        start_fn: Option<Start>,
    ) {
        let (Some(allocate), Some(free)) = (alloc_fn, release_fn) else {
            return Err(Fault::misuse("alloc_fn and release_fn must not be null"));
        };
        let (query, attributes) = (Mutex::default(), Mutex::default());
        let made = Allocator { allocate, free, start: start_fn, query, attributes };
        allocator.set(create(made).raw());
    }

    /// Sets the function that tells attributes of a buffer.
    fn TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
        allocator: Live<Allocator>,
        buffer_attributes_fn: Option<Attributes>,
    ) {
        *allocator.attributes.lock().unwrap_or_else(PoisonError::into_inner) = buffer_attributes_fn;
    }

    /// Sets the function that tells which memory an allocation would have.
    fn TRITONSERVER_ResponseAllocatorSetQueryFunction(
        allocator: Live<Allocator>,
        query_fn: Option<Query>,
    ) {
        *allocator.query.lock().unwrap_or_else(PoisonError::into_inner) = query_fn;
    }

    /// Frees an allocator, after the responses whose outputs it allocated.
    fn TRITONSERVER_ResponseAllocatorDelete(allocator: Ended<Allocator>) {
        free(allocator.0)?;
    }
}
