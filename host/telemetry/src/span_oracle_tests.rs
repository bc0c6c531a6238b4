//! Encoded spans of random traces, decoded with the types of the `opentelemetry-proto` crate, beside
//! spans that are built as structs.
#![allow(clippy::unwrap_used, reason = "what these tests cannot do is a failure")]

use crate::request_spans::{TraceSpans, part_of};
use crate::span::{SpanBuffer, SpanEncoder};
use crate::span_template::tests::USUAL;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ScopeSpans, Span, Status};
use prost::Message;
use std::sync::Arc;
use trtserver_base::error::Code;
use trtserver_request_trace::Activity::*;
use trtserver_request_trace::{
    Activity, BatchFacts, RequestSpan, RequestTrace, SpanPart, TraceContext, TraceFailure,
    TraceIds, TraceReason, TraceWire,
};

/// A generator of numbers (xorshift), the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `end`.
    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 8) % end
    }

    /// True once in `times`.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn text(&mut self, longest: u64) -> String {
        let length = self.below(longest + 1) as usize;
        "é text 文".chars().cycle().take(length).collect()
    }
}

/// Most traces are like one another, as those of a server are.
fn random_trace(random: &mut Random, models: &[Arc<str>], ids: &TraceIds) -> RequestTrace {
    let start = random.below(1 << 50);
    let root = random_span(random, models, start, 0);
    let mut spans = vec![root];
    while random.once_in(8) {
        let parent = spans[random.below(spans.len() as u64) as usize].id;
        spans.push(random_span(random, models, start, parent));
    }
    let context = random.once_in(3).then(|| {
        let parent = format!("00-{:032x}-{:016x}-01", random.next() | 1, random.next() | 1);
        let state = random.once_in(4).then_some(&b"vendor=1,other=2"[..]);
        Box::new(TraceContext::parse(parent.as_bytes(), state).unwrap())
    });
    let reason = match random.below(10) {
        0 => TraceReason::Slow,
        1 => TraceReason::Failed,
        _ => TraceReason::Sampled,
    };
    RequestTrace {
        spans: spans.into(),
        wire: TraceWire::V2Http,
        context,
        ids: ids.clone(),
        sampled: (reason == TraceReason::Sampled || random.once_in(2)).then(Default::default),
        reason,
        start_ns: start,
        // Before the start, if a client goes away at once.
        end_ns: if random.once_in(20) { 0 } else { start + random.below(1 << 30) },
        unix_offset_ns: 1_700_000_000_000_000_000,
        status: Some(200),
        input_bytes: 0,
        output_bytes: 0,
        caller: None,
    }
}

fn random_span(
    random: &mut Random,
    models: &[Arc<str>],
    start: u64,
    parent_id: u64,
) -> RequestSpan {
    let known = match parent_id {
        0 => USUAL.to_vec(),
        _ => vec![RequestStart, QueueStart, ComputeStart, ComputeEnd, RequestEnd],
    };
    // Cut anywhere, since a request may end at any point; seldom another activity or more of them.
    let mut activities = known;
    if random.once_in(4) {
        activities.truncate(random.below(activities.len() as u64 + 1) as usize);
    }
    if random.once_in(8) {
        let added = 1 + random.below(40);
        activities.extend((0..added).map(|_| match random.below(3) {
            0 => InferResponseComplete,
            1 => GrpcSendStart,
            _ => Custom(random.text(20).into()),
        }));
    }
    let times = activities.into_iter().map(|activity| (activity, start + random.below(1 << 30)));
    let timestamps = times.collect();
    let batch = (!random.once_in(5)).then(|| BatchFacts {
        number: 1,
        instance: "i".into(),
        requests: 1,
        rows: 1,
        close_reason: "",
        request_ids: None,
    });
    RequestSpan {
        id: 1 + random.next() % (1 << random.below(63)),
        parent_id,
        model: Arc::clone(&models[random.below(models.len() as u64) as usize]),
        version: [1, 2, 300, -1][random.below(4) as usize],
        request_id: if random.once_in(6) { random.text(200) } else { String::new() },
        timestamps,
        batch,
        failure: random
            .once_in(8)
            .then(|| TraceFailure { code: Code::Internal, message: random.text(300) }),
        ..Default::default()
    }
}

fn attribute(key: &str, value: Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..Default::default() }
}

/// The times of `span` that belong to `part` of it.
fn events(trace: &RequestTrace, span: &RequestSpan, part: SpanPart) -> Vec<Event> {
    let own = span.timestamps.iter().filter(|(activity, _)| part_of(activity) == part);
    own.map(|(activity, ns)| Event {
        time_unix_nano: trace.unix_ns(*ns),
        name: activity.name().into_owned(),
        ..Default::default()
    })
    .collect()
}

fn status(span: &RequestSpan) -> Option<Status> {
    let failure = span.failure.as_ref()?;
    Some(Status { message: failure.message.clone(), code: StatusCode::Error.into() })
}

fn plain_span(
    trace: &RequestTrace,
    name: &str,
    (id, parent): ((u64, SpanPart), Vec<u8>),
    (start, end): (u64, u64),
) -> Span {
    let context = trace.context.as_ref();
    Span {
        trace_id: trace.trace_id().0.to_vec(),
        span_id: trace.ids.span_id(id.0, id.1).0.to_vec(),
        trace_state: context.map(|context| context.state.clone()).unwrap_or_default(),
        parent_span_id: parent,
        name: name.to_owned(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: trace.unix_ns(start),
        end_time_unix_nano: trace.unix_ns(end.max(start)),
        ..Default::default()
    }
}

/// The spans of a trace, as structs.
fn plain_spans(trace: &RequestTrace) -> Vec<Span> {
    let id = |number, part| trace.ids.span_id(number, part).0.to_vec();
    let root = trace.root();
    let caller = trace.context.as_ref().map(|context| context.span_id.0.to_vec());
    let own = ((root.id, SpanPart::Request), caller.unwrap_or_default());
    let mut request = plain_span(trace, "InferRequest", own, (trace.start_ns, trace.end_ns));
    request.kind = SpanKind::Server.into();
    if trace.sampled.is_none() && trace.reason != TraceReason::Sampled {
        let reason = Value::StringValue(trace.reason.name().to_owned());
        request.attributes.push(attribute("trtserver.kept", reason));
    }
    request.events = events(trace, root, SpanPart::Request);
    request.status = status(root);
    let mut spans = vec![request];
    for span in &trace.spans {
        let range = |start: &Activity, end: &Activity| {
            let start = span.time(start)?;
            Some((start, span.time(end).unwrap_or(start)))
        };
        let Some(times) = range(&RequestStart, &RequestEnd) else { continue };
        let parent = match span.parent_id {
            0 => id(root.id, SpanPart::Request),
            number => id(number, SpanPart::Model),
        };
        let mut model = plain_span(trace, &span.model, ((span.id, SpanPart::Model), parent), times);
        model.attributes = vec![
            attribute("triton.model_name", Value::StringValue(span.model.to_string())),
            attribute("triton.model_version", Value::IntValue(span.version)),
            attribute("triton.trace_id", Value::IntValue(span.id as i64)),
            attribute("triton.trace_parent_id", Value::IntValue(span.parent_id as i64)),
        ];
        if !span.request_id.is_empty() {
            let request_id = Value::StringValue(span.request_id.clone());
            model.attributes.push(attribute("triton.request_id", request_id));
        }
        model.events = events(trace, span, SpanPart::Model);
        model.status = status(span);
        spans.push(model);
        if span.batch.is_some()
            && let Some(times) = range(&ComputeStart, &ComputeEnd)
        {
            let ids = ((span.id, SpanPart::Compute), id(span.id, SpanPart::Model));
            let mut compute = plain_span(trace, "compute", ids, times);
            compute.events = events(trace, span, SpanPart::Compute);
            spans.push(compute);
        }
    }
    spans
}

#[test]
fn encoded_spans_are_those_that_are_built_as_structs() {
    let mut random = Random(0x5eed_cafe_f00d);
    let models: Vec<Arc<str>> =
        ["m", "a-model-with-a-long-name", &"n".repeat(200)].map(Arc::from).to_vec();
    let ids = TraceIds::default();
    let mut encoder = TraceSpans::default();
    // As the exporter fills them: several traces in one buffer.
    for _ in 0..200 {
        let traces: Vec<_> = (0..20).map(|_| random_trace(&mut random, &models, &ids)).collect();
        let mut buffer = SpanBuffer::new(7);
        traces.iter().for_each(|trace| encoder.encode_spans(trace, &mut buffer));
        let count = buffer.count();
        let batch = buffer.take(count, Vec::new());
        let decoded = ScopeSpans::decode(&batch[7..]).unwrap();
        assert_eq!(decoded.spans.len(), count);
        let mut decoded = decoded.spans.into_iter();
        for trace in &traces {
            let expected = plain_spans(trace);
            assert_eq!(encoder.span_count(trace), expected.len());
            for span in expected {
                assert_eq!(decoded.next(), Some(span), "{trace:?}");
            }
        }
    }
}
