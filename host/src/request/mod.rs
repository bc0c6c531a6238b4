//! The protocol-neutral request and its answer: what every front end makes and every scheduler takes.
//!
//! Nothing here knows a protocol, a model directory or the async runtime.

pub mod buffer; // aligned memory that becomes wire bytes without a copy
pub mod cancel; // a flag that backends poll, and who is notified
pub mod check; // a request against the declared tensors: the messages that users quote
pub mod classes; // top-k results
pub mod context; // what is known when a request is built
pub mod dtype; // element types
pub mod implicit_state; // what the host keeps between the requests of a sequence
pub mod pages; // memory straight from the system
pub mod pool; // large blocks, kept for a moment and used again
pub mod responder; // the response side: context, cancel token, response channel, statistics
mod response_channel; // ordered delivery, one final response
pub mod signature; // the tensors that a model declares
pub mod sink; // where responses go
pub mod strings; // the byte form of string tensors
pub mod tensor; // name, type, shape, bytes
#[cfg(test)]
pub mod testing; // requests for tests

pub use cancel::{CancelObserver, CancelToken};
pub use context::RequestContext;
pub use dtype::DType;
pub use implicit_state::ImplicitState;
pub use responder::Responder;
pub use signature::{Role, Signature, TensorSpec};
pub use sink::{ResponseSink, SharedSink, SingleResponse, Sink};
pub use tensor::{InputTensor, OutputTensor, RequestedOutput, Shape, ShapeText};

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
    /// In the order of the model configuration; optional inputs may be missing.
    pub inputs: SmallVec<[InputTensor; 2]>,
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
    pub responder: Arc<Responder>,
}

impl InferRequest {
    pub fn context(&self) -> &RequestContext {
        &self.responder.context
    }

    pub fn cancel_token(&self) -> &CancelToken {
        &self.responder.cancel_token
    }
}

/// One answer. Outputs are in the order in which the caller asked for them.
#[derive(Clone, Debug, Default)]
pub struct InferResponse {
    pub outputs: SmallVec<[OutputTensor; 2]>,
    pub parameters: Vec<(String, Parameter)>,
}
