//! The protocol-neutral request and its answer: what every front end makes and every scheduler takes.
//!
//! Nothing here knows a protocol, a model directory or the async runtime.

pub mod buffer; // aligned memory that becomes wire bytes without a copy
pub mod check; // a request against the declared tensors: the messages that users quote
pub mod classes; // top-k results
pub mod dtype; // element types
pub mod pages; // memory straight from the system
pub mod pool; // large blocks, kept for a moment and used again
pub mod reply; // the answer side: sink, cancellation, accounting
pub mod signature; // the tensors that a model declares
pub mod state; // what the host keeps between the steps of a sequence
pub mod strings; // the byte form of string tensors
pub mod tensor;
#[cfg(test)]
pub mod testing; // requests for tests // name, type, shape, bytes

pub use dtype::DType;
pub use reply::{Reply, ResponseSink, SharedSink, Single, Sink, Waiting};
pub use signature::{Role, Signature, TensorSpec};
pub use state::SequenceMemory;
pub use tensor::{InputTensor, OutputTensor, Shape, ShapeText, WantedOutput};

use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// A value of a request or response parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    String(String),
    Int(i64),
    Bool(bool),
    Double(f64),
}

/// To which sequence a request belongs. `0` and `""` mean none; 1 and "1" are different sequences.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum CorrelationId {
    #[default]
    None,
    Number(u64),
    Text(String),
}

/// As messages show it.
impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CorrelationId::None => f.write_str("0"),
            CorrelationId::Number(n) => n.fmt(f),
            CorrelationId::Text(text) => f.write_str(text),
        }
    }
}

/// Sequence fields of a request; models without sequence batching ignore them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sequence {
    pub id: CorrelationId,
    pub start: bool,
    pub end: bool,
}

/// One inference request, checked against the model's signature.
pub struct InferRequest {
    /// The caller's id as text; empty = none. Echoed by the front ends, shown to plugins and in logs.
    pub id: String,
    /// Rows: the first dimension of every tensor of a batching model, else 1.
    pub batch: u32,
    /// In the order of the model configuration; optional inputs may be missing.
    pub inputs: SmallVec<[InputTensor; 2]>,
    /// In the order in which the caller asked. v2 fills in all outputs when none is named; v1 may ask for none.
    pub outputs: SmallVec<[WantedOutput; 2]>,
    pub sequence: Sequence,
    /// 0 = the model's default level, 1 is the highest.
    pub priority: u64,
    /// Longest wait in the queue in microseconds that the caller accepts; 0 = no opinion.
    pub timeout_us: u64,
    /// Parameters for the model.
    pub parameters: Vec<(String, Parameter)>,
    /// When the caller stops waiting; 0 = never. Nanoseconds of [`crate::clock::now_ns`].
    pub deadline_ns: u64,
    /// The caller takes several responses.
    pub streaming: bool,
    /// Nobody reads the answer: the model is being warmed up.
    pub warmup: bool,
    pub reply: Arc<Reply>,
}

/// One answer. Outputs are in the order in which the caller asked for them.
#[derive(Clone, Debug, Default)]
pub struct InferResponse {
    pub outputs: SmallVec<[OutputTensor; 2]>,
    pub parameters: Vec<(String, Parameter)>,
}
