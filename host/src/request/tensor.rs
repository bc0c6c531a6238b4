//! Tensors of requests and responses: data type, shape, and bytes that are never copied for inspection.

use super::buffer::{AlignedBuf, uses_arena};
use super::dtype::DType;
use crate::budget::{Purpose, SMALL};
use crate::error::Result;
use bytes::Bytes;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// Dimensions, batch first when the model batches. Inline capacity is four: requests are moved often, and few tensors have more.
pub type Shape = SmallVec<[i64; 4]>;

/// One input of a request. `data` is a slice of the received body.
#[derive(Clone, Debug)]
pub struct InputTensor {
    /// Position in the model configuration's input list; the name is looked up there.
    pub index: usize,
    pub dtype: DType,
    /// Full shape as clients see it, batch dimension first if the model batches.
    pub shape: Shape,
    /// Little-endian, row-major; strings with their length prefixes.
    pub data: Bytes,
}

impl InputTensor {
    /// Aligns the data for its type; copies it if it is misaligned.
    ///
    /// # Errors
    /// There is no memory for the copy.
    pub fn align(&mut self) -> Result<()> {
        match self.is_aligned(1) {
            true => Ok(()),
            false => self.copy_aligned(1),
        }
    }

    /// Whether the data is aligned for its type and to `align` bytes.
    pub fn is_aligned(&self, align: usize) -> bool {
        let need = align.max(self.dtype.size().unwrap_or(1));
        self.data.is_empty() || self.data.as_ptr().addr().is_multiple_of(need)
    }

    /// Replaces the data by a copy that is aligned for its type and to `align` bytes, of which there are at most
    /// [`ALIGN`](super::buffer::ALIGN).
    ///
    /// # Errors
    /// There is no memory for the copy.
    pub fn copy_aligned(&mut self, align: usize) -> Result<()> {
        if !uses_arena() && self.data.len() < SMALL {
            // Not guaranteed to be aligned, but it is with our allocators, and takes one allocation instead of two.
            self.data = Bytes::copy_from_slice(&self.data);
        }
        if !self.is_aligned(align) || uses_arena() {
            let copy = AlignedBuf::try_copy(None, &[&self.data], Purpose::Request);
            self.data = copy.map_err(|e| e.refuse("a misaligned tensor"))?.into_bytes();
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
    pub data: Bytes,
}

/// An output named by the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedOutput {
    /// Position in the model configuration's output list.
    pub index: usize,
    /// Non-zero: the top classes are returned, this many, instead of the tensor.
    pub classes: u32,
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
