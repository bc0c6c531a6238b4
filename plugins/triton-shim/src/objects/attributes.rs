//! `TRITONSERVER_BufferAttributes`: size and memory of a buffer.

use crate::handles::{LiveObject, ObjectKind, TypedObject, create_object};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicPtr, AtomicU64};
use trtserver_plugin_api::abi::types::{Memory, memory_type};

#[derive(Default)]
pub struct BufferAttributes {
    pub bytes: AtomicU64,
    pub memory_type: AtomicI32,
    pub memory_id: AtomicI64,
    /// A CUDA IPC handle of 64 bytes in memory of the caller that set it, or null.
    pub cuda_ipc_handle: AtomicPtr<c_void>,
}

impl TypedObject for BufferAttributes {
    const KIND: ObjectKind = ObjectKind::BufferAttributes;
}

impl BufferAttributes {
    pub fn create(bytes: u64, memory: Memory) -> LiveObject<BufferAttributes> {
        let (kind, id) = memory_numbers(memory);
        create_object(BufferAttributes {
            bytes: bytes.into(),
            memory_type: kind.into(),
            memory_id: id.into(),
            cuda_ipc_handle: AtomicPtr::default(),
        })
    }
}

/// Memory as Triton numbers it. It has no managed memory; a GPU can use that as its own.
pub fn memory_numbers(memory: Memory) -> (i32, i64) {
    let kind = match memory.memory_type {
        memory_type::MANAGED => memory_type::GPU,
        known => known,
    };
    (kind as i32, memory.device_id.into())
}

/// Memory of Triton's numbers; `None` for numbers that it does not have.
pub fn memory_location(kind: i32, id: i64) -> Option<Memory> {
    let memory_type = u32::try_from(kind).ok().filter(|kind| *kind <= memory_type::GPU)?;
    Some(Memory { memory_type, device_id: i32::try_from(id).ok()? })
}
