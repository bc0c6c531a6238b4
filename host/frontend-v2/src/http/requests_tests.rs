//! Unit tests of `requests.rs`.

use super::*;
use trtserver_request_trace::{TraceReason, TraceWire};

#[test]
fn ids_are_percent_decoded() {
    for (text, expected) in [
        ("a-b_1", "a-b_1"),
        ("a%2Fb%20c", "a/b c"),
        ("%C3%A9", "é"),
        ("100%", "100%"),
        ("%zz%2", "%zz%2"),
        ("%FF", "\u{fffd}"),
    ] {
        assert_eq!(decode_percent(text), expected, "{text}");
    }
}

#[test]
fn a_span_names_its_phases_and_its_batch() {
    use Activity::*;
    let times = [(QueueStart, 2_000), (ComputeStart, 5_500), (ComputeInputEnd, 6_000)];
    let batch = BatchFacts {
        number: 4,
        instance: "m_0".into(),
        requests: 3,
        rows: 5,
        close_reason: "delay",
        request_ids: Some(["x", "a\"", "x"].map(str::to_owned).into()),
    };
    let span = RequestSpan {
        id: 1,
        request_id: "x".to_owned(),
        model: "m".into(),
        version: 2,
        rows: 1,
        timestamps: times.into_iter().collect(),
        batch: Some(batch),
        ..Default::default()
    };
    let trace = RequestTrace {
        spans: vec![span.clone()].into(),
        wire: TraceWire::V2Http,
        ids: Default::default(),
        context: None,
        sampled: None,
        reason: TraceReason::Slow,
        start_ns: 1_000,
        end_ns: 9_000,
        unix_offset_ns: 5_000_000,
        status: Some(200),
        input_bytes: 64,
        output_bytes: 0,
        caller: None,
    };
    let text = write_object(|o| write_span(o, &trace, &span));
    let expected = concat!(
        r#"{"trace":1,"model":"m","version":"2","rows":1,"responses":0,"queue_us":3.5,"copy_input_us":0.5,"#,
        r#""batch":{"number":4,"instance":"m_0","requests":3,"rows":5,"closed":"delay","with":["a\"","x"]},"#,
        r#""timeline":[{"name":"QUEUE_START","us":1.0},{"name":"COMPUTE_START","us":4.5},{"name":"COMPUTE_INPUT_END","us":5.0}]}"#
    );
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    let text = String::from_utf8(write_object(|o| write_summary(o, &trace))).unwrap();
    assert!(text.starts_with(r#"{"id":"x","trace":1,"kept":"slow","model":"m","version":"2""#));
}
