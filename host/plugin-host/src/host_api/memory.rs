//! The extension `trts.memory`: memory of the host for a backend's own use, and reports of memory
//! that it holds besides.

use super::basics::no_scope;
use super::devices::{any_device, take_event};
use super::guard::{guard_entry, guard_value, put_out};
use super::reported_memory::memory_name;
use super::scope::{self, BackendMemory, Scope};
use crate::host_state::HOST;
use std::ptr::null_mut;
use std::sync::Arc;
use trtserver_base::error::{Code, Error as HostError, Result};
use trtserver_device::CudaStream;
use trtserver_plugin_api::abi::extensions::MemoryExtension;
use trtserver_plugin_api::abi::types::{self, Buf, Error, Memory, memory_type};
use trtserver_request::buffer::{ALIGN, AlignedBuf};

pub(super) static TABLE: MemoryExtension = MemoryExtension {
    size: std::mem::size_of::<MemoryExtension>() as u64,
    memory_alloc,
    memory_free,
    memory_report,
};

/// Alignment of device memory.
const GPU_ALIGN: u64 = 256;

/// Frees what no device uses any more.
fn prune_freed() {
    let unused: Vec<_> = HOST
        .memory
        .freed
        .lock()
        .extract_if(.., |(after, _)| !matches!(after.is_reached(), Ok(false)))
        .collect();
    drop(unused);
}

unsafe extern "C" fn memory_alloc(
    scope: *mut types::Scope,
    memory: Memory,
    bytes: u64,
    align: u64,
    _flags: u32,
    stream: *mut u8,
    out: *mut Buf,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: the handle is valid during the call.
        let scope = unsafe { Scope::from_handle(scope) }.ok_or_else(no_scope)?;
        let max = if memory.memory_type == memory_type::GPU { GPU_ALIGN } else { ALIGN as u64 };
        if align > max || bytes > isize::MAX as u64 {
            return Err(HostError::unsupported(format!(
                "{}: {bytes} bytes aligned to {align} were requested, the maximum alignment is {max}",
                scope.label()
            )));
        }
        prune_freed();
        // SAFETY: null or a stream of the device, by the interface.
        let (ptr, block) = unsafe { alloc(scope, memory, bytes as usize, stream) }
            .map_err(|e| HostError { message: format!("{}: {}", scope.label(), e.message), ..e })?;
        let (ready, memory_handle) = (null_mut(), scope.keep(block));
        // SAFETY: null or valid for writing one buffer.
        let stored = unsafe { put_out(out, Buf { ptr, bytes, memory, ready, memory_handle }) };
        if stored.is_err() {
            drop(scope::take_memory(memory_handle));
        }
        stored
    })
}

/// # Safety
/// `stream` is null or a stream of the device.
unsafe fn alloc(
    scope: &Scope,
    memory: Memory,
    bytes: usize,
    stream: *mut u8,
) -> Result<(*mut u8, BackendMemory)> {
    match memory.memory_type {
        memory_type::CPU => {
            let block = AlignedBuf::try_new(bytes, scope.tag()).ok_or_else(|| {
                let text = format!("out of memory: {bytes} bytes cannot be allocated");
                HostError::new(Code::ResourceExhausted, text)
            });
            let mut block = block?;
            Ok((block.as_mut_ptr(), BackendMemory::Cpu(block)))
        }
        memory_type::PINNED => {
            let block = any_device()?.alloc_pinned(bytes, scope.tag())?;
            Ok((block.as_ptr(), BackendMemory::Pinned(block)))
        }
        memory_type::GPU => {
            let device = trtserver_device::find_gpu(memory.device_id)?;
            // SAFETY: the default stream always exists; the other by the caller's promise. The
            // block keeps only the former.
            let (default, first) = unsafe {
                let borrowed = |handle| Arc::new(CudaStream::borrowed(device.context(), handle));
                (borrowed(null_mut()), borrowed(stream.cast()))
            };
            let mut block = device.alloc(bytes, &first, scope.tag())?;
            if stream.is_null() {
                default.synchronize()?;
            } else {
                // The block is freed behind its allocation.
                device.events().record(&first)?.block(&default)?;
                block.release_on(&default);
            }
            let ptr = std::ptr::without_provenance_mut(block.address() as usize);
            Ok((ptr, BackendMemory::Gpu(block)))
        }
        _ => Err(HostError::unsupported(format!(
            "{} was requested, this host allocates CPU, pinned and GPU memory",
            memory_name(memory)
        ))),
    }
}

unsafe extern "C" fn memory_free(memory_handle: u64, after: *mut types::Event) {
    guard_value((), || {
        // SAFETY: null or an event that the backend does not use again.
        let after = unsafe { take_event(after) };
        prune_freed();
        match (scope::take_memory(memory_handle), after) {
            (Some(block), Some(after)) => HOST.memory.freed.lock().push((after, block)),
            (Some(block), None) => drop(block),
            (None, _) => tracing::warn!(
                "a backend freed the memory handle {memory_handle}, which is not allocated"
            ),
        }
    });
}

unsafe extern "C" fn memory_report(
    scope: *mut types::Scope,
    memory: Memory,
    bytes: u64,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: the handle is valid during the call.
        let scope = unsafe { Scope::from_handle(scope) }.ok_or_else(no_scope)?;
        if memory.memory_type > memory_type::MANAGED {
            return Err(HostError::unsupported(format!(
                "{}: memory type {} was reported, which this host does not know",
                scope.label(),
                memory.memory_type
            )));
        }
        scope.report(memory, bytes);
        Ok(())
    })
}
