//! Unit tests of `timeouts.rs`.

use super::*;
use crate::batcher::CloseReason;
use crate::batcher::settings::{DynamicSettings, QueuePolicy, SequenceSettings, SequenceStrategy};
use crate::queue::testing::{MS, batching, dynamic, error, ids, request, serve, wait_until};
use crate::queue::{RequestBatch, SchedulingPolicy};
use std::sync::Arc;
use trtserver_base::error::Code;
use trtserver_base::timer::DeadlineTimer;
use trtserver_request::testing::{request_for, signature};
use trtserver_request::{CorrelationId, RequestSequence};

#[test]
fn cancel_removes_queued_request() {
    let queue = dynamic(batching(&[2], 3_600_000 * MS), 1, false);
    let (gone, responses) = request("gone");
    let responder = Arc::clone(&gone.responder);
    queue.submit(gone);
    responder.cancel_token.cancel();
    assert_eq!(queue.waiting(), 0);
    assert_eq!(error(&responses).unwrap().0, Code::Cancelled);
    let (before, responses) = request("before");
    before.responder.cancel_token.cancel();
    queue.submit(before);
    assert_eq!((queue.waiting(), error(&responses).unwrap().0), (0, Code::Cancelled));
    queue.submit(request("a").0);
    queue.submit(request("b").0);
    let mut batch = RequestBatch::default();
    assert!(queue.take(0, &mut batch));
    assert_eq!((ids(&batch), batch.close_reason), (vec!["a", "b"], Some(CloseReason::Preferred)));
    // Already taken: only the backend sees the cancel flag.
    let responder = Arc::clone(&batch.requests[0].responder);
    responder.cancel_token.cancel();
    assert!(responder.cancel_token.is_cancelled() && !responder.is_finished());
}

#[test]
fn queue_timeout_refuses_while_every_instance_is_busy() {
    let policy = QueuePolicy { timeout_us: 20_000, ..Default::default() };
    let settings = DynamicSettings { default_policy: policy, ..batching(&[8], 0) };
    let queue = dynamic(settings, 1, false);
    let (late, responses) = request("7");
    queue.submit(late);
    wait_until(|| error(&responses).is_some());
    let want = (Code::Unavailable, "[request id: 7] Request timeout expired".to_owned());
    assert_eq!(error(&responses), Some(want));
}

#[test]
fn cancel_or_timeout_may_complete_the_batch_behind() {
    let policy =
        QueuePolicy { timeout_us: 3_600_000_000, allow_override: true, ..Default::default() };
    let hour = batching(&[4, 8], 3_600_000 * MS);
    let queue = dynamic(DynamicSettings { default_policy: policy, ..hour }, 1, false);
    let worker = serve(&queue, 0);
    let asleep = || queue.has_idle_instance();
    let rows = |id: &str, rows, timeout_us| {
        let (mut request, _, responses) = request_for(&signature(&[2], 8), id, rows);
        request.timeout_us = timeout_us;
        let responder = Arc::clone(&request.responder);
        queue.submit(request);
        (responder, responses)
    };
    // 1 + 2 + 3 rows are not a preferred size; without the request of two rows they are four.
    for (number, late_us) in [(0, 0), (1, 30_000)] {
        rows(&format!("a{number}"), 1, 0);
        let (gone, _) = rows(&format!("gone{number}"), 2, late_us);
        let (_, responses) = rows(&format!("b{number}"), 3, 0);
        wait_until(asleep);
        if late_us == 0 {
            gone.cancel_token.cancel();
        }
        wait_until(|| !responses.lock().is_empty());
    }
    queue.close();
    assert_eq!(worker.join().unwrap(), [["a0", "b0"], ["a1", "b1"]]);
}

#[test]
fn timer_interval_has_a_lower_limit() {
    let settings = SequenceSettings {
        instances: 1,
        slots: 4,
        idle_ns: 1,
        strategy: SequenceStrategy::Direct { delay_ns: 0, min_ready: 0 },
    };
    let policy = SchedulingPolicy::Sequence(settings, Box::default());
    let queue = RequestQueue::new(policy, &signature(&[2], 8), 1, false, DeadlineTimer::leak());
    let (mut begin, _) = request("begin");
    begin.sequence = RequestSequence { id: CorrelationId::Number(1), start: true, end: false };
    queue.submit(begin);
    // Its request waits, so the sequence is not idle and its deadline is put off each time.
    let before = now_ns();
    let due = |queue: &RequestQueue| queue.lock().batcher.next_deadline();
    let (mut last, mut calls) = (due(&queue), 0);
    while now_ns() < before + 50 * MS {
        let now = due(&queue);
        calls += u64::from(now != last);
        last = now;
    }
    let most = (now_ns() - before) / MIN_TIMER_INTERVAL_NS + 2;
    assert!(calls <= most, "{calls} of {most}");
    assert_eq!(queue.waiting(), 1);
    queue.close();
}
