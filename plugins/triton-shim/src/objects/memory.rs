//! `TRITONBACKEND_MemoryManager`: memory for the backend's own use, one manager per backend.
//!
//! CPU memory is the allocator's; the rest is the host's, from the pools that the server was given.
//! Each block is remembered, so that freeing memory twice, or memory of another owner, is an error.

use super::attributes::memory_location;
use crate::fault::{Result, TritonFault};
use crate::handles::{ObjectKind, TypedObject};
use crate::host;
use crate::scope::Scope;
use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use trtserver_plugin_api::abi::types::{Buf, Memory, code, memory_type};

pub struct MemoryManager {
    scope: Arc<Scope>,
    /// What the backend has, by address.
    blocks: [Mutex<HashMap<usize, MemoryBlock>>; 16],
}

struct MemoryBlock {
    memory: Memory,
    kind: BlockKind,
}

enum BlockKind {
    Cpu(*mut u8, Layout),
    /// Memory handle of the host.
    Host(u64),
}

// SAFETY: a block owns its memory.
unsafe impl Send for MemoryBlock {}

impl Drop for MemoryBlock {
    fn drop(&mut self) {
        match self.kind {
            // SAFETY: allocated with this layout, and a block is dropped once.
            BlockKind::Cpu(p, layout) => unsafe { dealloc(p, layout) },
            BlockKind::Host(handle) => {
                if let Some(extension) = host::memory_extension() {
                    // SAFETY: a handle of the host, freed once.
                    unsafe { (extension.memory_free)(handle, ptr::null_mut()) }
                }
            }
        }
    }
}

impl TypedObject for MemoryManager {
    const KIND: ObjectKind = ObjectKind::MemoryManager;
}

impl MemoryManager {
    pub fn new(scope: Arc<Scope>) -> Self {
        Self { scope, blocks: Default::default() }
    }

    fn shard(&self, address: usize) -> std::sync::MutexGuard<'_, HashMap<usize, MemoryBlock>> {
        let shard = &self.blocks[(address >> 6) % self.blocks.len()];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// UNSUPPORTED: never. UNAVAILABLE: not now.
    pub fn allocate(&self, kind: i32, id: i64, bytes: u64) -> Result<*mut u8> {
        let wanted = memory_location(kind, id).ok_or_else(|| {
            TritonFault::unsupported(format_args!("there is no memory of type {kind} with id {id}"))
        })?;
        let (p, kind) = match wanted.memory_type {
            memory_type::CPU => {
                // As malloc does, nothing is also something.
                let size = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
                let layout = Layout::from_size_align(size, 64).map_err(|_| exhausted(bytes))?;
                // SAFETY: the layout is not empty.
                let p = unsafe { alloc(layout) };
                if p.is_null() {
                    return Err(exhausted(bytes));
                }
                (p, BlockKind::Cpu(p, layout))
            }
            _ => self.allocate_host(wanted, bytes)?,
        };
        self.shard(p.addr()).insert(p.addr(), MemoryBlock { memory: wanted, kind });
        Ok(p)
    }

    fn allocate_host(&self, wanted: Memory, bytes: u64) -> Result<(*mut u8, BlockKind)> {
        let extension = host::memory_extension()
            .ok_or_else(|| TritonFault::unsupported("this server offers backends no memory"))?;
        let mut buf = Buf {
            ptr: ptr::null_mut(),
            bytes: 0,
            memory: wanted,
            ready: ptr::null_mut(),
            memory_handle: 0,
        };
        let allocated = self.scope.with(|host, scope| {
            let (stream, out) = (ptr::null_mut(), &raw mut buf);
            // SAFETY: the scope is open; the host writes one buffer. An error is owned by the
            // caller.
            unsafe {
                let allocate = extension.memory_alloc;
                host::take_error(host, allocate(scope, wanted, bytes, 0, 0, stream, out))
            }
        });
        match allocated {
            Some(Ok(())) => Ok((buf.ptr, BlockKind::Host(buf.memory_handle))),
            Some(Err(fault)) if fault.code == code::EXHAUSTED => {
                Err(TritonFault { code: code::UNAVAILABLE, ..fault })
            }
            Some(Err(fault)) => Err(fault),
            None => Err(TritonFault::unavailable("the backend is closed")),
        }
    }

    pub fn free(&self, p: *mut u8, kind: i32, id: i64) -> Result<()> {
        if p.is_null() {
            return Ok(());
        }
        let mut shard = self.shard(p.addr());
        let Some(block) = shard.get(&p.addr()) else {
            return Err(TritonFault::misuse(format_args!(
                "the buffer {p:?} was not allocated with this memory manager, or was freed before"
            )));
        };
        if memory_location(kind, id) != Some(block.memory) {
            return Err(TritonFault::misuse(format_args!(
                "the buffer {p:?} has memory type {} with id {}; type {kind} with id {id} was given",
                block.memory.memory_type, block.memory.device_id
            )));
        }
        let block = shard.remove(&p.addr());
        drop(shard);
        drop(block);
        Ok(())
    }
}

fn exhausted(bytes: u64) -> TritonFault {
    TritonFault::unavailable(format_args!("{bytes} bytes of CPU memory cannot be allocated"))
}
