//! Unit tests of `shutdown.rs`.

use crate::batcher::settings::{SequenceSettings, SequenceStrategy};
use crate::queue::testing::{MS, batching, dynamic, error, request, serve, wait_until};
use crate::queue::{RequestQueue, SchedulingPolicy};
use trtserver_base::error::{Code, Error};
use trtserver_base::timer::DeadlineTimer;
use trtserver_request::testing::{RecordedResponses, signature};
use trtserver_request::{CorrelationId, RequestSequence};

/// Two instances with one sequence slot each.
fn sequences() -> SchedulingPolicy {
    let settings = SequenceSettings {
        instances: 2,
        slots: 1,
        idle_ns: u64::MAX,
        strategy: SequenceStrategy::Direct { delay_ns: 0, min_ready: 0 },
    };
    SchedulingPolicy::Sequence(settings, Box::default())
}

#[test]
fn out_of_service_fails_waiting_and_later_requests() {
    for policy in [SchedulingPolicy::Dynamic(batching(&[8], 3_600_000 * MS)), sequences()] {
        let queue = RequestQueue::new(policy, &signature(&[2], 8), 2, false, DeadlineTimer::leak());
        let responses: Vec<RecordedResponses> = (1..7)
            .map(|i| {
                let (mut request, responses) = request("");
                request.sequence =
                    RequestSequence { id: CorrelationId::Number(i), start: true, end: false };
                queue.submit(request);
                responses
            })
            .collect();
        let other = serve(&queue, 1);
        queue.take_out_of_service();
        other.join().unwrap();
        let (late, late_responses) = request("");
        queue.submit(late);
        assert!(error(&late_responses).unwrap().1.contains("'m' is out of service"));
        assert_eq!(queue.waiting(), 0);
        assert!(responses.iter().all(|responses| responses.lock().len() == 1));
    }
}

#[test]
fn instances_are_added_and_removed_while_requests_are_executed() {
    let queue = dynamic(batching(&[1], 0), 1, false);
    let first = serve(&queue, 0);
    let responses = std::thread::scope(|scope| {
        let sent = scope.spawn(|| {
            let send = |_| {
                let (request, responses) = request("");
                queue.submit(request);
                responses
            };
            (0..2000).map(send).collect::<Vec<_>>()
        });
        for _ in 0..50 {
            // Numbers are used again when the threads have ended.
            let added = [1, 2].map(|instance| {
                queue.add_instance(instance);
                serve(&queue, instance)
            });
            [2, 1].iter().for_each(|instance| queue.remove_instance(*instance));
            added.into_iter().for_each(|thread| drop(thread.join().unwrap()));
        }
        sent.join().unwrap()
    });
    wait_until(|| responses.iter().all(|responses| responses.lock().len() == 1));
    assert!(responses.iter().all(|responses| error(responses).is_none()));
    queue.close();
    first.join().unwrap();
}

#[test]
fn retired_instance_takes_no_batch_and_the_last_one_ends_service() {
    let queue = dynamic(batching(&[1], 0), 2, false);
    let instances = [serve(&queue, 0), serve(&queue, 1)];
    let [first, second] = instances;
    assert!(!queue.retire(0, &Error::unavailable("the first")));
    assert!(first.join().unwrap().is_empty());
    assert!(!queue.retire(0, &Error::unavailable("again")));
    let (next, responses) = request("");
    queue.submit(next);
    wait_until(|| responses.lock().len() == 1);
    assert_eq!(error(&responses), None);
    assert!(queue.retire(1, &Error::unavailable("the last")));
    second.join().unwrap();
    let (late, responses) = request("");
    queue.submit(late);
    assert_eq!(error(&responses), Some((Code::Unavailable, "the last".into())));
}

#[test]
fn retired_instance_with_sequences_ends_service() {
    let queue =
        RequestQueue::new(sequences(), &signature(&[2], 8), 2, false, DeadlineTimer::leak());
    let instances = [serve(&queue, 0), serve(&queue, 1)];
    assert!(queue.retire(0, &Error::unavailable("gone")));
    instances.into_iter().for_each(|instance| drop(instance.join().unwrap()));
    assert!(queue.is_closed());
}
