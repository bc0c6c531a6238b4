//! Tensor data: bytes in CPU memory of the host, or a range of placed memory (shared memory, pinned
//! memory, GPU memory).

use super::memory::{MemoryLocation, OutputMemory, PlacedSlice};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};

/// The elements of a tensor, wherever they are: little-endian, row-major; strings with their length
/// prefixes. As large as [`Bytes`], and plain CPU memory costs what it costs there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorData {
    Cpu(Bytes),
    /// Compared by memory range, not by content.
    Placed(PlacedSlice),
}

impl TensorData {
    pub const EMPTY: Self = Self::Cpu(Bytes::new());

    pub fn len(&self) -> usize {
        match self {
            Self::Cpu(bytes) => bytes.len(),
            Self::Placed(slice) => slice.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn location(&self) -> MemoryLocation {
        match self {
            Self::Cpu(_) => MemoryLocation::CPU,
            Self::Placed(slice) => slice.location(),
        }
    }

    /// The address, on the device if it is GPU memory.
    pub fn as_ptr(&self) -> *const u8 {
        match self {
            Self::Cpu(bytes) => bytes.as_ptr(),
            Self::Placed(slice) => slice.as_ptr(),
        }
    }

    /// The bytes of data that is not placed.
    pub fn cpu(&self) -> Option<&Bytes> {
        match self {
            Self::Cpu(bytes) => Some(bytes),
            Self::Placed(_) => None,
        }
    }

    /// The range of placed memory.
    pub fn placed(&self) -> Option<&PlacedSlice> {
        match self {
            Self::Cpu(_) => None,
            Self::Placed(slice) => Some(slice),
        }
    }

    /// The bytes, if the CPU can access them. See [`PlacedSlice::readable`].
    pub fn readable(&self) -> Option<&[u8]> {
        match self {
            Self::Cpu(bytes) => Some(bytes),
            Self::Placed(slice) => slice.readable(),
        }
    }

    /// The bytes in CPU memory of the host; a copy where needed. See [`PlacedSlice::to_cpu`].
    ///
    /// # Errors
    /// The errors of [`PlacedSlice::to_cpu`].
    pub fn to_cpu(&self) -> Result<Bytes> {
        match self {
            Self::Cpu(bytes) => Ok(bytes.clone()),
            Self::Placed(slice) => slice.to_cpu(),
        }
    }

    /// The bytes that a response carries. None if the tensor is placed, because then it was written
    /// to its destination.
    pub fn payload(&self) -> &Bytes {
        static NONE: Bytes = Bytes::new();
        self.cpu().unwrap_or(&NONE)
    }

    /// `range` of the data, in the same memory.
    ///
    /// # Panics
    /// The range is not inside the data.
    pub fn slice(&self, range: Range<usize>) -> Self {
        match self {
            Self::Cpu(bytes) => Self::Cpu(bytes.slice(range)),
            Self::Placed(slice) => Self::Placed(slice.slice(range)),
        }
    }

    /// The data of output `name` for the response: in the output's destination if it has one, else
    /// in CPU memory. Waits for copies from and to a GPU.
    ///
    /// # Errors
    /// The destination is too small, there is no memory for a copy, or the device failed.
    pub fn deliver(self, destination: Option<&Arc<OutputMemory>>, name: &str) -> Result<Self> {
        match (self, destination) {
            (data @ Self::Cpu(_), None) => Ok(data),
            (Self::Placed(slice), None) => slice.to_cpu().map(Self::Cpu),
            (data, Some(destination)) => data.store_in(destination, name),
        }
    }

    /// Written to the destination, unless it is there already.
    fn store_in(self, destination: &OutputMemory, name: &str) -> Result<Self> {
        let slice = destination.take(name, self.len())?;
        match (&self, self.readable()) {
            (Self::Placed(written), _) if *written == slice => return Ok(self),
            (_, Some(bytes)) => slice.write(&[bytes])?,
            (Self::Placed(written), None) => slice.copy_from_gpu(written)?,
            (Self::Cpu(_), None) => {}
        }
        Ok(slice.into())
    }

    /// Why the data cannot be trusted. See [`super::memory::MemoryOwner::fault`].
    pub fn fault(&self) -> Option<Error> {
        self.placed().and_then(|slice| slice.memory().fault())
    }
}

impl From<Bytes> for TensorData {
    fn from(bytes: Bytes) -> Self {
        Self::Cpu(bytes)
    }
}

impl From<Vec<u8>> for TensorData {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Cpu(bytes.into())
    }
}

impl From<PlacedSlice> for TensorData {
    fn from(slice: PlacedSlice) -> Self {
        Self::Placed(slice)
    }
}

#[cfg(test)]
#[path = "tensor_data_tests.rs"]
mod tests;
