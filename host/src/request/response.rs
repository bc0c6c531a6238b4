//! One response to a request, and the parameters of requests and responses.

use super::tensor::OutputTensor;
use smallvec::SmallVec;

/// A value of a request or response parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    String(String),
    Int(i64),
    Bool(bool),
    Double(f64),
}

/// One response. Outputs are in the order of the requested outputs.
#[derive(Clone, Debug, Default)]
pub struct InferResponse {
    pub outputs: SmallVec<[OutputTensor; 2]>,
    pub parameters: Vec<(String, Parameter)>,
}
