//! `trtc_buffer`: bytes that a call returned, with a NUL behind them.

use crate::failure::{Outcome, ignore_panic};
use crate::handle::{HandleObject, ObjectHandle};
use std::sync::Arc;

/// `trtc_owner`: what a buffer or picture points into.
pub struct BufferOwner(Vec<u8>);

impl HandleObject for BufferOwner {
    const NAME: &'static str = "buffer";
}

impl BufferOwner {
    /// Keeps the bytes; returns the handle and where they are.
    pub fn keep(bytes: Vec<u8>) -> (ObjectHandle<BufferOwner>, *const u8) {
        let owner = Arc::new(BufferOwner(bytes));
        let data = owner.0.as_ptr();
        (ObjectHandle::new(owner), data)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[repr(C)]
pub struct ByteBuffer {
    data: *const u8,
    size: usize,
    owner: ObjectHandle<BufferOwner>,
}

impl ByteBuffer {
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        let mut bytes = bytes.into();
        let size = bytes.len();
        bytes.push(0);
        let (owner, data) = BufferOwner::keep(bytes);
        ByteBuffer { data, size, owner }
    }

    /// A protobuf message, serialized.
    pub fn message(message: &impl prost::Message) -> Outcome<Self> {
        Ok(Self::from_bytes(message.encode_to_vec()))
    }
}

/// # Safety
/// `buffer` is NULL or points to a buffer that a call returned, or a zeroed one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_buffer_free(buffer: *mut ByteBuffer) {
    if buffer.is_null() {
        return;
    }
    // SAFETY: the contract of this function.
    let buffer = unsafe { &mut *buffer };
    ignore_panic((), || drop(buffer.owner.release()));
    *buffer = ByteBuffer { data: std::ptr::null(), size: 0, owner: ObjectHandle::NULL };
}
