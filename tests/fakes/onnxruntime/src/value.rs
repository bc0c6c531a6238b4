//! Tensors: an element type, a shape, and memory of the CPU or of a device.

use crate::arena::Block;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Cpu,
    Cuda(i32),
}

/// What a memory info describes.
pub struct MemoryInfo {
    pub place: Place,
}

pub struct Tensor {
    /// ONNX Runtime's number.
    pub element: i32,
    pub shape: Vec<i64>,
    pub data: *mut u8,
    pub bytes: usize,
    pub place: Place,
    _owner: Owner,
}

enum Owner {
    Caller,
    Heap(#[allow(dead_code, reason = "held, not read")] Vec<u64>),
    Device(#[allow(dead_code, reason = "held, not read")] Block),
}

// SAFETY: plain memory; a test uses a value on one thread at a time.
unsafe impl Send for Tensor {}
// SAFETY: tests do not access one value from two threads at once.
unsafe impl Sync for Tensor {}

/// What an `OrtValue` points at.
pub type Value = Arc<Tensor>;

/// Bytes of an element.
pub fn size(element: i32) -> usize {
    if element == 7 { 8 } else { 4 }
}

pub fn bytes(element: i32, shape: &[i64]) -> usize {
    shape.iter().map(|dim| usize::try_from(*dim).unwrap_or(0)).product::<usize>() * size(element)
}

impl Tensor {
    /// Over memory of the caller.
    pub fn over(
        element: i32,
        shape: &[i64],
        data: *mut u8,
        given: usize,
        place: Place,
    ) -> Result<Self, String> {
        let bytes = bytes(element, shape);
        if bytes != given {
            return Err(format!("a tensor of shape {shape:?} has {bytes} bytes, not {given}"));
        }
        Ok(Self { element, shape: shape.to_vec(), data, bytes, place, _owner: Owner::Caller })
    }

    pub fn on_heap(element: i32, shape: &[i64]) -> Self {
        let bytes = bytes(element, shape);
        let mut heap = vec![0u64; bytes.div_ceil(8)];
        let data = heap.as_mut_ptr().cast();
        let shape = shape.to_vec();
        Self { element, shape, data, bytes, place: Place::Cpu, _owner: Owner::Heap(heap) }
    }

    pub fn on_device(element: i32, shape: &[i64], device: i32, block: Block) -> Self {
        let data = std::ptr::without_provenance_mut(block.at as usize);
        let (bytes, shape) = (bytes(element, shape), shape.to_vec());
        Self {
            element,
            shape,
            data,
            bytes,
            place: Place::Cuda(device),
            _owner: Owner::Device(block),
        }
    }
}
