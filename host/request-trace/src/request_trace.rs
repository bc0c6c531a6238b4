//! A finished trace, as sinks get it.

use crate::activity::{Activity, TensorActivity};
use crate::context::TraceContext;
use crate::ids::{TraceId, TraceIds};
use crate::settings::TraceLevels;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use trtserver_base::error::Code;

/// A finished trace: a client's request and the requests that were made for it.
///
/// Every time is in nanoseconds of `trtserver_base::clock::now_ns` (CLOCK_MONOTONIC), which backends
/// use too. Unix time of `t`: [`RequestTrace::unix_ns`].
#[derive(Clone, Debug)]
pub struct RequestTrace {
    /// The client's request (parent id 0), then the steps of ensembles and nested requests in the
    /// order in which they ended. Never empty.
    pub spans: SmallVec<[RequestSpan; 1]>,
    /// Where the request came from.
    pub wire: TraceWire,
    /// W3C context that the client sent.
    pub context: Option<Box<TraceContext>>,
    /// Gives the ids of its spans.
    pub ids: TraceIds,
    /// The levels of the setting that sampled it; `None`: it was recorded for the tail rule or for
    /// a sink that wants all requests.
    pub sampled: Option<TraceLevels>,
    /// Why the trace is kept beside the sampled ones.
    pub reason: TraceReason,
    /// When the first byte of the request was read.
    pub start_ns: u64,
    /// When the response was sent, or the request was given up.
    pub end_ns: u64,
    /// Unix time in nanoseconds minus the monotonic clock, measured after the end.
    pub unix_offset_ns: i64,
    /// HTTP status or gRPC status code of the response; `None` if none was sent.
    pub status: Option<u16>,
    /// Bytes of tensors in the request and in its responses.
    pub input_bytes: u64,
    pub output_bytes: u64,
    /// Under which name the client was authenticated.
    pub caller: Option<Arc<str>>,
}

/// Why a trace is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceReason {
    /// By its setting alone, or for a sink that wants all.
    Sampled,
    /// It took at least `--trace-slow-ms`.
    Slow,
    /// It ended with an error.
    Failed,
}

impl TraceReason {
    pub fn name(self) -> &'static str {
        match self {
            TraceReason::Sampled => "sampled",
            TraceReason::Slow => "slow",
            TraceReason::Failed => "failed",
        }
    }
}

/// The frontend of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceWire {
    V1Http,
    V1Grpc,
    V2Http,
    V2Grpc,
    /// A backend made the request, outside of a traced one.
    Nested,
}

impl TraceWire {
    pub fn name(self) -> &'static str {
        match self {
            TraceWire::V1Http => "v1 HTTP",
            TraceWire::V1Grpc => "v1 gRPC",
            TraceWire::V2Http => "v2 HTTP",
            TraceWire::V2Grpc => "v2 gRPC",
            TraceWire::Nested => "nested",
        }
    }

    pub fn is_http(self) -> bool {
        matches!(self, TraceWire::V1Http | TraceWire::V2Http)
    }
}

/// One request to one model: the client's, a step of an ensemble, or a nested one.
#[derive(Clone, Debug, Default)]
pub struct RequestSpan {
    /// Unique in this process; from 1.
    pub id: u64,
    /// `id` of the request for which this one was made; 0 = the client's own.
    pub parent_id: u64,
    pub model: Arc<str>,
    pub version: i64,
    /// The client's request id, which is free text; cut at [`MAX_ID`] bytes.
    pub request_id: String,
    /// Rows of the request; 0 if it was refused before they were known.
    pub rows: u32,
    /// In the order of the times. At most [`MAX_TIMESTAMPS`].
    pub timestamps: SmallVec<[(Activity, u64); 12]>,
    /// The batch in which it was executed.
    pub batch: Option<BatchFacts>,
    /// At level TENSORS; at most [`MAX_TENSOR_BYTES`] of text.
    pub tensors: Vec<TensorRecord>,
    /// Responses with tensors.
    pub responses: u32,
    pub failure: Option<TraceFailure>,
}

/// Longest request id of a trace.
pub const MAX_ID: usize = 512;
/// Most timestamps of one span; later ones are dropped, except that of the end.
pub const MAX_TIMESTAMPS: usize = 256;
/// Most bytes of tensor texts of one span.
pub const MAX_TENSOR_BYTES: usize = 4 << 20;

/// The batch that a request was part of.
#[derive(Clone, Debug)]
pub struct BatchFacts {
    /// Unique among the batches of the process.
    pub number: u64,
    pub instance: Arc<str>,
    pub requests: u32,
    pub rows: u32,
    /// Why it was closed, as the metrics name it.
    pub close_reason: &'static str,
    /// Request ids of its requests, at most [`MAX_MATES`]; an empty text for those without one.
    /// `None` for a single request.
    pub request_ids: Option<Arc<[String]>>,
}

/// Most request ids in [`BatchFacts`].
pub const MAX_MATES: usize = 32;

/// How a request failed.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceFailure {
    pub code: Code,
    pub message: String,
}

/// The contents of a tensor as text.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorRecord {
    pub activity: TensorActivity,
    pub name: String,
    /// Elements, separated by commas; strings in quotes.
    pub data: String,
    /// Dimensions, separated by commas.
    pub shape: String,
    pub dtype: &'static str,
}

impl RequestTrace {
    /// A block to record in.
    pub(crate) fn block(ids: &TraceIds) -> Box<Self> {
        Box::new(Self {
            spans: smallvec![RequestSpan::default()],
            wire: TraceWire::Nested,
            context: None,
            ids: ids.clone(),
            sampled: None,
            reason: TraceReason::Sampled,
            start_ns: 0,
            end_ns: 0,
            unix_offset_ns: 0,
            status: None,
            input_bytes: 0,
            output_bytes: 0,
            caller: None,
        })
    }

    /// Forgets what was recorded, so that the block can be used again. False if it has grown: such
    /// a block is given back to the allocator.
    pub(crate) fn clear(&mut self) -> bool {
        if self.spans.spilled() || self.root().timestamps.spilled() {
            return false;
        }
        self.root_mut().clear();
        (self.context, self.caller, self.sampled, self.status) = (None, None, None, None);
        self.reason = TraceReason::Sampled;
        (self.end_ns, self.input_bytes, self.output_bytes) = (0, 0, 0);
        true
    }

    pub(crate) fn root_mut(&mut self) -> &mut RequestSpan {
        &mut self.spans[0]
    }

    /// The client's request.
    pub fn root(&self) -> &RequestSpan {
        &self.spans[0]
    }

    /// The caller's, or one of its own.
    pub fn trace_id(&self) -> TraceId {
        match &self.context {
            Some(context) => context.trace_id,
            None => self.ids.trace_id(self.root().id),
        }
    }

    /// Unix time in nanoseconds of a time of this trace.
    pub fn unix_ns(&self, t: u64) -> u64 {
        t.saturating_add_signed(self.unix_offset_ns)
    }

    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

impl RequestSpan {
    /// Forgets all but the model.
    fn clear(&mut self) {
        self.request_id.clear();
        self.timestamps.clear();
        (self.version, self.rows, self.responses) = (0, 0, 0);
        (self.batch, self.failure) = (None, None);
        if !self.tensors.is_empty() {
            self.tensors = Vec::new();
        }
    }

    /// The first time of this activity.
    pub fn time(&self, activity: &Activity) -> Option<u64> {
        self.timestamps.iter().find(|(a, _)| a == activity).map(|(_, ns)| *ns)
    }

    /// From one activity to another, if both were recorded in this order.
    pub fn between(&self, from: &Activity, to: &Activity) -> Option<u64> {
        self.time(to)?.checked_sub(self.time(from)?)
    }
}
