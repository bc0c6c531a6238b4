//! A finished span, independent of how it is sent.

use std::borrow::Cow;
use trtserver_request_trace::ids::{SpanId, TraceId};

/// A finished span of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanRecord {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    /// `None`: the trace begins here.
    pub parent: Option<SpanId>,
    /// `tracestate` of the trace; empty without one.
    pub trace_state: String,
    pub name: String,
    pub kind: SpanKind,
    /// Nanoseconds since 1970, as all times of spans.
    pub start_ns: u64,
    pub end_ns: u64,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    pub events: Vec<SpanEvent>,
    pub status: SpanStatus,
}

/// Whose work a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A part of this server.
    Internal,
    /// A request of a client.
    Server,
}

/// A point in time of a span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    pub name: Cow<'static, str>,
    pub at_ns: u64,
    pub attributes: Vec<(&'static str, AttributeValue)>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    Text(String),
    Integer(i64),
    Flag(bool),
}

/// How the work of a span ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SpanStatus {
    /// It succeeded.
    #[default]
    Unset,
    /// It failed, with this text.
    Error(String),
}

/// What becomes spans, on the thread that exports them.
pub trait SpanSource: Send + 'static {
    /// How many places of the queue it takes.
    fn span_count(&self) -> usize;

    fn append_spans(self, spans: &mut Vec<SpanRecord>);
}

impl SpanSource for Vec<SpanRecord> {
    fn span_count(&self) -> usize {
        self.len()
    }

    fn append_spans(mut self, spans: &mut Vec<SpanRecord>) {
        spans.append(&mut self);
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}
