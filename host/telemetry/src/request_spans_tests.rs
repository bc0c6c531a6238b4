//! Unit tests of `request_spans.rs`.

use super::*;
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
        instance: String::new(),
        requests: 1,
        rows: 1,
        close_reason: "",
        request_ids: Vec::new(),
    };
    RequestSpan { batch: Some(Arc::new(batch)), ..span(id, parent_id, model, times) }
}

fn trace(spans: Vec<RequestSpan>, context: Option<TraceContext>) -> Arc<RequestTrace> {
    Arc::new(RequestTrace {
        spans,
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
        principal: None,
    })
}

fn spans_of(trace: &Arc<RequestTrace>) -> Vec<SpanRecord> {
    let mut spans = Vec::new();
    Arc::clone(trace).append_spans(&mut spans);
    assert_eq!(spans.len(), trace.span_count());
    spans
}

fn event_times(span: &SpanRecord) -> Vec<(&str, u64)> {
    span.events.iter().map(|event| (&*event.name, event.at_ns)).collect()
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
    let parents = [request, model, child, compute].map(|span| span.parent);
    let expected = [context.span_id, request.span_id, model.span_id, child.span_id].map(Some);
    assert_eq!(parents, expected);
    for span in [request, model, child, compute] {
        assert_eq!((span.trace_id, &*span.trace_state), (context.trace_id, "vendor=1"));
        assert_eq!(span.kind == SpanKind::Server, span == request);
    }
    assert_eq!((request.start_ns, request.end_ns), (1010, 1090));
    assert_eq!((model.start_ns, model.end_ns), (1012, 1081));
    assert_eq!((compute.start_ns, compute.end_ns), (1030, 1041));
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
    let attributes = [
        ("triton.model_name", "both".into()),
        ("triton.model_version", 2.into()),
        ("triton.trace_id", 7.into()),
        ("triton.trace_parent_id", 0.into()),
        ("triton.request_id", "mine".into()),
    ];
    assert_eq!(model.attributes, attributes);
    assert_eq!(child.attributes[3], ("triton.trace_parent_id", 7.into()));
}

#[test]
fn failures_and_why_a_trace_is_kept() {
    let mut refused = span(1, 0, "m", &[(Activity::HttpRecvStart, 10)]);
    refused.failure = Some(TraceFailure { code: Code::InvalidArg, message: "no".to_owned() });
    let mut kept = Arc::unwrap_or_clone(trace(vec![refused], None));
    (kept.sampled, kept.reason) = (None, TraceReason::Failed);
    let spans = spans_of(&Arc::new(kept));
    assert_eq!(spans.len(), 1, "it did not reach its model");
    assert_eq!(spans[0].parent, None);
    assert_eq!(spans[0].status, SpanStatus::Error("no".to_owned()));
    assert_eq!(spans[0].attributes, [("trtserver.kept", "failed".into())]);
}

#[test]
fn ids_of_a_trace_follow_from_its_number_and_differ() {
    let times = [(Activity::RequestStart, 20), (Activity::ComputeStart, 30)];
    let first = trace(vec![executed(1, 0, "m", &times), executed(2, 1, "n", &times)], None);
    let second = trace(vec![span(1, 0, "m", &times)], None);
    let all: Vec<_> = spans_of(&first).into_iter().chain(spans_of(&second)).collect();
    let ids: std::collections::HashSet<_> = all.iter().map(|span| span.span_id).collect();
    assert_eq!(ids.len(), all.len());
    let traces: std::collections::HashSet<_> = all.iter().map(|span| span.trace_id).collect();
    assert_eq!(traces.len(), 2, "one for each server");
    assert_eq!(spans_of(&first), spans_of(&first));
}
