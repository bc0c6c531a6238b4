//! What a host and the process of an isolated backend say to each other.
//!
//! Two kinds of connection, both streams of length-prefixed messages (`wire.rs`). Over the **control**
//! connection, one per process, the host asks ([`Ask`]) and the process tells ([`Tell`]); each `Ask` with a
//! number is answered by one [`Done`] with the same number, in any order. Over the **work** connection, one per
//! instance, go [`Batch`] one way and [`Answer`] the other. Tensors are not in the messages: they lie in two arenas
//! (`crate::arena`), one that the host owns (inputs) and one that the process owns (outputs).
//!
//! Both ends are the same program file, so messages need no versions.

/// Host to process, over the control connection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ask {
    /// Number that the answer carries; 0 = none is wanted.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(oneof = "ask::What", tags = "2, 3, 4, 5, 6, 7, 8, 9")]
    pub what: Option<ask::What>,
}

pub mod ask {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum What {
        /// First of all.
        #[prost(message, tag = "2")]
        Hello(super::Hello),
        /// Facts of the library; answered with `Done::about`. The backend is not opened for it.
        #[prost(message, tag = "3")]
        Describe(super::Empty),
        /// `model_complete`; answered with `Done::patch`.
        #[prost(message, tag = "4")]
        Complete(super::ModelFacts),
        /// Opens backend and model. With two files: the arena of the host and the arena of the process.
        #[prost(message, tag = "5")]
        OpenModel(super::ModelFacts),
        /// Starts an instance's thread and opens the instance there. With one file: its work connection.
        #[prost(message, tag = "6")]
        OpenInstance(super::InstanceFacts),
        /// No further work comes: close the instances, the model, the backend, answer, and end.
        #[prost(message, tag = "7")]
        Close(super::Empty),
        /// The level up to which log records are wanted, as in `trtserver_plugin_api::abi::types::level`.
        #[prost(uint32, tag = "8")]
        LogLevel(u32),
        /// Nobody waits for a call's answer any more.
        #[prost(message, tag = "9")]
        Cancel(super::Cancel),
    }
}

/// Process to host, over the control connection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Tell {
    #[prost(oneof = "tell::What", tags = "1, 2, 3, 4")]
    pub what: Option<tell::What>,
}

pub mod tell {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum What {
        #[prost(message, tag = "1")]
        Done(super::Done),
        #[prost(message, tag = "2")]
        Log(super::LogRecord),
        /// A metric was made.
        #[prost(message, tag = "3")]
        Metric(super::Metric),
        /// A metric's value is this now.
        #[prost(message, tag = "4")]
        Value(super::MetricValue),
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Hello {
    /// The backend's file.
    #[prost(string, tag = "1")]
    pub file: String,
    /// Settings for `backend_open` and the models.
    #[prost(btree_map = "string, string", tag = "2")]
    pub settings: std::collections::BTreeMap<String, String>,
    #[prost(uint32, tag = "3")]
    pub log_level: u32,
}

/// An error of `crate::error`, or of a plugin with its flags.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Failure {
    /// Number of `trtserver_plugin_api::abi::types::code`.
    #[prost(uint32, tag = "1")]
    pub code: u32,
    #[prost(string, tag = "2")]
    pub text: String,
}

/// The answer to an [`Ask`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Done {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(message, optional, tag = "2")]
    pub failure: Option<Failure>,
    #[prost(message, optional, tag = "3")]
    pub about: Option<About>,
    #[prost(message, optional, tag = "4")]
    pub patch: Option<Patch>,
}

/// `plugin::backend::Facts`, field by field.
#[derive(Clone, PartialEq, prost::Message)]
pub struct About {
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
    /// The interface that the file was built for.
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

/// What `plugin::ModelFacts` says.
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
    /// Inputs as the model sees them (reshaped), then those that the host adds; their numbers are the positions here.
    #[prost(message, repeated, tag = "9")]
    pub inputs: Vec<TensorSpec>,
    /// Outputs as the model makes them; behind the declared ones the states that are no outputs.
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
    /// What the model sees; the caller's dims of a reshaped tensor follow in `caller_dims` for the descriptor, where
    /// none mean that there is no reshape.
    #[prost(int64, repeated, tag = "3")]
    pub dims: Vec<i64>,
    /// Bits of `tensor_flags`.
    #[prost(uint32, tag = "4")]
    pub flags: u32,
    #[prost(int64, repeated, tag = "5")]
    pub caller_dims: Vec<i64>,
}

/// What `plugin::InstanceFacts` says, and what the thread needs.
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
    /// With the fields behind it.
    #[prost(string, tag = "2")]
    pub text: String,
    /// Where it was said, in the plugin if it told.
    #[prost(string, tag = "3")]
    pub file: String,
    #[prost(uint64, tag = "4")]
    pub line: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Metric {
    /// Names the metric in [`MetricValue`].
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
    /// [`Call::key`].
    #[prost(uint64, tag = "2")]
    pub key: u64,
}

/// Host to process, over an instance's work connection: the unit of work.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Batch {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(message, repeated, tag = "2")]
    pub calls: Vec<Call>,
}

/// One request.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Call {
    /// Names the call until its last answer; never used twice on one connection.
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
    /// Position in [`ModelFacts::outputs`], classes, position, classes…
    #[prost(uint32, repeated, tag = "12")]
    pub wanted: Vec<u32>,
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
    /// A loan in the host's arena: the process counts it off when the plugin has released the request. An empty
    /// tensor at 0 is no loan.
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

/// Process to host, over an instance's work connection: a response, or the end, of one call. In the order in which
/// the plugin sent them.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Answer {
    #[prost(uint64, tag = "1")]
    pub key: u64,
    /// The call is over: no further answer follows. Set with every failure.
    #[prost(bool, tag = "2")]
    pub last: bool,
    /// Absent with `last`: the end of a stream.
    #[prost(message, optional, tag = "3")]
    pub response: Option<Response>,
    #[prost(message, optional, tag = "4")]
    pub failure: Option<Failure>,
    /// The batch's four times so far, zero where the plugin wrote none: start, compute, output, end.
    #[prost(uint64, repeated, tag = "5")]
    pub times: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    /// Those of the wanted ones that were made, in that order.
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
    /// As the model made it, batch dimension first.
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
    /// A loan in the arena of the process, which the host counts off; of an empty tensor, too.
    #[prost(uint64, tag = "4")]
    pub offset: u64,
    #[prost(uint64, tag = "5")]
    pub bytes: u64,
    #[prost(uint32, tag = "6")]
    pub slot: u32,
}
