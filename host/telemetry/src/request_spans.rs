//! The spans of a request, with the names, attributes and events of Triton's.
//!
//! ```text
//!   InferRequest                     the client's request, from its head to the end of its response
//!   └─ MODEL                         from the frontend to the final response
//!      ├─ compute                    the execution
//!      └─ MODEL of a step            of an ensemble, or of a nested request, isolated or not
//!         └─ compute
//! ```

use crate::span::{SpanBuffer, SpanEncoder, SpanKind, SpanWriter};
use crate::span_template::SpanTemplates;
use trtserver_request_trace::{
    Activity, RequestSpan, RequestTrace, SpanId, SpanPart, TraceFailure, TraceId, TraceReason,
};

/// Attributes of the span of a model, as Triton names them.
const MODEL_NAME: &str = "triton.model_name";
const MODEL_VERSION: &str = "triton.model_version";
const TRACE_ID: &str = "triton.trace_id";
const PARENT_ID: &str = "triton.trace_parent_id";
const REQUEST_ID: &str = "triton.request_id";
/// Why a trace was exported that is not sampled: `slow` or `failed`.
const KEPT: &str = "trtserver.kept";

/// Makes spans of traces.
#[derive(Default)]
pub struct TraceSpans(SpanTemplates);

impl SpanEncoder for TraceSpans {
    type Source = RequestTrace;

    fn span_count(&self, trace: &RequestTrace) -> usize {
        let models = trace.spans.iter().filter(|span| model_times(span).is_some());
        1 + models.map(|span| 1 + usize::from(compute_times(span).is_some())).sum::<usize>()
    }

    fn encode_spans(&mut self, trace: &RequestTrace, spans: &mut SpanBuffer) {
        self.0.encode(trace, spans, |spans| write_spans(trace, spans));
    }
}

/// Writes every field of the spans.
pub(crate) fn write_spans(trace: &RequestTrace, spans: &mut SpanBuffer) {
    let root = trace.root();
    let trace_id = trace.trace_id();
    let request = trace.ids.span_id(root.id, SpanPart::Request);
    spans.add(|span| write_request(span, trace, (trace_id, request)));
    for model in &trace.spans {
        let Some(times) = model_times(model) else { continue };
        let parent = match model.parent_id {
            0 => request,
            number => trace.ids.span_id(number, SpanPart::Model),
        };
        let id = trace.ids.span_id(model.id, SpanPart::Model);
        spans.add(|span| {
            let name = (&*model.model, SpanKind::Internal);
            write_common(span, trace, name, (trace_id, id, Some(parent)), times);
            write_model(span, model);
            write_events(span, trace, model, SpanPart::Model);
            write_status(span, model.failure.as_ref());
        });
        if let Some(times) = compute_times(model) {
            let compute = trace.ids.span_id(model.id, SpanPart::Compute);
            spans.add(|span| {
                let name = ("compute", SpanKind::Internal);
                write_common(span, trace, name, (trace_id, compute, Some(id)), times);
                write_events(span, trace, model, SpanPart::Compute);
            });
        }
    }
}

/// The client's request.
fn write_request(span: &mut SpanWriter<'_>, trace: &RequestTrace, (id, own): (TraceId, SpanId)) {
    let parent = trace.context.as_ref().map(|context| context.span_id);
    let times = (trace.start_ns, trace.end_ns);
    write_common(span, trace, ("InferRequest", SpanKind::Server), (id, own, parent), times);
    if trace.sampled.is_none() && trace.reason != TraceReason::Sampled {
        span.text_attribute(KEPT, trace.reason.name());
    }
    write_events(span, trace, trace.root(), SpanPart::Request);
    write_status(span, trace.root().failure.as_ref());
}

fn write_common(
    span: &mut SpanWriter<'_>,
    trace: &RequestTrace,
    (name, kind): (&str, SpanKind),
    (trace_id, id, parent): (TraceId, SpanId, Option<SpanId>),
    (start, end): (u64, u64),
) {
    let state = trace.context.as_ref().map_or("", |context| &context.state);
    span.ids(trace_id, id, state, parent);
    span.name(name);
    span.kind(kind);
    span.times(trace.unix_ns(start), trace.unix_ns(end.max(start)));
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

fn write_model(span: &mut SpanWriter<'_>, model: &RequestSpan) {
    span.text_attribute(MODEL_NAME, &model.model);
    span.number_attribute(MODEL_VERSION, model.version);
    span.number_attribute(TRACE_ID, model.id.cast_signed());
    span.number_attribute(PARENT_ID, model.parent_id.cast_signed());
    if !model.request_id.is_empty() {
        span.text_attribute(REQUEST_ID, &model.request_id);
    }
}

/// The times of a request that belong to this one of its spans.
fn write_events(
    span: &mut SpanWriter<'_>,
    trace: &RequestTrace,
    model: &RequestSpan,
    part: SpanPart,
) {
    for (activity, ns) in &model.timestamps {
        if part_of(activity) == part {
            span.event(&activity.name(), trace.unix_ns(*ns));
        }
    }
}

pub(crate) fn part_of(activity: &Activity) -> SpanPart {
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

fn write_status(span: &mut SpanWriter<'_>, failure: Option<&TraceFailure>) {
    if let Some(failure) = failure {
        span.error(&failure.message);
    }
}

#[cfg(all(test, feature = "otlp"))]
#[path = "request_spans_tests.rs"]
mod tests;
