//! What execution needs to know of a model's tensors, after configuration and file were found to
//! agree.

use trtserver_framework::slot;

/// How TensorFlow names a tensor in a run: an output of an operation.
#[derive(Debug, Clone)]
pub struct GraphEndpoint {
    pub operation: String,
    pub index: i32,
    /// TensorFlow's number of the element type.
    pub data_type: i32,
}

pub type TensorSlot = slot::TensorSlot<GraphEndpoint>;
pub type TensorPlan = slot::TensorPlan<GraphEndpoint>;
