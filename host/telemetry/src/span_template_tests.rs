//! Unit tests of `span_template.rs`.
#![allow(clippy::unwrap_used, reason = "what these tests cannot do is a failure")]

use super::*;
use crate::request_spans::write_spans;
use trtserver_request_trace::Activity::*;
use trtserver_request_trace::{BatchFacts, RequestSpan, TraceContext, TraceIds, TraceWire};

/// The activities of an ordinary request over HTTP.
pub const USUAL: &[Activity] = &[
    HttpRecvStart,
    HttpRecvEnd,
    RequestStart,
    QueueStart,
    ComputeStart,
    ComputeInputEnd,
    ComputeOutputStart,
    InferResponseComplete,
    ComputeEnd,
    RequestEnd,
    HttpSendStart,
    HttpSendEnd,
];

/// A trace whose times begin at `at` and are `step` apart.
fn trace(
    model: &Arc<str>,
    id: u64,
    activities: &[Activity],
    (at, step): (u64, u64),
) -> RequestTrace {
    let batch = BatchFacts {
        number: id,
        instance: "i".into(),
        requests: 1,
        rows: 1,
        close_reason: "",
        request_ids: None,
    };
    let times = activities.iter().zip(0..).map(|(activity, i)| (activity.clone(), at + i * step));
    let span = RequestSpan {
        id,
        model: Arc::clone(model),
        version: 3,
        timestamps: times.collect(),
        batch: activities.contains(&ComputeStart).then_some(batch),
        ..Default::default()
    };
    RequestTrace {
        spans: vec![span].into(),
        wire: TraceWire::V2Http,
        context: None,
        ids: TraceIds::default(),
        sampled: Some(Default::default()),
        reason: TraceReason::Sampled,
        start_ns: at,
        end_ns: at + step * 20,
        unix_offset_ns: 1_000_000_007,
        status: Some(200),
        input_bytes: 0,
        output_bytes: 0,
        caller: None,
    }
}

fn with_caller(mut trace: RequestTrace, parent: &str, state: Option<&[u8]>) -> RequestTrace {
    trace.context = TraceContext::parse(parent.as_bytes(), state).map(Box::new);
    assert!(trace.context.is_some());
    trace
}

/// Each trace comes after others, whose templates must not be taken for it.
#[test]
fn templates_give_what_is_written_without_them() {
    let (m, long): (Arc<str>, Arc<str>) = ("m".into(), "a-model-with-a-long-name".into());
    let callers =
        ["a", "b"].map(|digit| format!("00-{}-{}-01", digit.repeat(32), digit.repeat(16)));
    let streamed: Vec<Activity> = [USUAL, &[InferResponseComplete, InferResponseComplete]].concat();
    let reported = |name: &str| [USUAL, &[Custom(name.into())]].concat();
    let mut other_version = trace(&m, 4, USUAL, (5, 5));
    other_version.spans[0].version = 300;
    let mut with_id = trace(&m, 5, USUAL, (5, 5));
    with_id.spans[0].request_id = "mine".to_owned();
    let mut slow = trace(&m, 6, USUAL, (5, 5));
    (slow.sampled, slow.reason) = (None, TraceReason::Slow);
    let mut backwards = trace(&m, 7, USUAL, (500, 5));
    backwards.end_ns = 1;
    let traces = [
        trace(&m, 1, USUAL, (10, 7)),
        trace(&m, 2, USUAL, (u64::MAX / 3, 1)),
        trace(&m, 127, USUAL, (9, 3)),
        trace(&m, 128, USUAL, (9, 4)),
        trace(&m, 1 << 40, USUAL, (9, 5)),
        trace(&long, 3, USUAL, (11, 2)),
        trace(&m, 3, &USUAL[..3], (12, 2)),
        trace(&m, 3, &USUAL[..1], (12, 2)),
        trace(&m, 9, &streamed, (13, 2)),
        trace(&m, 9, &reported("A"), (13, 2)),
        trace(&m, 9, &reported("LONGER"), (13, 2)),
        with_caller(trace(&m, 10, USUAL, (1, 1)), &callers[0], None),
        with_caller(trace(&m, 11, USUAL, (2, 1)), &callers[1], None),
        with_caller(trace(&m, 12, USUAL, (3, 1)), &callers[1], Some(b"vendor=1")),
        other_version,
        with_id,
        slow,
        backwards,
    ];
    let mut templates = SpanTemplates::default();
    let (mut by_template, mut written) = (SpanBuffer::new(3), SpanBuffer::new(3));
    for _ in 0..2 {
        for trace in &traces {
            templates.encode(trace, &mut by_template, |spans| write_spans(trace, spans));
            write_spans(trace, &mut written);
            assert!(by_template.encoded() == written.encoded(), "{trace:?}");
        }
    }
    assert_eq!(templates.0.len(), 9, "one for each kind of usual trace");
}

#[test]
fn templates_are_bounded() {
    let mut templates = SpanTemplates::default();
    let mut spans = SpanBuffer::new(0);
    for number in 0..=MAX_TEMPLATES {
        let trace = trace(&Arc::from(format!("m{number}")), 1, USUAL, (1, 1));
        templates.encode(&trace, &mut spans, |spans| write_spans(&trace, spans));
    }
    assert_eq!((templates.0.len(), spans.count()), (1, 3 * (MAX_TEMPLATES + 1)));
}
