//! The protocol-neutral inference request and response: built by the frontends, executed through the schedulers.
//!
//! This module knows no protocol, no model repository and no async runtime.

pub mod batch_input; // tensors that describe the requests of a batch
pub mod buffer; // aligned, zero-copy tensor memory
pub mod cancel; // flag that backends poll, and observer to notify
pub mod check; // validates requests against the signature
pub mod class_labels; // labels of an output's classes
pub mod classes; // classification results
pub mod completion; // which threads may send a response themselves
pub mod context; // what is known when a request is built
pub mod dtype; // tensor data types
pub mod implicit_state; // states kept between the requests of a sequence
pub mod memory; // placed memory: locations, owners, output destinations
pub mod pages; // anonymous memory mappings
pub mod pool; // pool of large blocks
pub mod responder; // context, cancel token and response channel of a request
pub mod response; // responses and parameters
mod response_channel; // ordered delivery, one final response
pub mod response_times; // times of the responses of a decoupled model
pub mod sequence; // sequence of a request
pub mod shared_region; // placed memory that other processes open
pub mod signature; // declared tensors of a model
pub mod sink; // trait of response consumers
pub mod state_spec; // declared states and their values
pub mod strings; // serialized string tensors
pub mod tensor; // inputs, outputs, shapes
pub mod tensor_data; // bytes of a tensor, on the heap or in placed memory
#[cfg(any(test, feature = "fuzzing"))]
pub mod testing; // requests and sinks for unit tests
pub mod unread;
pub mod used_memory; // placed memory of a request, asked for faults // limits of responses that a client has not read

pub use batch_input::{BatchInput, BatchInputKind};
pub use cancel::{CancelObserver, CancelToken};
pub use context::RequestContext;
pub use dtype::DType;
pub use implicit_state::ImplicitState;
pub use responder::Responder;
pub use response::{InferResponse, Parameter};
pub use sequence::{CorrelationId, Sequence};
pub use signature::{Role, Signature, TensorSpec};
pub use sink::{DiscardResponses, ResponseSink, SharedSink, SingleResponse, Sink};
pub use tensor::{InputTensor, OutputTensor, RequestedOutput, Shape, ShapeText};
pub use tensor_data::TensorData;
pub use unread::{StreamLimit, Unread};
pub use used_memory::UsedMemory;

use smallvec::SmallVec;
use std::sync::Arc;

/// One inference request, checked against the model's signature.
pub struct InferRequest {
    /// The client's request id as text; empty = none. Echoed by the frontends, passed to backends, logged.
    pub id: String,
    /// In configuration order; optional inputs may be missing.
    pub inputs: SmallVec<[InputTensor; 2]>,
    pub sequence: Sequence,
    /// 0 = the model's default, 1 = the highest.
    pub priority: u64,
    /// Queue timeout in microseconds requested by the client; 0 = the model's default.
    pub timeout_us: u64,
    /// Parameters for the model.
    pub parameters: Vec<(String, Parameter)>,
    /// When the client stops waiting; 0 = never. Nanoseconds of [`crate::clock::now_ns`].
    pub deadline_ns: u64,
    /// The client accepts several responses.
    pub streaming: bool,
    /// A warm-up request, whose response is discarded.
    pub warmup: bool,
    pub responder: Arc<Responder>,
}

impl InferRequest {
    /// A request without id, sequence, parameters, timeout or deadline, for one response.
    pub fn new(responder: Arc<Responder>, inputs: SmallVec<[InputTensor; 2]>) -> Self {
        Self {
            id: String::new(),
            inputs,
            sequence: Sequence::default(),
            priority: 0,
            timeout_us: 0,
            parameters: Vec::new(),
            deadline_ns: 0,
            streaming: false,
            warmup: false,
            responder,
        }
    }

    pub fn context(&self) -> &RequestContext {
        &self.responder.context
    }

    pub fn cancel_token(&self) -> &CancelToken {
        &self.responder.cancel_token
    }
}
