//! Unit tests of `request_spans.rs`.
#![allow(clippy::unwrap_used, reason = "what these tests cannot do is a failure")]

use super::*;
use crate::otlp::decoded::{KeyValue, ScopeSpans, Span, Status, Value};
use prost::Message;
use trtserver_base::error::Code;
use trtserver_request_trace::{BatchFacts, TraceContext, TraceIds, TraceWire};

const CALLER: &[u8] = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn span(id: u64, parent_id: u64, model: &str, times: &[(Activity, u64)]) -> RequestSpan {
    let timestamps = times.iter().cloned().collect();
    let model = model.into();
    RequestSpan { id, parent_id, model, version: 2, timestamps, ..Default::default() }
}

/// The same, executed.
fn executed(id: u64, parent_id: u64, model: &str, times: &[(Activity, u64)]) -> RequestSpan {
    let batch = BatchFacts {
        number: 1,
        instance: "".into(),
        requests: 1,
        rows: 1,
        close_reason: "",
        request_ids: None,
    };
    RequestSpan { batch: Some(batch), ..span(id, parent_id, model, times) }
}

fn trace(spans: Vec<RequestSpan>, context: Option<TraceContext>) -> RequestTrace {
    RequestTrace {
        spans: spans.into(),
        wire: TraceWire::V2Http,
        context: context.map(Box::new),
        ids: TraceIds::default(),
        sampled: Some(Default::default()),
        reason: TraceReason::Sampled,
        start_ns: 10,
        end_ns: 90,
        unix_offset_ns: 1000,
        status: Some(200),
        input_bytes: 0,
        output_bytes: 0,
        caller: None,
    }
}

fn spans_of(trace: &RequestTrace) -> Vec<Span> {
    let mut spans = SpanBuffer::new(0);
    let mut encoder = TraceSpans::default();
    encoder.encode_spans(trace, &mut spans);
    assert_eq!(spans.count(), encoder.span_count(trace));
    // The spans alone are the message around them without its other fields.
    let encoded = spans.take(spans.count(), Vec::new());
    let decoded = ScopeSpans::decode(&*encoded).unwrap();
    assert_eq!(decoded.encode_to_vec(), encoded, "not as prost encodes it");
    decoded.spans
}

fn event_times(span: &Span) -> Vec<(&str, u64)> {
    span.events.iter().map(|event| (&*event.name, event.time_unix_nano)).collect()
}

fn attributes(span: &Span) -> Vec<(&str, Value)> {
    let value = |pair: &KeyValue| pair.value.clone().unwrap().value.unwrap();
    span.attributes.iter().map(|pair| (&*pair.key, value(pair))).collect()
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn an_ensemble_with_a_step_below_a_caller() {
    use Activity::*;
    let ensemble = [
        (HttpRecvStart, 10),
        (HttpRecvEnd, 11),
        (RequestStart, 12),
        (InferResponseComplete, 80),
        (RequestEnd, 81),
        (HttpSendStart, 82),
        (HttpSendEnd, 90),
    ];
    let step = [
        (RequestStart, 20),
        (QueueStart, 21),
        (ComputeStart, 30),
        (ComputeInputEnd, 31),
        (ComputeOutputStart, 40),
        (ComputeEnd, 41),
        (Custom("MINE".into()), 35),
        (RequestEnd, 42),
    ];
    let context = TraceContext::parse(CALLER, Some(b"vendor=1")).unwrap();
    let mut first = span(7, 0, "both", &ensemble);
    first.request_id = "mine".to_owned();
    let trace = trace(vec![first, executed(8, 7, "step", &step)], Some(context.clone()));
    let [request, model, child, compute] = &spans_of(&trace)[..] else { panic!("four spans") };
    let names = [request, model, child, compute].map(|span| span.name.as_str());
    assert_eq!(names, ["InferRequest", "both", "step", "compute"]);
    let parents = [request, model, child, compute].map(|span| &span.parent_span_id);
    let caller = context.span_id.0.to_vec();
    assert_eq!(parents, [&caller, &request.span_id, &model.span_id, &child.span_id]);
    for span in [request, model, child, compute] {
        assert_eq!((&*span.trace_id, &*span.trace_state), (&context.trace_id.0[..], "vendor=1"));
        assert_eq!(span.kind, if span == request { 2 } else { 1 }, "server or internal");
        assert_eq!(span.status, None);
    }
    let times = [request, model, child, compute]
        .map(|span| (span.start_time_unix_nano, span.end_time_unix_nano));
    assert_eq!(times, [(1010, 1090), (1012, 1081), (1020, 1042), (1030, 1041)]);
    let sent = [
        ("HTTP_RECV_START", 1010),
        ("HTTP_RECV_END", 1011),
        ("INFER_RESPONSE_COMPLETE", 1080),
        ("HTTP_SEND_START", 1082),
        ("HTTP_SEND_END", 1090),
    ];
    assert_eq!(event_times(request), sent);
    assert_eq!(event_times(model), [("REQUEST_START", 1012), ("REQUEST_END", 1081)]);
    let queued =
        [("REQUEST_START", 1020), ("QUEUE_START", 1021), ("MINE", 1035), ("REQUEST_END", 1042)];
    assert_eq!(event_times(child), queued);
    assert_eq!(compute.events.len(), 4);
    let expected = [
        ("triton.model_name", text("both")),
        ("triton.model_version", Value::Integer(2)),
        ("triton.trace_id", Value::Integer(7)),
        ("triton.trace_parent_id", Value::Integer(0)),
        ("triton.request_id", text("mine")),
    ];
    assert_eq!(attributes(model), expected);
    assert_eq!(attributes(child)[3], ("triton.trace_parent_id", Value::Integer(7)));
}

#[test]
fn failures_and_why_a_trace_is_kept() {
    let mut refused = span(1, 0, "m", &[(Activity::HttpRecvStart, 10)]);
    refused.failure = Some(TraceFailure { code: Code::InvalidArg, message: "no".to_owned() });
    let mut kept = trace(vec![refused], None);
    (kept.sampled, kept.reason) = (None, TraceReason::Failed);
    let spans = spans_of(&kept);
    assert_eq!(spans.len(), 1, "it did not reach its model");
    assert!(spans[0].parent_span_id.is_empty());
    assert_eq!(spans[0].status, Some(Status { message: "no".to_owned(), code: 2 }));
    assert_eq!(attributes(&spans[0]), [("trtserver.kept", text("failed"))]);
}

#[test]
fn ids_of_a_trace_follow_from_its_number_and_differ() {
    let times = [(Activity::RequestStart, 20), (Activity::ComputeStart, 30)];
    let first = trace(vec![executed(1, 0, "m", &times), executed(2, 1, "n", &times)], None);
    let second = trace(vec![span(1, 0, "m", &times)], None);
    let all: Vec<_> = spans_of(&first).into_iter().chain(spans_of(&second)).collect();
    let ids: std::collections::HashSet<_> = all.iter().map(|span| span.span_id.clone()).collect();
    assert_eq!(ids.len(), all.len());
    let traces: std::collections::HashSet<_> =
        all.iter().map(|span| span.trace_id.clone()).collect();
    assert_eq!(traces.len(), 2, "one for each server");
    assert_eq!(spans_of(&first), spans_of(&first));
}

/// Lengths of one, two and three bytes.
#[test]
fn long_texts_have_long_lengths() {
    for length in [1, 100, 127, 128, 300, 16_383, 16_384, 70_000] {
        let mut failed = span(1, 0, &"m".repeat(length), &[(Activity::RequestStart, 20)]);
        let message = "e".repeat(length);
        failed.failure = Some(TraceFailure { code: Code::Internal, message });
        failed.timestamps.push((Activity::Custom("c".repeat(length).into()), 30));
        (failed.version, failed.request_id) = (-1, "i".repeat(length));
        let spans = spans_of(&trace(vec![failed], None));
        let model = &spans[1];
        assert_eq!((model.name.len(), model.events[1].name.len()), (length, length));
        assert_eq!(model.status.as_ref().unwrap().message.len(), length);
        assert_eq!(attributes(model)[1].1, Value::Integer(-1));
        assert_eq!(attributes(model)[4].1, text(&"i".repeat(length)));
    }
}
