//! Blocks of memory for the tensors of a session, which stay where they are, and copies into and out
//! of them.

use super::session::GpuSession;
use crate::check::TensorSlot;
use crate::value::OnnxValue;
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::CacheLine;
use trtserver_framework::types::{element_count, type_size};
use trtserver_plugin_api::abi::types::memory_type;
use trtserver_plugin_api::author::{Device, HostMemory, Memory, Scope, Stream};

/// Alignment of a block in device memory.
const ALIGN: usize = 256;

/// A tensor of the session, in memory that stays where it is.
pub struct FixedBlock {
    pub value: OnnxValue,
    pub data: *mut u8,
    pub row_bytes: usize,
    pub bytes: usize,
    pub memory: Memory,
    /// Of a row; of the whole tensor if the model does not batch.
    pub dims: Vec<i64>,
    _owner: BlockOwner,
}

enum BlockOwner {
    Device(#[allow(dead_code, reason = "held, not read")] HostMemory),
    Cpu(#[allow(dead_code, reason = "held, not read")] Vec<CacheLine>),
}

/// Where the elements of an input are.
#[derive(Clone, Copy)]
pub struct InputSource {
    pub data: *const u8,
    pub bytes: usize,
    pub memory: Memory,
}

impl FixedBlock {
    /// A block of zeros.
    pub fn new(
        session: &GpuSession,
        slot: &TensorSlot,
        dims: Vec<i64>,
        rows: usize,
        memory: Memory,
        (device, scope): (&Device, &Scope),
    ) -> Result<Self, PluginFault> {
        let runtime = session.model.session.runtime;
        let large = || PluginFault::invalid(format!("tensor '{}' is too large", slot.name));
        let elements = element_count(&dims).ok_or_else(large)?;
        let row_bytes = elements.checked_mul(type_size(slot.dtype)).ok_or_else(large)?;
        let bytes = row_bytes.checked_mul(rows).ok_or_else(large)?;
        let (data, owner, info) = if memory == Memory::CPU {
            let mut lines = vec![CacheLine::EMPTY; bytes.div_ceil(size_of::<CacheLine>()).max(1)];
            let data = lines.as_mut_ptr().cast::<u8>();
            (data, BlockOwner::Cpu(lines), runtime.memory.cast_const())
        } else {
            let block = zeroed(device, scope, bytes)?;
            (block.as_ptr(), BlockOwner::Device(block), session.memory())
        };
        let shape = shape_of(&dims, rows, session.model.plan.batching);
        // SAFETY: the block has this size, is aligned, and outlives the value, which is declared
        // before its owner.
        let value =
            unsafe { OnnxValue::over_in(runtime, info, slot.handle.element, &shape, data, bytes)? };
        Ok(Self { value, data, row_bytes, bytes, memory, dims, _owner: owner })
    }

    pub fn is_on_device(&self) -> bool {
        self.memory.memory_type == memory_type::GPU
    }
}

/// Device memory of zeros.
pub fn zeroed(device: &Device, scope: &Scope, bytes: usize) -> Result<HostMemory, PluginFault> {
    let stream = device.stream();
    let block = scope.allocate_for(device.memory(), bytes.max(1), ALIGN, Some(stream))?;
    // Pieces, so that a large block needs no second one of its size on the CPU.
    let piece = vec![0u8; bytes.clamp(1, 1 << 20)];
    let copied = (0..bytes).step_by(piece.len()).try_for_each(|start| {
        let length = piece.len().min(bytes - start);
        let to = (block.as_ptr().wrapping_add(start), block.memory());
        // SAFETY: inside the block. The piece lives until the stream has read it: see below.
        unsafe { device.copy(to, (piece.as_ptr(), Memory::CPU), length, Some(stream)) }
    });
    // After an error as well: copies that were queued before it read the piece.
    let waited = super::wait_for_stream(device, stream);
    copied?;
    waited?;
    Ok(block)
}

/// The shape of a tensor of `rows` rows of `dims`.
pub fn shape_of(dims: &[i64], rows: usize, batching: bool) -> Vec<i64> {
    let rows = batching.then(|| i64::try_from(rows).unwrap_or(i64::MAX));
    rows.into_iter().chain(dims.iter().copied()).collect()
}

/// # Safety
/// Both have `bytes` bytes and do not overlap; they are valid until the copy is done, which is when
/// this returns without a stream, or on the CPU.
pub unsafe fn copy_bytes(
    device: &Device,
    (to, to_memory): (*mut u8, Memory),
    (from, from_memory): (*const u8, Memory),
    bytes: usize,
    stream: Option<Stream>,
) -> Result<(), PluginFault> {
    let on_gpu = |memory: Memory| memory.memory_type == memory_type::GPU;
    // SAFETY: by the caller's promise.
    unsafe {
        if on_gpu(to_memory) || on_gpu(from_memory) {
            return Ok(device.copy((to, to_memory), (from, from_memory), bytes, stream)?);
        }
        ptr::copy_nonoverlapping(from, to, bytes);
    }
    Ok(())
}
