//! What execution needs to know of a model's tensors, after configuration and file were found to agree.

use trtserver_framework::slot;

/// How TensorFlow names a tensor in a run: an output of an operation.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub operation: String,
    pub index: i32,
    /// TensorFlow's number of the element type.
    pub data_type: i32,
}

pub type Slot = slot::Slot<Endpoint>;
pub type Plan = slot::Plan<Endpoint>;
