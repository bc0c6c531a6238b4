//! A tensor on its way through the host: name, type, shape, and bytes wherever they already lie.

use super::buffer::{AlignedBuf, is_shared};
use super::dtype::DType;
use bytes::Bytes;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// Dimensions, batch first when the model batches. Most tensors have at most four; requests are moved about too often for more room.
pub type Shape = SmallVec<[i64; 4]>;

/// One input as the caller gave it. `data` is a slice of what came off the wire: never copied to be inspected.
#[derive(Clone, Debug)]
pub struct InputTensor {
    /// Position in the model configuration's input list; the name is looked up there.
    pub index: usize,
    pub dtype: DType,
    /// Full shape as the caller sees it, batch dimension first when the model batches.
    pub shape: Shape,
    /// Little-endian, row-major; strings with their length prefixes.
    pub data: Bytes,
}

impl InputTensor {
    /// Elements start where their type wants them. Where a message or a model put them elsewhere, they are copied.
    pub fn align(&mut self) {
        let Some(size) = self.dtype.size() else { return };
        let fits = |data: &Bytes| (data.as_ptr() as usize).is_multiple_of(size);
        if fits(&self.data) {
            return;
        }
        if !is_shared() {
            // Not promised to lie right, but it does, and takes one allocation where the other takes two.
            self.data = Bytes::copy_from_slice(&self.data);
        }
        if is_shared() || !fits(&self.data) {
            self.data = AlignedBuf::copy_of(&[&self.data]).into_bytes();
        }
    }
}

/// One output of a response, in the form that goes on the wire.
#[derive(Clone, Debug)]
pub struct OutputTensor {
    pub name: Arc<str>,
    pub dtype: DType,
    /// Full shape as the caller sees it, batch dimension first when the model batches.
    pub shape: Shape,
    pub data: Bytes,
}

/// An output that the caller asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedOutput {
    /// Position in the model configuration's output list.
    pub index: usize,
    /// Non-zero: the caller wants that many top classes instead of the tensor.
    pub classes: u32,
}

/// Elements of a shape; `None` when a dimension is negative or the product overflows.
pub fn element_count(shape: &[i64]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?))
}

/// `[1,16]`, as error messages show shapes.
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
