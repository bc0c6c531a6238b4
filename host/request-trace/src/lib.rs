//! Request traces: which requests are traced, what is recorded of them, and where it goes.
//!
//! A frontend asks the [`Tracer`] for an [`ActiveTrace`] once it knows the model of a request. The
//! trace travels with the request; steps of ensembles and nested requests are children of it. What
//! is recorded are mostly times that the request has anyway for its statistics, in a block of memory
//! that was used for earlier traces. When the last reference is dropped, after the response was
//! sent, the block ([`RequestTrace`]) goes through a bounded queue to a thread that passes it to the
//! trace file ([`file`]), the [`TraceSink`]s and the list of recent traces ([`recent`]). What that
//! displaces is used for the next ones.
//!
//! While nothing is traced, a request pays one branch in each place that records.
//!
//! A request is *sampled* when its trace is chosen as it begins. The *tail rule* keeps the trace of a
//! request at its end, because it was slow or failed.

#![forbid(unsafe_code)]

pub mod active;
pub mod activity;
mod block_pool;
pub mod context;
pub mod current;
pub mod file;
pub mod ids;
pub mod recent;
pub mod request_trace;
pub mod sampler;
pub mod sampling;
pub mod settings;
pub mod tensor_text;
pub mod tracer;

pub use active::{ActiveTrace, SendTrace, TraceEnd};
pub use activity::{Activity, TensorActivity};
pub use context::TraceContext;
pub use ids::{NumberIds, SpanId, SpanPart, TraceId, TraceIds};
pub use recent::RecentTraces;
pub use request_trace::{
    BatchFacts, RequestSpan, RequestTrace, TensorRecord, TraceFailure, TraceReason, TraceWire,
};
pub use sampler::{ParentRule, RootRule, TraceSampler};
pub use settings::{SettingChange, SettingUpdate, TraceLevels, TraceValues};
pub use tracer::{TraceDemand, TraceSink, Tracer};
