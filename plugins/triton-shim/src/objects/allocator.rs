//! `TRITONSERVER_ResponseAllocator`: memory of the caller for outputs of nested inference.

use super::attributes::BufferAttributes;
use super::error::ErrorObject;
use crate::handles::{ObjectKind, TypedObject};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

/// Allocates memory for an output: allocator, name, bytes, preferred memory, user pointer; returns
/// buffer, its user pointer and memory.
pub type Allocate = unsafe extern "C" fn(
    *mut ResponseAllocator,
    *const c_char,
    usize,
    c_int,
    i64,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
    *mut c_int,
    *mut i64,
) -> *mut ErrorObject;

/// Frees such memory: allocator, buffer, its user pointer, bytes, memory.
pub type Free = unsafe extern "C" fn(
    *mut ResponseAllocator,
    *mut c_void,
    *mut c_void,
    usize,
    c_int,
    i64,
) -> *mut ErrorObject;

/// Says that the next allocations are for a new response.
pub type Start = unsafe extern "C" fn(*mut ResponseAllocator, *mut c_void) -> *mut ErrorObject;

/// Asks which memory an allocation would have.
pub type Query = unsafe extern "C" fn(
    *mut ResponseAllocator,
    *mut c_void,
    *const c_char,
    *mut usize,
    *mut c_int,
    *mut i64,
) -> *mut ErrorObject;

/// Asks for the attributes of a buffer that was allocated.
pub type Attributes = unsafe extern "C" fn(
    *mut ResponseAllocator,
    *const c_char,
    *mut BufferAttributes,
    *mut c_void,
    *mut c_void,
) -> *mut ErrorObject;

pub struct ResponseAllocator {
    pub allocate: Allocate,
    pub free: Free,
    pub start: Option<Start>,
    /// Kept, not called: outputs are offered in CPU memory, and copied into what `allocate`
    /// returns.
    pub query: Mutex<Option<Query>>,
    /// As `query`.
    pub attributes: Mutex<Option<Attributes>>,
}

impl TypedObject for ResponseAllocator {
    const KIND: ObjectKind = ObjectKind::Allocator;
}
