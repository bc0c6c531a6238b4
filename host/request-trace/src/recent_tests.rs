//! Unit tests of `recent.rs`.

use super::*;
use crate::context::TraceContext;
use crate::request_trace::{RequestSpan, TraceWire};

fn trace(id: u64, request_id: &str, reason: TraceReason) -> Box<RequestTrace> {
    let context = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    Box::new(RequestTrace {
        spans: vec![RequestSpan { id, request_id: request_id.to_owned(), ..Default::default() }]
            .into(),
        wire: TraceWire::V2Http,
        ids: Default::default(),
        context: (id == 9).then(|| TraceContext::parse(context, None).map(Box::new)).flatten(),
        sampled: None,
        reason,
        start_ns: 0,
        end_ns: id,
        unix_offset_ns: 0,
        status: None,
        input_bytes: 0,
        output_bytes: 0,
        caller: None,
    })
}

#[test]
fn sampled_traces_do_not_displace_failed_ones() {
    let recent = RecentTraces::new(2);
    recent.add(trace(1, "", TraceReason::Failed), |_| ());
    for id in 2..=5 {
        recent.add(trace(id, "", TraceReason::Sampled), |_| ());
    }
    recent.add(trace(6, "", TraceReason::Slow), |_| ());
    let ids: Vec<u64> = recent.list().iter().map(|trace| trace.root().id).collect();
    assert_eq!(ids, [6, 5, 4, 1]);
}

#[test]
fn traces_are_found_by_each_of_their_ids() {
    let recent = RecentTraces::new(9);
    for (id, request_id) in [(1, "a"), (2, "b"), (3, "b"), (4, "1"), (9, "")] {
        recent.add(trace(id, request_id, TraceReason::Sampled), |_| ());
    }
    for (id, expected) in [
        ("a", Some(1)),
        // The newest.
        ("b", Some(3)),
        // The id of a client comes before a number.
        ("1", Some(4)),
        ("2", Some(2)),
        ("0af7651916cd43dd8448eb211c80319c", Some(9)),
        ("", None),
        ("77", None),
    ] {
        assert_eq!(recent.find(id).map(|trace| trace.root().id), expected, "{id}");
    }
}
