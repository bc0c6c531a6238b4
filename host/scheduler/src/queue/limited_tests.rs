//! Unit tests of `limited.rs`: queues whose instances need resources, with real threads.

use super::super::testing::{batching, dynamic, error, ids, request, serve, wait_until};
use super::super::{RequestBatch, RequestQueue};
use crate::batcher::settings::DynamicSettings;
use crate::limiter::{InstanceLimits, LimitedName, LimiterMember, RateLimiter, ResourceDemand};
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::Code;
use trtserver_base::stats::{BatchExecution, ExecutionHold};

/// Limits instance `instance` of a queue to one `r`.
fn limit(
    limiter: &Arc<RateLimiter>,
    queue: &Arc<RequestQueue>,
    model: &str,
    instance: usize,
) -> Arc<LimiterMember> {
    let demand = ResourceDemand { name: "r".to_owned(), count: 1, global: true };
    let limits = InstanceLimits { resources: vec![demand], priority: 1 };
    let instance_name = format!("{model}_{instance}");
    let name = LimitedName { model: model.into(), version: 1, instance: instance_name };
    let limit = Arc::new(limiter.admit(name, &limits, -1).unwrap().unwrap());
    queue.limit_instance(instance, &limit);
    limit
}

fn is_waiting(limiter: &RateLimiter) -> bool {
    limiter.report().instances.iter().any(|instance| instance.waiting_ns.is_some())
}

/// Responds to all requests of `batch`, whose resources are given back by the next `take`.
fn execute(batch: &mut RequestBatch) {
    for request in batch.requests.drain(..) {
        let hold = batch.grant.clone().map(|grant| grant as Arc<dyn ExecutionHold>);
        let execution = BatchExecution::new(0, 1, 1, now_ns(), &Default::default()).holding(hold);
        request.responder.executed_in(Arc::new(execution));
        request.responder.finish(Ok(None)).unwrap();
    }
}

#[test]
fn queues_take_turns() {
    let limiter = RateLimiter::new(Vec::new());
    let queues = ["a", "b"].map(|model| {
        let queue = dynamic(DynamicSettings::default(), 1, false);
        (limit(&limiter, &queue, model, 0), queue)
    });
    let responses: Vec<_> = (0..40)
        .map(|i| {
            let (request, responses) = request(&i.to_string());
            queues[i % 2].1.submit(request);
            responses
        })
        .collect();
    let executing = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let threads = queues.each_ref().map(|(_, queue)| {
        let (queue, executing) = (Arc::clone(queue), Arc::clone(&executing));
        std::thread::spawn(move || {
            let mut batch = RequestBatch::default();
            while queue.take(0, &mut batch) {
                let before = executing.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                assert_eq!(before, 0, "two hold the resource");
                executing.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                execute(&mut batch);
            }
        })
    });
    wait_until(|| responses.iter().all(|r| !r.lock().is_empty()));
    queues.iter().for_each(|(_, queue)| queue.close());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let report = limiter.report();
    assert_eq!(report.resources[0].in_use, 0);
    assert!(report.instances.iter().all(|instance| instance.executions == 20), "{report:?}");
}

#[test]
fn requests_that_wait_for_a_grant_can_join_leave_and_be_refused() {
    let limiter = RateLimiter::new(Vec::new());
    let busy = dynamic(DynamicSettings::default(), 1, false);
    let _busy_limit = limit(&limiter, &busy, "busy", 0);
    let queue = dynamic(batching(&[], 0), 1, false);
    let _limit = limit(&limiter, &queue, "m", 0);
    let (first, first_responses) = request("first");
    busy.submit(first);
    let mut executing = RequestBatch::default();
    assert!(busy.take(0, &mut executing));

    // All but the cancelled one are in one batch once there is a grant.
    let (cancelled, cancelled_responses) = request("cancelled");
    let token = Arc::clone(&cancelled.responder);
    queue.submit(cancelled);
    let thread = serve(&queue, 0);
    wait_until(|| is_waiting(&limiter));
    let others = ["a", "b", "c"].map(|id| {
        let (request, responses) = request(id);
        queue.submit(request);
        responses
    });
    token.cancel_token.cancel();
    wait_until(|| error(&cancelled_responses).is_some());
    assert_eq!(error(&cancelled_responses).unwrap().0, Code::Cancelled);
    execute(&mut executing);
    assert!(!first_responses.lock().is_empty());
    busy.close();
    assert!(!busy.take(0, &mut executing));
    wait_until(|| others.iter().all(|responses| !responses.lock().is_empty()));

    // The only request leaves: the instance does not wait any more.
    let (first, _first_responses) = request("first");
    let busy = dynamic(DynamicSettings::default(), 1, false);
    let _busy_limit = limit(&limiter, &busy, "busy", 0);
    busy.submit(first);
    wait_until(|| limiter.report().resources[0].in_use == 0);
    assert!(busy.take(0, &mut executing));
    assert_eq!(ids(&executing), ["first"]);
    let (last, last_responses) = request("last");
    let token = Arc::clone(&last.responder);
    queue.submit(last);
    wait_until(|| is_waiting(&limiter));
    token.cancel_token.cancel();
    wait_until(|| !is_waiting(&limiter));
    assert_eq!(error(&last_responses).unwrap().0, Code::Cancelled);
    queue.close();
    let batches = thread.join().unwrap();
    assert_eq!(batches, [vec!["a", "b", "c"]]);
    execute(&mut executing);
}

#[test]
fn closed_and_retired_instances_end_while_they_wait() {
    let limiter = RateLimiter::new(Vec::new());
    let busy = dynamic(DynamicSettings::default(), 1, false);
    let _busy_limit = limit(&limiter, &busy, "busy", 0);
    busy.submit(request("first").0);
    let mut executing = RequestBatch::default();
    assert!(busy.take(0, &mut executing));
    let queue = dynamic(DynamicSettings::default(), 1, false);
    let _limit = limit(&limiter, &queue, "m", 0);
    let (waiting, responses) = request("waiting");
    queue.submit(waiting);
    let thread = serve(&queue, 0);
    wait_until(|| is_waiting(&limiter));
    assert!(queue.retire(0, &trtserver_base::error::Error::unavailable("broken")));
    assert!(thread.join().unwrap().is_empty());
    assert_eq!(error(&responses).unwrap().1, "broken");
    assert!(!is_waiting(&limiter));
    execute(&mut executing);
}

#[test]
fn copy_thread_takes_no_batch_of_a_limited_instance() {
    let limiter = RateLimiter::new(Vec::new());
    let queue = dynamic(DynamicSettings::default(), 1, false);
    let _limit = limit(&limiter, &queue, "m", 0);
    queue.begin_standby(0);
    assert_eq!(queue.lock().standby.first_open(), None);
}
