//! Tensors of requests and responses: data type, shape, and data that is never copied for
//! inspection.

use super::buffer::{AlignedBuf, uses_arena};
use super::dtype::DType;
use super::memory::OutputMemory;
use super::tensor_data::TensorData;
use super::thread_block::MAX_PIECE;
use bytes::Bytes;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use trtserver_base::budget::SMALL;
use trtserver_base::error::Result;
use trtserver_base::ledger::LedgerHolder;

/// Dimensions, batch first when the model batches. Inline capacity is four: requests are moved
/// often, and few tensors have more.
pub type Shape = SmallVec<[i64; 4]>;

/// One input of a request. `data` is a slice of the received body, or of a client's shared memory.
#[derive(Clone, Debug)]
pub struct InputTensor {
    /// Position in the model configuration's input list; the name is looked up there.
    pub index: usize,
    pub dtype: DType,
    /// Full shape as clients see it, batch dimension first if the model batches.
    pub shape: Shape,
    pub data: TensorData,
}

impl InputTensor {
    /// Aligns the data for its type; copies it if it is misaligned. Data that the CPU cannot access
    /// is aligned by the instance.
    ///
    /// # Errors
    /// There is no memory for the copy.
    pub fn align(&mut self) -> Result<()> {
        if self.is_aligned(1) || !self.data.location().is_cpu_accessible() {
            return Ok(());
        }
        self.copy_aligned(1)
    }

    /// Copies data of client shared memory to memory of the host, because the client can change it
    /// while it is checked. Data that the CPU cannot access stays where it is.
    ///
    /// # Errors
    /// There is no memory for the copy, or the client's memory has a fault.
    pub fn unshare(&mut self) -> Result<()> {
        if let TensorData::Placed(slice) = &self.data
            && slice.location().is_cpu_accessible()
        {
            self.data = slice.to_cpu()?.into();
        }
        Ok(())
    }

    /// Whether the data is in memory that the CPU can access, aligned for its type and to `align`
    /// bytes.
    pub fn is_aligned(&self, align: usize) -> bool {
        let ptr = match &self.data {
            TensorData::Cpu(bytes) => bytes.as_ptr(),
            TensorData::Placed(slice) if slice.location().is_cpu_accessible() => slice.as_ptr(),
            TensorData::Placed(_) => return false,
        };
        self.data.is_empty() || ptr.addr().is_multiple_of(align.max(self.dtype.size().unwrap_or(1)))
    }

    /// Replaces the data by a copy in CPU memory that is aligned for its type and to `align` bytes,
    /// of which there are at most [`ALIGN`](super::buffer::ALIGN). Not on a network thread for GPU
    /// memory.
    ///
    /// # Errors
    /// There is no memory for the copy, or the device failed.
    pub fn copy_aligned(&mut self, align: usize) -> Result<()> {
        let Some(data) = self.data.readable() else {
            self.data = self.data.to_cpu()?.into();
            return Ok(());
        };
        if !uses_arena() && data.len() > MAX_PIECE && data.len() < SMALL {
            // Not guaranteed to be aligned, but it is with our allocators, and takes one allocation
            // instead of two.
            self.data = Bytes::copy_from_slice(data).into();
        }
        if !self.is_aligned(align) || uses_arena() {
            let data = self.data.readable().unwrap_or_default();
            let copy = AlignedBuf::try_copy(None, &[data], LedgerHolder::Input);
            self.data = copy.map_err(|e| e.refuse("a misaligned tensor"))?.into_bytes().into();
        }
        Ok(())
    }
}

/// One output of a response.
#[derive(Clone, Debug)]
pub struct OutputTensor {
    pub name: Arc<str>,
    pub dtype: DType,
    /// Full shape as clients see it, batch dimension first if the model batches.
    pub shape: Shape,
    /// Placed only in the memory that the request named for this output, or in GPU memory where it
    /// may stay.
    pub data: TensorData,
}

/// Bit of [`RequestedOutput`]: the output may stay in GPU memory.
const ON_DEVICE: u32 = 1 << 31;

/// An output named by the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedOutput {
    /// Position in the model configuration's output list, and [`ON_DEVICE`]. Half a word, so that
    /// the destination does not enlarge a request.
    index: u32,
    /// Non-zero: the top classes are returned, this many, instead of the tensor.
    pub classes: u32,
    /// Where the client wants the tensor; not together with classes.
    pub destination: Option<Arc<OutputMemory>>,
}

impl RequestedOutput {
    /// An output that is sent in the response.
    pub fn new(index: usize, classes: u32) -> Self {
        Self { index: index as u32, classes, destination: None }
    }

    /// The same with this destination.
    pub fn written_to(self, destination: Option<Arc<OutputMemory>>) -> Self {
        Self { destination, ..self }
    }

    /// The same; with `stays`, an output that the backend writes to GPU memory is not copied to the
    /// CPU.
    pub fn on_device(mut self, stays: bool) -> Self {
        self.index |= if stays { ON_DEVICE } else { 0 };
        self
    }

    pub fn stays_on_device(&self) -> bool {
        self.index & ON_DEVICE != 0
    }

    pub fn index(&self) -> usize {
        (self.index & !ON_DEVICE) as usize
    }
}

/// Number of elements of a shape; `None` if a dimension is negative or the product overflows.
pub fn element_count(shape: &[i64]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?))
}

/// Formats a shape as `[1,16]` for error messages.
pub struct ShapeText<'a>(pub &'a [i64]);

impl fmt::Display for ShapeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
#[path = "tensor_tests.rs"]
mod tests;
