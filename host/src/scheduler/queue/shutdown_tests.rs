//! Unit tests of `shutdown.rs`.

use crate::request::testing::{RecordedResponses, signature};
use crate::request::{CorrelationId, Sequence};
use crate::scheduler::batcher::settings::{SequenceSettings, Strategy};
use crate::scheduler::queue::testing::{MS, batching, error, request, serve};
use crate::scheduler::queue::{Queue, SchedulingPolicy};

#[test]
fn out_of_service_fails_waiting_and_later_requests() {
    let settings = SequenceSettings {
        instances: 2,
        slots: 1,
        idle_ns: u64::MAX,
        strategy: Strategy::Direct { delay_ns: 0, min_ready: 0 },
    };
    let sequences = SchedulingPolicy::Sequence(settings, Box::default());
    for policy in [SchedulingPolicy::Dynamic(batching(&[8], 3_600_000 * MS)), sequences] {
        let queue = Queue::new(policy, &signature(&[2], 8), 2, false);
        let responses: Vec<RecordedResponses> = (1..7)
            .map(|i| {
                let (mut request, responses) = request("");
                request.sequence =
                    Sequence { id: CorrelationId::Number(i), start: true, end: false };
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
