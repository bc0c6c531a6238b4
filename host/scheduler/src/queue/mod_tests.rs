//! Unit tests of the queue as a whole: order, sequences, wake-ups, response order, controls.

use super::testing::{MS, batching, dynamic, error, ids, request, serve, wait_until};
use super::*;
use crate::SequenceControls;
use crate::batcher::CloseReason;
use crate::batcher::settings::SequenceStrategy;
use crate::batcher::settings::{DynamicSettings, SequenceSettings};
use bytes::Bytes;
use std::sync::mpsc::channel;
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::stats::CLOSE_REASONS;
use trtserver_base::timer::DeadlineTimer;
use trtserver_request::testing::{request_for, signature};
use trtserver_request::{
    CorrelationId, DType, ImplicitState, InferResponse, InputRole, ResponseSink, TensorSpec,
};

#[test]
fn close_reasons_have_the_names_of_the_metrics() {
    use CloseReason::{Alone, Delay, Full, Preferred, Priority, Sequence, Shape};
    for closed in [Full, Preferred, Delay, Alone, Shape, Priority, Sequence] {
        assert_eq!(CLOSE_REASONS[closed as usize], format!("{closed:?}").to_lowercase());
    }
}

#[test]
fn serves_in_order_of_arrival_until_closed_and_empty() {
    let queue = dynamic(DynamicSettings::default(), 1, false);
    for id in ["a", "b", "c"] {
        queue.submit(request(id).0);
    }
    assert_eq!(queue.waiting(), 3);
    let mut batch = RequestBatch::default();
    assert!(queue.take(0, &mut batch));
    assert_eq!((ids(&batch), batch.close_reason), (vec!["a"], Some(CloseReason::Alone)));
    queue.close();
    let (late, responses) = request("late");
    queue.submit(late);
    assert!(error(&responses).unwrap().1.contains("is stopping"));
    for id in ["b", "c"] {
        assert!(queue.take(0, &mut batch));
        assert_eq!(ids(&batch), [id]);
    }
    assert!(!queue.take(0, &mut batch));
}

#[test]
fn active_sequences_are_those_whose_end_has_not_arrived() {
    let sequence = |id: &str, start, end| {
        let id = CorrelationId::Text(id.into());
        RequestSequence { id, start, end }
    };
    let queue = dynamic(DynamicSettings::default(), 1, false);
    assert!(queue.active_sequences() == 0 && !queue.has_sequence(&sequence("a", false, false)));

    let strategy = SequenceStrategy::Direct { delay_ns: 0, min_ready: 0 };
    let settings = SequenceSettings { instances: 1, slots: 2, idle_ns: u64::MAX, strategy };
    let policy = SchedulingPolicy::Sequence(settings, Box::default());
    let queue = RequestQueue::new(policy, &signature(&[2], 2), 1, false, DeadlineTimer::leak());
    let submit = |sequence: RequestSequence| {
        let (mut request, responses) = request("1");
        request.sequence = sequence;
        queue.submit(request);
        assert!(responses.lock().is_empty());
    };
    submit(sequence("a", true, false));
    submit(sequence("b", true, true));
    assert_eq!(queue.active_sequences(), 1);
    assert!(queue.has_sequence(&sequence("a", false, true)));
    assert!(!queue.has_sequence(&sequence("b", false, true)), "its END has arrived");
    assert!(!queue.has_sequence(&RequestSequence::default()));
    submit(sequence("a", false, true));
    assert_eq!((queue.active_sequences(), queue.waiting()), (0, 3));
}

#[test]
fn batch_is_taken_ahead_unless_another_instance_could_begin_it() {
    let queue = dynamic(DynamicSettings::default(), 2, false);
    let (mut batch, mut next) = (RequestBatch::default(), RequestBatch::default());
    for id in ["a", "b", "c", "d"] {
        queue.submit(request(id).0);
    }
    assert!(queue.take(0, &mut batch));
    assert!(queue.take_ahead(0, &mut next), "the other instance executes");
    assert_eq!((ids(&batch), ids(&next)), (vec!["a"], vec!["b"]));
    // The other instance has done its work and waits.
    assert!(queue.take(1, &mut batch) && queue.take(1, &mut batch));
    let waiting = std::thread::spawn({
        let queue = Arc::clone(&queue);
        move || queue.take(1, &mut RequestBatch::default())
    });
    wait_until(|| queue.has_idle_instance());
    assert!(!queue.take_ahead(0, &mut next) && next.requests.is_empty());
    queue.close();
    assert!(!waiting.join().unwrap());
    queue.retire(0, &Error::unavailable("broken"));
    assert!(!queue.take_ahead(0, &mut next), "the instance is retired");
}

#[test]
fn every_request_is_executed_once_by_instances_that_sleep_and_wake() {
    for settings in [DynamicSettings::default(), batching(&[4], MS), batching(&[], 0)] {
        let queue = dynamic(settings, 3, false);
        let workers: Vec<_> = (0..3).map(|i| serve(&queue, i)).collect();
        let clients: Vec<_> = (0..4)
            .map(|c| {
                let queue = Arc::clone(&queue);
                std::thread::spawn(move || {
                    for i in 0..50 {
                        let (request, responses) = request(&format!("{c}-{i}"));
                        queue.submit(request);
                        while i % 5 == 0 && responses.lock().is_empty() {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|c| c.join().unwrap());
        queue.close();
        let batches: Vec<_> = workers.into_iter().flat_map(|w| w.join().unwrap()).collect();
        let mut all: Vec<_> = batches.concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 200);
        assert!(batches.iter().all(|b| b.len() <= 8));
    }
}

/// Sends its id.
struct IdSink(u32, std::sync::mpsc::Sender<u32>);

impl ResponseSink for IdSink {
    fn send(&mut self, _: Result<Option<InferResponse>>, _: bool) {
        let _ = self.1.send(self.0);
    }
}

#[test]
fn responses_leave_in_order_of_arrival() {
    let queue = dynamic(DynamicSettings::default(), 3, true);
    let (sender, received) = channel();
    for i in 0..60 {
        let (request, _) = request(&i.to_string());
        request.responder.wrap_sink(|_| IdSink(i, sender.clone()).into());
        queue.submit(request);
    }
    // The first instance is slow.
    let workers: Vec<_> = (0..3).map(|i| serve(&queue, i)).collect();
    queue.close();
    workers.into_iter().for_each(|w| drop(w.join().unwrap()));
    assert_eq!(received.try_iter().collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
}

fn flag(input: usize) -> Option<crate::FlagControl> {
    let false_true = [0i32, 1].map(|v| Bytes::copy_from_slice(&v.to_le_bytes()));
    Some(crate::FlagControl { input, dtype: DType::Int32, false_true })
}

#[test]
fn adds_control_tensors_and_null_requests_to_sequence_batches() {
    let mut declared = Arc::into_inner(signature(&[2], 8)).unwrap();
    let control =
        |name| TensorSpec { role: InputRole::Control, ..TensorSpec::new(name, DType::Int32, &[1]) };
    declared.hidden = vec![control("START"), control("READY")];
    let declared = Arc::new(declared);
    let settings = SequenceSettings {
        instances: 1,
        slots: 4,
        idle_ns: u64::MAX,
        strategy: SequenceStrategy::Direct { delay_ns: 0, min_ready: 0 },
    };
    let controls = SequenceControls { start: flag(1), ready: flag(2), ..Default::default() };
    let queue = RequestQueue::new(
        SchedulingPolicy::Sequence(settings, Box::new(controls)),
        &declared,
        1,
        false,
        DeadlineTimer::leak(),
    );
    let step = |id: u64, start| {
        let (mut request, _, responses) = request_for(&declared, &id.to_string(), 1);
        request.sequence = RequestSequence { id: CorrelationId::Number(id), start, end: false };
        queue.submit(request);
        responses
    };
    let refused = step(9, false);
    let text = "inference request for sequence 9 to model 'm' must specify the START flag on the first \
                request of the sequence";
    assert_eq!(error(&refused), Some((Code::InvalidArg, text.to_owned())));
    let mut batch = RequestBatch::default();
    step(1, true);
    step(2, true);
    assert!(queue.take(0, &mut batch));
    assert_eq!(ids(&batch), ["1", "2"]);
    let responses = step(2, false);
    assert!(queue.take(0, &mut batch));
    assert_eq!((ids(&batch), batch.close_reason), (vec!["", "2"], Some(CloseReason::Sequence)));
    let flags = |r: &InferRequest| {
        r.inputs[1..]
            .iter()
            .map(|i| (i.index, i.shape.to_vec(), i.data.payload()[0]))
            .collect::<Vec<_>>()
    };
    assert_eq!(flags(&batch.requests[0]), [(1, vec![1, 1], 0), (2, vec![1, 1], 0)]);
    assert_eq!(flags(&batch.requests[1]), [(1, vec![1, 1], 0), (2, vec![1, 1], 1)]);
    assert_eq!(*batch.requests[0].inputs[0].data.payload(), vec![0; 8]);
    assert!(!batch.requests[0].context().is_counted());
    // The response waits for the null request's, whose error fails the whole batch.
    batch.requests[1].responder.finish(Ok(None)).unwrap();
    assert!(responses.lock().is_empty());
    batch.requests[0].responder.finish(Err(Error::internal("null"))).unwrap();
    assert_eq!(error(&responses).unwrap().1, "null");
}

#[test]
fn start_resets_sequence_states() {
    let memory = ImplicitState::default();
    let value = |b: u8| trtserver_request::state_spec::StateTensor {
        shape: [1][..].into(),
        data: vec![b].into(),
    };
    let mut declared = Arc::into_inner(signature(&[2], 0)).unwrap();
    declared.states = vec![trtserver_request::state_spec::StateSpec {
        input: 1,
        output: "S".into(),
        dtype: DType::Uint8,
        dims: vec![1],
        initial: value(7),
    }];
    let read = |memory: &ImplicitState| {
        let mut inputs = Vec::new();
        memory.inputs(&declared, &mut inputs);
        inputs[0].data.payload()[0]
    };
    assert_eq!(read(&memory), 7);
    memory.store([(0, value(9))]);
    assert_eq!(read(&memory), 9);
    memory.reset();
    assert_eq!(read(&memory), 7);
}
