//! The isolation protocol: messages between the host and the child process of an isolated model.
//!
//! There are two kinds of connection, both streams of length-prefixed messages (`wire.rs`). Over
//! the **control** connection, one per child, the host sends [`ControlRequest`] and the child
//! [`ControlMessage`]; each request with a number gets one [`ControlResponse`] of the same number,
//! in any order. Over the **work** connection, one per instance, the host sends [`ExecuteBatch`]
//! and the child [`ResponseMessage`]. Tensors are in two arenas (`trtserver_base::arena`), one
//! owned by the host (inputs) and one by the child (outputs), or in client shared memory, which
//! both map; messages carry offsets.
//!
//! Both ends are the same executable, so messages need no versions.

mod control;
mod nested;
mod work;

pub use control::{
    AdaptedMessage, BackendInfo, BatchSize, CancelMessage, ControlMessage, ControlRequest,
    ControlResponse, DeviceFacts, DirEntry, EmptyMessage, Handshake, InstanceFacts, LogRecord,
    MemoryReport, MetricMessage, MetricValue, ModelFacts, PatchMessage, ProbeFacts,
    SecondaryDevice, TensorSpec, control_message, control_request,
};
pub use nested::{
    LoadModel, ModelFile, ModelQuery, ModelStatusMessage, NamedTensor, NestedCall, NestedData,
    NestedInfer, NestedReply, UnloadModel, nested_call,
};
pub use work::{
    ActivityMessage, BatchPart, DestinationMessage, ExecuteBatch, InputMessage, OutputMessage,
    ParamMessage, RegionMessage, RequestMessage, RequestStream, ResponseData, ResponseMessage,
    TraceMessage, param,
};

/// An error of the host or of the backend.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FailureMessage {
    /// Number of `trtserver_plugin_api::abi::types::code`.
    #[prost(uint32, tag = "1")]
    pub code: u32,
    #[prost(string, tag = "2")]
    pub text: String,
    /// The instance cannot execute any more.
    #[prost(bool, tag = "3")]
    pub model_broken: bool,
}
