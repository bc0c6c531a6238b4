//! The isolation protocol: messages between the host and the child process of an isolated model.
//!
//! There are two kinds of connection, both streams of length-prefixed messages (`wire.rs`). Over the **control**
//! connection, one per child, the host sends [`ControlRequest`] and the child [`ControlMessage`]; each request with a
//! number gets one [`ControlResponse`] of the same number, in any order. Over the **work** connection, one per
//! instance, the host sends [`ExecuteBatch`] and the child [`Response`]. Tensors are in two arenas (`crate::arena`),
//! one owned by the host (inputs) and one by the child (outputs); messages carry offsets.
//!
//! Both ends are the same executable, so messages need no versions.

/// Host to child, over the control connection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ControlRequest {
    /// Repeated in the response; 0 = no response is sent.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(oneof = "control_request::Kind", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10")]
    pub kind: Option<control_request::Kind>,
}

pub mod control_request {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Kind {
        /// The first message.
        #[prost(message, tag = "2")]
        Handshake(super::Handshake),
        /// The response has the [`BackendInfo`]. The backend is not opened for it.
        #[prost(message, tag = "3")]
        Describe(super::Empty),
        /// Calls `model_complete`; the response has the patch.
        #[prost(message, tag = "4")]
        Complete(super::ModelFacts),
        /// Opens backend and model. Carries two files: the arena of the host and the arena of the child.
        #[prost(message, tag = "5")]
        OpenModel(super::ModelFacts),
        /// Starts an instance's thread and opens the instance there. Carries one file: its work connection.
        #[prost(message, tag = "6")]
        OpenInstance(super::InstanceFacts),
        /// Drain and close the instances, close the model and the backend, respond, and exit.
        #[prost(message, tag = "7")]
        Close(super::Empty),
        /// The least severe level that is logged, as in `trtserver_plugin_api::abi::types::level`.
        #[prost(uint32, tag = "8")]
        LogLevel(u32),
        /// A request was cancelled.
        #[prost(message, tag = "9")]
        Cancel(super::Cancel),
        /// Opens the backend.
        #[prost(message, tag = "10")]
        OpenBackend(super::Empty),
    }
}

/// Child to host, over the control connection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ControlMessage {
    #[prost(oneof = "control_message::Kind", tags = "1, 2, 3, 4")]
    pub kind: Option<control_message::Kind>,
}

pub mod control_message {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Kind {
        #[prost(message, tag = "1")]
        Response(super::ControlResponse),
        #[prost(message, tag = "2")]
        Log(super::LogRecord),
        /// A metric was created.
        #[prost(message, tag = "3")]
        Metric(super::Metric),
        /// The current value of a metric.
        #[prost(message, tag = "4")]
        Value(super::MetricValue),
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Handshake {
    /// The plugin file.
    #[prost(string, tag = "1")]
    pub file: String,
    /// Settings for `backend_open` and the models.
    #[prost(btree_map = "string, string", tag = "2")]
    pub settings: std::collections::BTreeMap<String, String>,
    #[prost(uint32, tag = "3")]
    pub log_level: u32,
}

/// An error of the host or of the backend.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Failure {
    /// Number of `trtserver_plugin_api::abi::types::code`.
    #[prost(uint32, tag = "1")]
    pub code: u32,
    #[prost(string, tag = "2")]
    pub text: String,
}

/// The response to a [`ControlRequest`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ControlResponse {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(message, optional, tag = "2")]
    pub failure: Option<Failure>,
    #[prost(message, optional, tag = "3")]
    pub backend: Option<BackendInfo>,
    #[prost(message, optional, tag = "4")]
    pub patch: Option<Patch>,
}

/// `plugin::backend_facts::BackendFacts`, field by field.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BackendInfo {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    /// Platform, default file, platform, default file…
    #[prost(string, repeated, tag = "3")]
    pub platforms: Vec<String>,
    #[prost(uint32, tag = "4")]
    pub flags: u32,
    #[prost(uint64, tag = "5")]
    pub max_in_flight: u64,
    #[prost(uint64, tag = "6")]
    pub align: u64,
    #[prost(uint64, tag = "7")]
    pub stack_bytes: u64,
    /// Kind, count, kind, count…
    #[prost(uint32, repeated, tag = "8")]
    pub preferred: Vec<u32>,
    /// The interface version that the file was built for.
    #[prost(uint32, tag = "9")]
    pub abi_major: u32,
    #[prost(uint32, tag = "10")]
    pub abi_minor: u32,
    #[prost(string, tag = "11")]
    pub runtime: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Patch {
    #[prost(uint32, tag = "1")]
    pub format: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub data: Vec<u8>,
}

/// `plugin::ModelFacts`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelFacts {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
    #[prost(string, tag = "3")]
    pub dir: String,
    #[prost(string, tag = "4")]
    pub version_dir: String,
    #[prost(string, tag = "5")]
    pub file: String,
    /// The effective configuration, serialized.
    #[prost(bytes = "vec", tag = "6")]
    pub config: Vec<u8>,
    #[prost(uint32, tag = "7")]
    pub n_instances: u32,
    #[prost(uint32, tag = "8")]
    pub threads: u32,
    /// Inputs as the model sees them (reshaped), then those that the host adds. Requests refer to positions here.
    #[prost(message, repeated, tag = "9")]
    pub inputs: Vec<TensorSpec>,
    /// Outputs as the model produces them: the declared ones, then states that are not declared as outputs.
    #[prost(message, repeated, tag = "10")]
    pub outputs: Vec<TensorSpec>,
    #[prost(uint32, tag = "11")]
    pub n_declared_inputs: u32,
    #[prost(uint32, tag = "12")]
    pub n_declared_outputs: u32,
}

/// A tensor of `request::Signature`, without a batch dimension.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorSpec {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(uint32, tag = "2")]
    pub dtype: u32,
    /// As the model sees them. `caller_dims` has the dims before a reshape and is empty without one.
    #[prost(int64, repeated, tag = "3")]
    pub dims: Vec<i64>,
    /// Bits of `tensor_flags`.
    #[prost(uint32, tag = "4")]
    pub flags: u32,
    #[prost(int64, repeated, tag = "5")]
    pub caller_dims: Vec<i64>,
}

/// `plugin::InstanceFacts`, and what the thread needs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InstanceFacts {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(uint32, tag = "2")]
    pub kind: u32,
    #[prost(uint32, tag = "3")]
    pub ordinal: u32,
    #[prost(int32, tag = "4")]
    pub device: i32,
    #[prost(uint32, tag = "5")]
    pub threads: u32,
    #[prost(uint32, tag = "6")]
    pub max_rows: u32,
    #[prost(string, repeated, tag = "7")]
    pub profiles: Vec<String>,
    /// Nice value of the instance's thread in the host.
    #[prost(int32, tag = "8")]
    pub nice: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct LogRecord {
    /// As in `trtserver_plugin_api::abi::types::level`.
    #[prost(uint32, tag = "1")]
    pub level: u32,
    /// The message and its fields.
    #[prost(string, tag = "2")]
    pub text: String,
    /// Source location, of the plugin if it gave one.
    #[prost(string, tag = "3")]
    pub file: String,
    #[prost(uint64, tag = "4")]
    pub line: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Metric {
    /// Identifies the metric in [`MetricValue`].
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(uint32, tag = "2")]
    pub kind: u32,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub help: String,
    /// Key, value, key, value…
    #[prost(string, repeated, tag = "5")]
    pub labels: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricValue {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(double, tag = "2")]
    pub value: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Cancel {
    #[prost(uint32, tag = "1")]
    pub ordinal: u32,
    /// [`Request::key`].
    #[prost(uint64, tag = "2")]
    pub key: u64,
}

/// Host to child, over an instance's work connection: a batch to execute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecuteBatch {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(message, repeated, tag = "2")]
    pub requests: Vec<Request>,
}

/// One request.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    /// Identifies the request until its final response; never reused on a connection.
    #[prost(uint64, tag = "1")]
    pub key: u64,
    #[prost(string, tag = "2")]
    pub id: String,
    #[prost(uint64, tag = "3")]
    pub sequence: u64,
    #[prost(string, tag = "4")]
    pub sequence_text: String,
    /// Bits of `request_flags`.
    #[prost(uint32, tag = "5")]
    pub flags: u32,
    #[prost(uint32, tag = "6")]
    pub batch: u32,
    #[prost(uint64, tag = "7")]
    pub priority: u64,
    #[prost(uint64, tag = "8")]
    pub received_ns: u64,
    #[prost(uint64, tag = "9")]
    pub queued_ns: u64,
    #[prost(uint64, tag = "10")]
    pub deadline_ns: u64,
    #[prost(message, repeated, tag = "11")]
    pub inputs: Vec<Input>,
    /// Pairs of position in [`ModelFacts::outputs`] and number of classes.
    #[prost(uint32, repeated, tag = "12")]
    pub requested_outputs: Vec<u32>,
    #[prost(message, repeated, tag = "13")]
    pub params: Vec<Param>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Input {
    /// Position in [`ModelFacts::inputs`].
    #[prost(uint32, tag = "1")]
    pub index: u32,
    /// As the model sees it, batch dimension first.
    #[prost(int64, repeated, tag = "2")]
    pub shape: Vec<i64>,
    /// In the host's arena, with a reference that the child releases when the backend has released the request. An empty
    /// tensor at offset 0 has no reference.
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    #[prost(uint64, tag = "4")]
    pub bytes: u64,
    #[prost(uint32, tag = "5")]
    pub slot: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Param {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(oneof = "param::Value", tags = "2, 3, 4, 5")]
    pub value: Option<param::Value>,
}

pub mod param {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        #[prost(string, tag = "2")]
        String(String),
        #[prost(int64, tag = "3")]
        Int(i64),
        #[prost(bool, tag = "4")]
        Bool(bool),
        #[prost(double, tag = "5")]
        Double(f64),
    }
}

/// Child to host, over an instance's work connection: one response to a request, in the order in which the backend
/// sent them.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    #[prost(uint64, tag = "1")]
    pub key: u64,
    /// No further response follows. Implied by a failure.
    #[prost(bool, tag = "2")]
    pub last: bool,
    /// Absent with `last`: the stream ends without data.
    #[prost(message, optional, tag = "3")]
    pub data: Option<ResponseData>,
    #[prost(message, optional, tag = "4")]
    pub failure: Option<Failure>,
    /// Start, compute, output and end of the batch as far as the backend has written them, else 0.
    #[prost(uint64, repeated, tag = "5")]
    pub times: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ResponseData {
    /// The requested outputs that were produced, in the requested order.
    #[prost(message, repeated, tag = "1")]
    pub outputs: Vec<Output>,
    #[prost(message, repeated, tag = "2")]
    pub params: Vec<Param>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Output {
    /// Position in [`ModelFacts::outputs`].
    #[prost(uint32, tag = "1")]
    pub index: u32,
    #[prost(uint32, tag = "2")]
    pub dtype: u32,
    /// As the model produced it, batch dimension first.
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
    /// In the arena of the child, with a reference that the host releases; also for an empty tensor.
    #[prost(uint64, tag = "4")]
    pub offset: u64,
    #[prost(uint64, tag = "5")]
    pub bytes: u64,
    #[prost(uint32, tag = "6")]
    pub slot: u32,
}
