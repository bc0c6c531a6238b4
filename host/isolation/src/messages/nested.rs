//! Messages over the connection for nested inference: what the backend of a child asks of the
//! models of the server.

use super::{FailureMessage, ParamMessage};
use bytes::Bytes;

/// Child to host.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NestedCall {
    /// Chosen by the child, repeated in each [`NestedReply`]; never reused.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(oneof = "nested_call::CallKind", tags = "2, 3, 4, 5, 6, 7")]
    pub kind: Option<nested_call::CallKind>,
}

pub mod nested_call {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum CallKind {
        /// Any number of replies, until one is the last.
        #[prost(message, tag = "2")]
        Infer(super::NestedInfer),
        /// Cancels the request of this number; no reply.
        #[prost(message, tag = "3")]
        Cancel(super::super::EmptyMessage),
        /// One reply, as for the following.
        #[prost(message, tag = "4")]
        Status(super::ModelQuery),
        #[prost(message, tag = "5")]
        Load(super::LoadModel),
        #[prost(message, tag = "6")]
        Unload(super::UnloadModel),
        /// The handler of this number has received a counted response; no reply.
        #[prost(message, tag = "7")]
        Received(super::super::EmptyMessage),
    }
}

/// `plugin::nested::NestedRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NestedInfer {
    #[prost(string, tag = "1")]
    pub model: String,
    #[prost(int64, optional, tag = "2")]
    pub version: Option<i64>,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(uint64, tag = "4")]
    pub sequence: u64,
    #[prost(string, tag = "5")]
    pub sequence_text: String,
    #[prost(bool, tag = "6")]
    pub sequence_start: bool,
    #[prost(bool, tag = "7")]
    pub sequence_end: bool,
    #[prost(uint64, tag = "8")]
    pub priority: u64,
    #[prost(uint64, tag = "9")]
    pub timeout_us: u64,
    #[prost(uint64, tag = "10")]
    pub deadline_ns: u64,
    #[prost(message, repeated, tag = "11")]
    pub params: Vec<ParamMessage>,
    #[prost(message, repeated, tag = "12")]
    pub inputs: Vec<NamedTensor>,
    #[prost(string, repeated, tag = "13")]
    pub outputs: Vec<String>,
}

/// A tensor with its data.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NamedTensor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(uint32, tag = "2")]
    pub dtype: u32,
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
    #[prost(bytes = "bytes", tag = "4")]
    pub data: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelQuery {
    #[prost(string, tag = "1")]
    pub model: String,
    #[prost(int64, optional, tag = "2")]
    pub version: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct LoadModel {
    #[prost(string, tag = "1")]
    pub model: String,
    #[prost(string, optional, tag = "2")]
    pub config: Option<String>,
    #[prost(message, repeated, tag = "3")]
    pub files: Vec<ModelFile>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelFile {
    /// As in the load request of v2: `file:VERSION/PATH`.
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub content: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct UnloadModel {
    #[prost(string, tag = "1")]
    pub model: String,
    #[prost(bool, tag = "2")]
    pub dependents: bool,
}

/// Host to child.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NestedReply {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(message, optional, tag = "2")]
    pub failure: Option<FailureMessage>,
    /// No further reply follows. Implied by a failure.
    #[prost(bool, tag = "3")]
    pub last: bool,
    /// Tensors and parameters of a response. Absent with `last` if a decoupled model has ended
    /// without data.
    #[prost(message, optional, tag = "4")]
    pub data: Option<NestedData>,
    #[prost(message, optional, tag = "5")]
    pub status: Option<ModelStatusMessage>,
    /// Version that executed the request, for a response; below 0 if no version did.
    #[prost(int64, tag = "6")]
    pub version: i64,
    /// It counts as unread until the child has sent [`nested_call::CallKind::Received`].
    #[prost(bool, tag = "7")]
    pub counted: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct NestedData {
    #[prost(message, repeated, tag = "1")]
    pub outputs: Vec<NamedTensor>,
    #[prost(message, repeated, tag = "2")]
    pub params: Vec<ParamMessage>,
}

/// `plugin::nested::ModelStatus`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelStatusMessage {
    #[prost(int64, optional, tag = "1")]
    pub version: Option<i64>,
    #[prost(bool, tag = "2")]
    pub ready: bool,
    #[prost(bool, tag = "3")]
    pub decoupled: bool,
}
