//! Batch inputs of a model (`batch_input`): tensors that describe the requests of a batch.

use super::dtype::DType;

/// What a batch input says of the source input in the requests of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchInputKind {
    /// The number of its elements in each request.
    ElementCount,
    /// The running sum of its elements: of each request and all requests before it.
    AccumulatedElementCount,
    /// A 0, then the sums of `AccumulatedElementCount`.
    AccumulatedElementCountWithZero,
    /// A tensor of zeros, as long as the request with the most elements.
    MaxElementCountAsShape,
    /// The shape of each row.
    ItemShape,
    /// The shapes of all rows in one dimension.
    ItemShapeFlatten,
}

/// A batch input. The host adds a part of it to each request; the parts of a batch, one after
/// another, are the tensor.
#[derive(Clone, Debug)]
pub struct BatchInput {
    pub kind: BatchInputKind,
    /// Numbers of the hidden inputs that get it.
    pub targets: Vec<usize>,
    /// INT32 or FP32.
    pub dtype: DType,
    /// Number of the input that it describes.
    pub source: usize,
}
