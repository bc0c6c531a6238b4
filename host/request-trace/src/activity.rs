//! Points in the life of a request, by the names of Triton's trace files.

use std::borrow::Cow;

/// A point in time of a traced request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    HttpRecvStart,
    HttpRecvEnd,
    HttpSendStart,
    HttpSendEnd,
    GrpcWaitReadStart,
    GrpcWaitReadEnd,
    GrpcSendStart,
    GrpcSendEnd,
    /// The request was read and checked, and goes to its model.
    RequestStart,
    QueueStart,
    ComputeStart,
    ComputeInputEnd,
    ComputeOutputStart,
    ComputeEnd,
    /// A response reached the frontend: once for each response of a decoupled model.
    InferResponseComplete,
    /// The request has its final response or its error.
    RequestEnd,
    /// Reported by a backend under this name.
    Custom(Box<str>),
}

impl Activity {
    /// The name in trace files and of span events.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Activity::Custom(name) => Cow::Borrowed(name),
            known => Cow::Borrowed(known.known_name().unwrap_or_default()),
        }
    }

    /// The same of an activity of the server itself; `None` for one of a backend.
    pub fn known_name(&self) -> Option<&'static str> {
        Some(match self {
            Activity::HttpRecvStart => "HTTP_RECV_START",
            Activity::HttpRecvEnd => "HTTP_RECV_END",
            Activity::HttpSendStart => "HTTP_SEND_START",
            Activity::HttpSendEnd => "HTTP_SEND_END",
            Activity::GrpcWaitReadStart => "GRPC_WAITREAD_START",
            Activity::GrpcWaitReadEnd => "GRPC_WAITREAD_END",
            Activity::GrpcSendStart => "GRPC_SEND_START",
            Activity::GrpcSendEnd => "GRPC_SEND_END",
            Activity::RequestStart => "REQUEST_START",
            Activity::QueueStart => "QUEUE_START",
            Activity::ComputeStart => "COMPUTE_START",
            Activity::ComputeInputEnd => "COMPUTE_INPUT_END",
            Activity::ComputeOutputStart => "COMPUTE_OUTPUT_START",
            Activity::ComputeEnd => "COMPUTE_END",
            Activity::InferResponseComplete => "INFER_RESPONSE_COMPLETE",
            Activity::RequestEnd => "REQUEST_END",
            Activity::Custom(_) => return None,
        })
    }
}

/// When a tensor was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorActivity {
    QueueInput,
    BackendInput,
    BackendOutput,
}

impl TensorActivity {
    /// The name in trace files.
    pub fn name(self) -> &'static str {
        match self {
            TensorActivity::QueueInput => "TENSOR_QUEUE_INPUT",
            TensorActivity::BackendInput => "TENSOR_BACKEND_INPUT",
            TensorActivity::BackendOutput => "TENSOR_BACKEND_OUTPUT",
        }
    }
}
