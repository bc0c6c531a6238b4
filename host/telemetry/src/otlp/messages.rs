//! Messages of the OpenTelemetry protocol for traces: those parts that spans of this server use.
//!
//! Tests decode what is sent with the messages of the crate `opentelemetry-proto`, which the server
//! does without: it needs the SDK of OpenTelemetry. Names that are constants are declared as bytes,
//! which look the same on the wire, because those need not be copied.

use crate::span::{AttributeValue, SpanEvent, SpanKind, SpanRecord, SpanStatus};
use bytes::Bytes;
use std::borrow::Cow;

#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTraceServiceResponse {
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<ExportTracePartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTracePartialSuccess {
    #[prost(int64, tag = "1")]
    pub rejected_spans: i64,
    #[prost(string, tag = "2")]
    pub error_message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    #[prost(int32, tag = "6")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<Event>,
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Event {
    #[prost(fixed64, tag = "1")]
    pub time_unix_nano: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub name: Bytes,
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(int32, tag = "3")]
    pub code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(int64, tag = "3")]
    Integer(i64),
}

/// `STATUS_CODE_ERROR`.
const STATUS_ERROR: i32 = 2;

/// One request with all of `spans`.
pub fn export_request(
    resource: &[(String, String)],
    spans: Vec<SpanRecord>,
) -> ExportTraceServiceRequest {
    let attributes = resource.iter().map(|(key, value)| KeyValue {
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Some(AnyValue { value: Some(Value::Text(value.clone())) }),
    });
    let scope = InstrumentationScope {
        name: "trtserver".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let spans = spans.into_iter().map(Span::from).collect();
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes: attributes.collect() }),
            scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
        }],
    }
}

impl From<SpanRecord> for Span {
    fn from(span: SpanRecord) -> Self {
        Self {
            trace_id: span.trace_id.0.to_vec(),
            span_id: span.span_id.0.to_vec(),
            trace_state: span.trace_state,
            parent_span_id: span.parent.map_or_else(Vec::new, |parent| parent.0.to_vec()),
            name: span.name,
            kind: match span.kind {
                SpanKind::Internal => 1,
                SpanKind::Server => 2,
            },
            start_time_unix_nano: span.start_ns,
            end_time_unix_nano: span.end_ns,
            attributes: key_values(span.attributes),
            events: span.events.into_iter().map(Event::from).collect(),
            status: match span.status {
                SpanStatus::Unset => None,
                SpanStatus::Error(message) => Some(Status { message, code: STATUS_ERROR }),
            },
        }
    }
}

impl From<SpanEvent> for Event {
    fn from(event: SpanEvent) -> Self {
        Self {
            time_unix_nano: event.at_ns,
            name: match event.name {
                Cow::Borrowed(name) => Bytes::from_static(name.as_bytes()),
                Cow::Owned(name) => name.into_bytes().into(),
            },
            attributes: key_values(event.attributes),
        }
    }
}

fn key_values(attributes: Vec<(&'static str, AttributeValue)>) -> Vec<KeyValue> {
    let value = |value| match value {
        AttributeValue::Text(text) => Value::Text(text),
        AttributeValue::Integer(number) => Value::Integer(number),
        AttributeValue::Flag(flag) => Value::Flag(flag),
    };
    let pair = |(key, given): (&'static str, _)| KeyValue {
        key: Bytes::from_static(key.as_bytes()),
        value: Some(AnyValue { value: Some(value(given)) }),
    };
    attributes.into_iter().map(pair).collect()
}
