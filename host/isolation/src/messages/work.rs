//! Messages over a work connection: batches to execute, and responses to their requests.

use super::FailureMessage;

/// Host to child, over an instance's work connection: a batch to execute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecuteBatch {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(message, repeated, tag = "2")]
    pub requests: Vec<RequestMessage>,
    /// Regions that later messages use. Carries the file of each that is a part of one, in this
    /// order.
    #[prost(message, repeated, tag = "3")]
    pub regions: Vec<RegionMessage>,
    /// Numbers of regions that no later message uses.
    #[prost(uint64, repeated, tag = "4")]
    pub dropped_regions: Vec<u64>,
}

/// A region of client shared memory.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RegionMessage {
    /// Never reused.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub key: String,
    /// Offset of the region in the file.
    #[prost(uint64, tag = "4")]
    pub offset: u64,
    #[prost(uint64, tag = "5")]
    pub bytes: u64,
    /// CUDA IPC handle of a region in memory of the instance's GPU; empty for a part of a file.
    #[prost(bytes = "vec", tag = "6")]
    pub cuda_handle: Vec<u8>,
}

/// One request.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RequestMessage {
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
    pub inputs: Vec<InputMessage>,
    /// Pairs of position in `ModelFacts::outputs` and number of classes.
    #[prost(uint32, repeated, tag = "12")]
    pub requested_outputs: Vec<u32>,
    #[prost(message, repeated, tag = "13")]
    pub params: Vec<ParamMessage>,
    /// Absent unless the request is of a stream.
    #[prost(message, optional, tag = "14")]
    pub stream: Option<RequestStream>,
    /// Outputs that are written to memory of the client, and where.
    #[prost(message, repeated, tag = "15")]
    pub destinations: Vec<DestinationMessage>,
    /// 0 = none.
    #[prost(uint64, tag = "16")]
    pub timeout_us: u64,
    /// Absent unless the request is traced.
    #[prost(message, optional, tag = "17")]
    pub trace: Option<TraceMessage>,
}

/// The W3C context of the model's span.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TraceMessage {
    #[prost(string, tag = "1")]
    pub parent: String,
    #[prost(string, tag = "2")]
    pub state: String,
}

/// A point in time that a backend has added to a trace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ActivityMessage {
    #[prost(string, tag = "1")]
    pub name: String,
    /// CLOCK_MONOTONIC
    #[prost(uint64, tag = "2")]
    pub at_ns: u64,
}

/// The memory for an output.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DestinationMessage {
    /// Position in `RequestMessage::requested_outputs`, in pairs.
    #[prost(uint32, tag = "1")]
    pub output: u32,
    /// Number of a region that was sent, and offset in it.
    #[prost(uint64, tag = "2")]
    pub region: u64,
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    #[prost(uint64, tag = "4")]
    pub bytes: u64,
}

/// `request::context::RequestStream`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RequestStream {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// Limit of the bytes that the client has not read.
    #[prost(uint64, tag = "2")]
    pub limit: u64,
    #[prost(bool, tag = "3")]
    pub waits: bool,
    #[prost(uint64, tag = "4")]
    pub timeout_ms: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct InputMessage {
    /// Position in `ModelFacts::inputs`.
    #[prost(uint32, tag = "1")]
    pub index: u32,
    /// As the model sees it, batch dimension first.
    #[prost(int64, repeated, tag = "2")]
    pub shape: Vec<i64>,
    /// In the host's arena, with a reference that the child releases when the backend has released
    /// the request. An empty tensor at offset 0 has no reference.
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    #[prost(uint64, tag = "4")]
    pub bytes: u64,
    #[prost(uint32, tag = "5")]
    pub slot: u32,
    /// Number of the region that `offset` is in; 0 = the arena.
    #[prost(uint64, tag = "6")]
    pub region: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ParamMessage {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(oneof = "param::ParamValue", tags = "2, 3, 4, 5")]
    pub value: Option<param::ParamValue>,
}

pub mod param {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum ParamValue {
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

/// Child to host, over an instance's work connection: one response to a request, in the order in
/// which the backend sent them.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResponseMessage {
    #[prost(uint64, tag = "1")]
    pub key: u64,
    /// No further response follows. Implied by a failure.
    #[prost(bool, tag = "2")]
    pub last: bool,
    /// Absent with `last`: the stream ends without data.
    #[prost(message, optional, tag = "3")]
    pub data: Option<ResponseData>,
    #[prost(message, optional, tag = "4")]
    pub failure: Option<FailureMessage>,
    /// Start, compute, output and end of the batch as far as the backend has written them, else 0.
    #[prost(uint64, repeated, tag = "5")]
    pub times: Vec<u64>,
    /// How long the execution has taken so far.
    #[prost(uint64, tag = "6")]
    pub execution_ns: u64,
    /// If the backend executes the batch in parts: the one that the request is in.
    #[prost(message, optional, tag = "7")]
    pub part: Option<BatchPart>,
    /// What the backend has added to the trace of the request since its last response.
    #[prost(message, repeated, tag = "8")]
    pub activities: Vec<ActivityMessage>,
}

/// A part of a batch, which the statistics count as an execution.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchPart {
    /// Position of its first request in the batch.
    #[prost(uint32, tag = "1")]
    pub first: u32,
    #[prost(uint32, tag = "2")]
    pub rows: u32,
    /// CLOCK_MONOTONIC
    #[prost(uint64, tag = "3")]
    pub start_ns: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ResponseData {
    /// The requested outputs that were produced, in the requested order.
    #[prost(message, repeated, tag = "1")]
    pub outputs: Vec<OutputMessage>,
    #[prost(message, repeated, tag = "2")]
    pub params: Vec<ParamMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct OutputMessage {
    /// Position in `ModelFacts::outputs`.
    #[prost(uint32, tag = "1")]
    pub index: u32,
    #[prost(uint32, tag = "2")]
    pub dtype: u32,
    /// As the model produced it, batch dimension first.
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
    /// In the arena of the child, with a reference that the host releases; also for an empty
    /// tensor.
    #[prost(uint64, tag = "4")]
    pub offset: u64,
    #[prost(uint64, tag = "5")]
    pub bytes: u64,
    #[prost(uint32, tag = "6")]
    pub slot: u32,
    /// It is at the start of its destination instead.
    #[prost(bool, tag = "7")]
    pub in_destination: bool,
}
