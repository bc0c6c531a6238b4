//! The protocol-neutral inference request and response: built by the frontends, executed through
//! the schedulers.
//!
//! An [`InferRequest`] holds tensors that are slices of received bytes, parts of a client's shared
//! memory or memory of a GPU ([`memory`]). Its [`Responder`] carries context, cancel token and
//! response channel in one allocation, and makes sure that exactly one response is final. [`check`]
//! compares a request with the model's signature. [`shared_memory`] maps regions of clients and
//! guards them against a file that becomes shorter.
//!
//! This crate knows no protocol, no model directory, no scheduler and no async runtime.

pub mod batch_input;
pub mod buffer;
pub mod cancel;
pub mod check;
pub mod class_labels;
pub mod classes;
pub mod completion;
pub mod context;
pub mod dtype;
pub mod implicit_state;
pub mod memory;
pub mod observed;
pub mod pages;
pub mod pool;
pub mod request_tracing;
pub mod responder;
pub mod response;
mod response_channel;
pub mod response_times;
pub mod sequence;
pub mod shared_memory;
pub mod shared_region;
pub mod signature;
pub mod sink;
pub mod state_spec;
pub mod strings;
pub mod tensor;
pub mod tensor_data;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "not part of a server")]
pub mod testing;
pub mod thread_block;
pub mod unread;
pub mod used_memory;

pub use batch_input::{BatchInput, BatchInputKind};
pub use cancel::{CancelObserver, CancelToken};
pub use context::RequestContext;
pub use dtype::DType;
pub use implicit_state::ImplicitState;
pub use observed::ObservedInference;
pub use responder::Responder;
pub use response::{InferResponse, ParameterValue};
pub use sequence::{CorrelationId, RequestSequence};
pub use signature::{InputRole, ModelSignature, TensorSpec};
pub use sink::{DiscardResponses, ResponseSink, SharedSink, SingleResponse, Sink};
pub use tensor::{InputTensor, OutputTensor, RequestedOutput, Shape, ShapeText};
pub use tensor_data::TensorData;
pub use unread::{StreamLimit, UnreadResponse};
pub use used_memory::UsedMemory;

use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_base::fair_clients::ClientTurn;

/// One inference request, checked against the model's signature.
pub struct InferRequest {
    /// The client's request id as text; empty = none. Echoed by the frontends, passed to backends,
    /// logged.
    pub id: String,
    /// In configuration order; optional inputs may be missing.
    pub inputs: SmallVec<[InputTensor; 2]>,
    pub sequence: RequestSequence,
    /// 0 = the model's default, 1 = the highest.
    pub priority: u64,
    /// Queue timeout in microseconds requested by the client; 0 = the model's default.
    pub timeout_us: u64,
    /// Parameters for the model.
    pub parameters: Vec<(String, ParameterValue)>,
    /// When the client stops waiting; 0 = never. Nanoseconds of [`trtserver_base::clock::now_ns`].
    pub deadline_ns: u64,
    /// The client accepts several responses.
    pub streaming: bool,
    /// A warm-up request, whose response is discarded.
    pub warmup: bool,
    /// Whose it is, where clients are served in turn.
    pub client: Option<ClientTurn>,
    pub responder: Arc<Responder>,
}

impl InferRequest {
    /// A request without id, sequence, parameters, timeout or deadline, for one response.
    pub fn new(responder: Arc<Responder>, inputs: SmallVec<[InputTensor; 2]>) -> Self {
        Self {
            id: String::new(),
            inputs,
            sequence: RequestSequence::default(),
            priority: 0,
            timeout_us: 0,
            parameters: Vec::new(),
            deadline_ns: 0,
            streaming: false,
            warmup: false,
            client: None,
            responder,
        }
    }

    /// The beginning of most error texts of the schedulers.
    pub fn error_prefix(&self) -> check::IdPrefix<'_> {
        match self.context().wording {
            context::ErrorWording::V1 => check::IdPrefix::none(),
            context::ErrorWording::V2 => check::IdPrefix::new(&self.id),
        }
    }

    pub fn context(&self) -> &RequestContext {
        &self.responder.context
    }

    pub fn cancel_token(&self) -> &CancelToken {
        &self.responder.cancel_token
    }
}
