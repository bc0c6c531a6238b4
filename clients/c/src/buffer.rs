//! `trtc_buffer`: bytes that a call returned, with a NUL behind them.

use crate::failure::{Outcome, quiet};
use crate::handle::{Handle, Object};
use std::sync::Arc;

/// `trtc_owner`: what a buffer or picture points into.
pub struct Owner(Vec<u8>);

impl Object for Owner {
    const NAME: &'static str = "buffer";
}

impl Owner {
    /// Keeps the bytes; returns the handle and where they are.
    pub fn keep(bytes: Vec<u8>) -> (Handle<Owner>, *const u8) {
        let owner = Arc::new(Owner(bytes));
        let data = owner.0.as_ptr();
        (Handle::new(owner), data)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[repr(C)]
pub struct Buffer {
    data: *const u8,
    size: usize,
    owner: Handle<Owner>,
}

impl Buffer {
    pub fn of(bytes: impl Into<Vec<u8>>) -> Self {
        let mut bytes = bytes.into();
        let size = bytes.len();
        bytes.push(0);
        let (owner, data) = Owner::keep(bytes);
        Buffer { data, size, owner }
    }

    /// A protobuf message, serialized.
    pub fn message(message: &impl prost::Message) -> Outcome<Self> {
        Ok(Self::of(message.encode_to_vec()))
    }
}

/// # Safety
/// `buffer` is NULL or points to a buffer that a call returned, or a zeroed one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_buffer_free(buffer: *mut Buffer) {
    if buffer.is_null() {
        return;
    }
    // SAFETY: the contract of this function.
    let buffer = unsafe { &mut *buffer };
    quiet((), || drop(buffer.owner.release()));
    *buffer = Buffer { data: std::ptr::null(), size: 0, owner: Handle::NULL };
}
