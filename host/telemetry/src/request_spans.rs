//! The spans of a request, with the names, attributes and events of Triton's.
//!
//! ```text
//!   InferRequest                     the client's request, from its head to the end of its response
//!   └─ MODEL                         from the frontend to the final response
//!      ├─ compute                    the execution
//!      └─ MODEL of a step            of an ensemble, or of a nested request, isolated or not
//!         └─ compute
//! ```

use crate::span::{AttributeValue, SpanEvent, SpanKind, SpanRecord, SpanSource, SpanStatus};
use std::borrow::Cow;
use std::sync::Arc;
use trtserver_request_trace::{
    Activity, RequestSpan, RequestTrace, SpanId, SpanPart, TraceFailure, TraceReason,
};

/// Attributes of the span of a model, as Triton names them.
const MODEL_NAME: &str = "triton.model_name";
const MODEL_VERSION: &str = "triton.model_version";
const TRACE_ID: &str = "triton.trace_id";
const PARENT_ID: &str = "triton.trace_parent_id";
const REQUEST_ID: &str = "triton.request_id";
/// Why a trace was exported that is not sampled: `slow` or `failed`.
const KEPT: &str = "trtserver.kept";

impl SpanSource for Arc<RequestTrace> {
    fn span_count(&self) -> usize {
        let models = self.spans.iter().filter(|span| model_times(span).is_some());
        1 + models.map(|span| 1 + usize::from(compute_times(span).is_some())).sum::<usize>()
    }

    fn append_spans(self, spans: &mut Vec<SpanRecord>) {
        spans.push(request_span(&self));
        for span in &self.spans {
            let Some(times) = model_times(span) else { continue };
            let parent = match span.parent_id {
                0 => self.ids.span_id(self.root().id, SpanPart::Request),
                number => self.ids.span_id(number, SpanPart::Model),
            };
            let id = self.ids.span_id(span.id, SpanPart::Model);
            let mut model = new_span(&self, &span.model, (id, Some(parent)), times);
            model.attributes = model_attributes(span);
            model.events = events(&self, span, SpanPart::Model);
            model.status = status(span.failure.as_ref());
            spans.push(model);
            if let Some(times) = compute_times(span) {
                let compute = self.ids.span_id(span.id, SpanPart::Compute);
                let mut compute = new_span(&self, "compute", (compute, Some(id)), times);
                compute.events = events(&self, span, SpanPart::Compute);
                spans.push(compute);
            }
        }
    }
}

/// The client's request.
fn request_span(trace: &RequestTrace) -> SpanRecord {
    let root = trace.root();
    let ids = (
        trace.ids.span_id(root.id, SpanPart::Request),
        trace.context.as_ref().map(|context| context.span_id),
    );
    let mut span = new_span(trace, "InferRequest", ids, (trace.start_ns, trace.end_ns));
    span.kind = SpanKind::Server;
    span.events = events(trace, root, SpanPart::Request);
    span.status = status(root.failure.as_ref());
    if trace.sampled.is_none() && trace.reason != TraceReason::Sampled {
        span.attributes.push((KEPT, trace.reason.name().into()));
    }
    span
}

fn new_span(
    trace: &RequestTrace,
    name: &str,
    (span_id, parent): (SpanId, Option<SpanId>),
    (start, end): (u64, u64),
) -> SpanRecord {
    SpanRecord {
        trace_id: trace.trace_id(),
        span_id,
        parent,
        trace_state: trace
            .context
            .as_ref()
            .map(|context| context.state.clone())
            .unwrap_or_default(),
        name: name.to_owned(),
        kind: SpanKind::Internal,
        start_ns: trace.unix_ns(start),
        end_ns: trace.unix_ns(end.max(start)),
        attributes: Vec::new(),
        events: Vec::new(),
        status: SpanStatus::Unset,
    }
}

/// `None`: the request was refused before it went to its model.
fn model_times(span: &RequestSpan) -> Option<(u64, u64)> {
    let start = span.time(&Activity::RequestStart)?;
    Some((start, span.time(&Activity::RequestEnd).unwrap_or(start)))
}

/// `None`: the request was not executed, or is one to an ensemble.
fn compute_times(span: &RequestSpan) -> Option<(u64, u64)> {
    span.batch.as_ref()?;
    let start = span.time(&Activity::ComputeStart)?;
    Some((start, span.time(&Activity::ComputeEnd).unwrap_or(start)))
}

fn model_attributes(span: &RequestSpan) -> Vec<(&'static str, AttributeValue)> {
    let mut attributes = vec![
        (MODEL_NAME, AttributeValue::from(&*span.model)),
        (MODEL_VERSION, span.version.into()),
        (TRACE_ID, span.id.cast_signed().into()),
        (PARENT_ID, span.parent_id.cast_signed().into()),
    ];
    if !span.request_id.is_empty() {
        attributes.push((REQUEST_ID, span.request_id.clone().into()));
    }
    attributes
}

/// The times of a request that belong to this one of its spans.
fn events(trace: &RequestTrace, span: &RequestSpan, part: SpanPart) -> Vec<SpanEvent> {
    let own = span.timestamps.iter().filter(|(activity, _)| part_of(activity) == part);
    own.map(|(activity, ns)| SpanEvent {
        name: event_name(activity),
        at_ns: trace.unix_ns(*ns),
        attributes: Vec::new(),
    })
    .collect()
}

fn part_of(activity: &Activity) -> SpanPart {
    match activity {
        Activity::HttpRecvStart
        | Activity::HttpRecvEnd
        | Activity::HttpSendStart
        | Activity::HttpSendEnd
        | Activity::GrpcWaitReadStart
        | Activity::GrpcWaitReadEnd
        | Activity::GrpcSendStart
        | Activity::GrpcSendEnd
        | Activity::InferResponseComplete => SpanPart::Request,
        Activity::ComputeStart
        | Activity::ComputeInputEnd
        | Activity::ComputeOutputStart
        | Activity::ComputeEnd => SpanPart::Compute,
        Activity::RequestStart
        | Activity::QueueStart
        | Activity::RequestEnd
        | Activity::Custom(_) => SpanPart::Model,
    }
}

fn event_name(activity: &Activity) -> Cow<'static, str> {
    match activity.known_name() {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(activity.name().into_owned()),
    }
}

fn status(failure: Option<&TraceFailure>) -> SpanStatus {
    failure.map_or(SpanStatus::Unset, |failure| SpanStatus::Error(failure.message.clone()))
}

#[cfg(test)]
#[path = "request_spans_tests.rs"]
mod tests;
