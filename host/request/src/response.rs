//! One response to a request, and the parameters of requests and responses.

use super::tensor::OutputTensor;
use super::unread::UnreadResponse;
use smallvec::SmallVec;

/// A value of a request or response parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    String(String),
    Int(i64),
    Bool(bool),
    Double(f64),
}

/// One response. Outputs are in the order of the requested outputs.
#[derive(Debug, Default)]
pub struct InferResponse {
    pub outputs: SmallVec<[OutputTensor; 2]>,
    pub parameters: Vec<(String, ParameterValue)>,
    /// Counts the response as unread, if it was counted already.
    pub unread: Option<Box<UnreadResponse>>,
}

impl InferResponse {
    /// Bytes of all tensors that the response carries.
    pub fn byte_size(&self) -> usize {
        self.outputs.iter().map(|output| output.data.payload().len()).sum()
    }
}
