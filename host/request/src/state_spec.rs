//! Declared states of a model, and their values (docs/protocol/v2.md §4.11).

use super::dtype::DType;
use super::tensor::Shape;
use super::tensor_data::TensorData;
use std::sync::Arc;

/// One declared state: written as an output by one request, read as an input by the next.
#[derive(Clone, Debug)]
pub struct StateSpec {
    /// Number of the hidden input that reads it.
    pub input: usize,
    /// Name of the output that writes it.
    pub output: Arc<str>,
    pub dtype: DType,
    /// Without the batch dimension; -1 = variable.
    pub dims: Vec<i64>,
    /// The value at the start of a sequence, in the full shape of one row.
    pub initial: StateTensor,
}

/// The value of a state: one row, batch dimension first if the model batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateTensor {
    pub shape: Shape,
    pub data: TensorData,
}
