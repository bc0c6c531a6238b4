//! Messages over the control connection: what the host requests of a child, and its responses, log
//! records and metrics.

use super::FailureMessage;
use std::collections::BTreeMap;

/// Host to child, over the control connection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ControlRequest {
    /// Repeated in the response; 0 = no response is sent.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(oneof = "control_request::RequestKind", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12")]
    pub kind: Option<control_request::RequestKind>,
}

pub mod control_request {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum RequestKind {
        /// The first message.
        #[prost(message, tag = "2")]
        Handshake(super::Handshake),
        /// The response has the [`BackendInfo`]. The backend is not opened for it.
        #[prost(message, tag = "3")]
        Describe(super::EmptyMessage),
        /// Calls `model_complete`; the response has the patch.
        #[prost(message, tag = "4")]
        Complete(super::ModelFacts),
        /// Opens backend and model. Carries two files: the arena of the host and the arena of the
        /// child.
        #[prost(message, tag = "5")]
        OpenModel(super::ModelFacts),
        /// Starts an instance's thread and opens the instance there. Carries one file: its work
        /// connection.
        #[prost(message, tag = "6")]
        OpenInstance(super::InstanceFacts),
        /// Drain and close the instances, close the model and the backend, respond, and exit.
        #[prost(message, tag = "7")]
        Close(super::EmptyMessage),
        /// The least severe level that is logged, as in `trtserver_plugin_api::abi::types::level`.
        #[prost(uint32, tag = "8")]
        LogLevel(u32),
        /// A request was cancelled.
        #[prost(message, tag = "9")]
        Cancel(super::CancelMessage),
        /// Opens the backend.
        #[prost(message, tag = "10")]
        OpenBackend(super::EmptyMessage),
        /// Calls `model_probe`; the response has the entry. The backend is not opened for it.
        #[prost(message, tag = "11")]
        Probe(super::ProbeFacts),
        /// Sends the metrics that have changed, then the response.
        #[prost(message, tag = "12")]
        SendMetrics(super::EmptyMessage),
    }
}

/// Child to host, over the control connection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ControlMessage {
    #[prost(oneof = "control_message::MessageKind", tags = "1, 2, 3, 4, 5, 6")]
    pub kind: Option<control_message::MessageKind>,
}

pub mod control_message {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum MessageKind {
        #[prost(message, tag = "1")]
        Response(super::ControlResponse),
        #[prost(message, tag = "2")]
        Log(super::LogRecord),
        /// A metric was created.
        #[prost(message, tag = "3")]
        Metric(super::MetricMessage),
        /// The current value of a metric.
        #[prost(message, tag = "4")]
        Value(super::MetricValue),
        /// The backend reports memory that it holds.
        #[prost(message, tag = "5")]
        Memory(super::MemoryReport),
        /// The backend uses the models of the server. Sent once; carries one file: the connection
        /// for nested inference.
        #[prost(message, tag = "6")]
        NestedConnection(super::EmptyMessage),
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct EmptyMessage {}

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
    #[prost(message, required, tag = "4")]
    pub devices: DeviceFacts,
    /// The library of an adapted backend, whose adapter is `file`.
    #[prost(message, optional, tag = "5")]
    pub adapted: Option<AdaptedMessage>,
}

/// `plugin::plugin_file::AdaptedLibrary`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AdaptedMessage {
    #[prost(string, tag = "1")]
    pub adapter: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub file: String,
}

/// `device::DeviceSettings`. Each child has pools of its own.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeviceFacts {
    #[prost(bool, tag = "1")]
    pub disabled: bool,
    #[prost(uint64, tag = "2")]
    pub pinned_pool: u64,
    #[prost(btree_map = "int32, uint64", tag = "3")]
    pub pools: std::collections::BTreeMap<i32, u64>,
}

/// The response to a [`ControlRequest`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ControlResponse {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(message, optional, tag = "2")]
    pub failure: Option<FailureMessage>,
    #[prost(message, optional, tag = "3")]
    pub backend: Option<BackendInfo>,
    #[prost(message, optional, tag = "4")]
    pub patch: Option<PatchMessage>,
    /// Result of a probe: the name of the recognised file or directory.
    #[prost(string, optional, tag = "5")]
    pub entry: Option<String>,
    /// Result of opening an instance: the sizes that it is prepared for.
    #[prost(message, repeated, tag = "6")]
    pub batch_sizes: Vec<BatchSize>,
}

/// A number of rows, and the time of a run with it; 0 = unknown.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchSize {
    #[prost(uint32, tag = "1")]
    pub rows: u32,
    #[prost(uint64, tag = "2")]
    pub run_ns: u64,
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
    #[prost(uint32, tag = "12")]
    pub instance_kinds: u32,
    #[prost(uint64, tag = "13")]
    pub gpu_max_in_flight: u64,
    #[prost(uint64, tag = "14")]
    pub decoupled_max_in_flight: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PatchMessage {
    #[prost(uint32, tag = "1")]
    pub format: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub data: Vec<u8>,
}

/// `plugin::ProbeFacts`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProbeFacts {
    #[prost(string, tag = "1")]
    pub model: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
    #[prost(string, tag = "3")]
    pub version_dir: String,
    #[prost(string, tag = "4")]
    pub platform: String,
    #[prost(string, tag = "5")]
    pub default_file: String,
    #[prost(message, repeated, tag = "6")]
    pub entries: Vec<DirEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DirEntry {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bool, tag = "2")]
    pub is_dir: bool,
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
    /// Inputs as the model sees them (reshaped), then the inputs that the host adds. Requests refer
    /// to positions here.
    #[prost(message, repeated, tag = "9")]
    pub inputs: Vec<TensorSpec>,
    /// Outputs as the model produces them: the declared ones, then states that are not declared as
    /// outputs.
    #[prost(message, repeated, tag = "10")]
    pub outputs: Vec<TensorSpec>,
    #[prost(uint32, tag = "11")]
    pub n_declared_inputs: u32,
    #[prost(uint32, tag = "12")]
    pub n_declared_outputs: u32,
    /// Settings of the host policy that all instances have.
    #[prost(btree_map = "string, string", tag = "13")]
    pub host_settings: BTreeMap<String, String>,
}

/// A tensor of `request::Signature`, without a batch dimension.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorSpec {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(uint32, tag = "2")]
    pub dtype: u32,
    /// As the model sees them. `caller_dims` has the dims before a reshape and is empty without
    /// one.
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
    #[prost(message, repeated, tag = "9")]
    pub secondary_devices: Vec<SecondaryDevice>,
    #[prost(string, tag = "10")]
    pub host_policy: String,
    #[prost(btree_map = "string, string", tag = "11")]
    pub host_settings: BTreeMap<String, String>,
    /// Share of the GPU's memory that may be in use when the instance is opened.
    #[prost(double, optional, tag = "12")]
    pub load_limit: Option<f64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SecondaryDevice {
    #[prost(string, tag = "1")]
    pub kind: String,
    #[prost(int64, tag = "2")]
    pub id: i64,
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
pub struct MetricMessage {
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
    /// Upper bounds of the buckets, if the metric is a histogram.
    #[prost(double, repeated, tag = "6")]
    pub bounds: Vec<f64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricValue {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// Value of a counter, or of a gauge with `set`.
    #[prost(double, tag = "2")]
    pub value: f64,
    /// Observations of a histogram since the last message.
    #[prost(double, repeated, tag = "3")]
    pub observations: Vec<f64>,
    /// The backend has removed the metric.
    #[prost(bool, tag = "4")]
    pub removed: bool,
    /// The metric is a gauge that was set since the last message.
    #[prost(bool, tag = "5")]
    pub set: bool,
    /// Sum that was added to a gauge since then.
    #[prost(double, tag = "6")]
    pub added: f64,
}

/// Replaces the former report of the scope for that memory; 0 bytes: there is none any more.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MemoryReport {
    /// Identifies the scope in the child.
    #[prost(uint64, tag = "1")]
    pub scope: u64,
    /// The scope in log lines.
    #[prost(string, tag = "2")]
    pub label: String,
    #[prost(uint32, tag = "3")]
    pub memory_type: u32,
    #[prost(int32, tag = "4")]
    pub device_id: i32,
    #[prost(uint64, tag = "5")]
    pub bytes: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CancelMessage {
    #[prost(uint32, tag = "1")]
    pub ordinal: u32,
    /// `key` of the request in `work.rs`.
    #[prost(uint64, tag = "2")]
    pub key: u64,
}
