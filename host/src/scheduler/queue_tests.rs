//! Queues with real threads and clocks: who is woken, who leaves, in which order answers go out.

use super::super::batcher::settings::{Batching, QueuePolicy, Strategy};
use super::*;
use crate::clock::now_ns;
use crate::error::{Code, Error, Result};
use crate::request::testing::{RecordedResponses, request_for, signature};
use crate::request::{CorrelationId, ImplicitState, InferResponse, ResponseSink, Sequence};
use crate::request::{DType, Role, TensorSpec};
use crate::stats::{CLOSE_REASONS, Execution};
use bytes::Bytes;
use std::sync::mpsc::channel;
use std::time::Instant;

const MS: u64 = 1_000_000;

fn batching(preferred: &[u32], delay_ns: u64) -> DynamicSettings {
    let batching = Batching { max_rows: 8, preferred: preferred.into(), delay_ns };
    DynamicSettings { batching: Some(batching), ..Default::default() }
}

fn shared(settings: DynamicSettings, instances: usize, in_order: bool) -> Arc<Queue> {
    Queue::new(SchedulingPolicy::Dynamic(settings), &signature(&[2], 8), instances, in_order)
}

fn request(id: &str) -> (InferRequest, RecordedResponses) {
    let (request, _, told) = request_for(&signature(&[2], 8), id, 1);
    (request, told)
}

fn ids(batch: &Batch) -> Vec<&str> {
    batch.requests.iter().map(|r| &*r.id).collect()
}

fn error(told: &RecordedResponses) -> Option<(Code, String)> {
    let told = told.lock();
    told.first().and_then(|(r, _)| r.as_ref().err().map(|e| (e.code, e.message.clone())))
}

#[test]
fn reasons_have_the_names_that_metrics_show() {
    use CloseReason::{Alone, Delay, Full, Preferred, Priority, Sequence, Shape};
    for closed in [Full, Preferred, Delay, Alone, Shape, Priority, Sequence] {
        assert_eq!(CLOSE_REASONS[closed as usize], format!("{closed:?}").to_lowercase());
    }
}

#[test]
fn first_come_first_served_until_closed_and_empty() {
    let queue = shared(DynamicSettings::default(), 1, false);
    for id in ["a", "b", "c"] {
        queue.submit(request(id).0);
    }
    assert_eq!(queue.waiting(), 3);
    let mut batch = Batch::default();
    assert!(queue.take(0, &mut batch));
    assert_eq!((ids(&batch), batch.close_reason), (vec!["a"], Some(CloseReason::Alone)));
    queue.close();
    let (late, told) = request("late");
    queue.submit(late);
    assert!(error(&told).unwrap().1.contains("is stopping"));
    for id in ["b", "c"] {
        assert!(queue.take(0, &mut batch));
        assert_eq!(ids(&batch), [id]);
    }
    assert!(!queue.take(0, &mut batch));
}

#[test]
fn which_sequences_have_not_ended() {
    let sequence = |id: &str, start, end| {
        let id = CorrelationId::Text(id.into());
        Sequence { id, start, end }
    };
    let queue = shared(DynamicSettings::default(), 1, false);
    assert!(queue.active_sequences() == 0 && !queue.has_sequence(&sequence("a", false, false)));

    let strategy = Strategy::Direct { delay_ns: 0, min_ready: 0 };
    let settings = SequenceSettings { instances: 1, slots: 2, idle_ns: u64::MAX, strategy };
    let policy = SchedulingPolicy::Sequence(settings, Box::default());
    let queue = Queue::new(policy, &signature(&[2], 2), 1, false);
    let submit = |sequence: Sequence| {
        let (mut request, told) = request("1");
        request.sequence = sequence;
        queue.submit(request);
        assert!(told.lock().is_empty());
    };
    submit(sequence("a", true, false));
    submit(sequence("b", true, true));
    assert_eq!(queue.active_sequences(), 1);
    assert!(queue.has_sequence(&sequence("a", false, true)));
    assert!(!queue.has_sequence(&sequence("b", false, true)), "its END has arrived");
    assert!(!queue.has_sequence(&Sequence::default()));
    submit(sequence("a", false, true));
    assert_eq!((queue.active_sequences(), queue.waiting()), (0, 3));
}

#[test]
fn a_cancelled_request_leaves_at_once_and_its_place_is_filled() {
    let queue = shared(batching(&[2], 3_600_000 * MS), 1, false);
    let (gone, told) = request("gone");
    let reply = Arc::clone(&gone.responder);
    queue.submit(gone);
    reply.cancel_token.cancel();
    assert_eq!(queue.waiting(), 0);
    assert_eq!(error(&told).unwrap().0, Code::Cancelled);
    let (before, told) = request("before");
    before.responder.cancel_token.cancel();
    queue.submit(before);
    assert_eq!((queue.waiting(), error(&told).unwrap().0), (0, Code::Cancelled));
    queue.submit(request("a").0);
    queue.submit(request("b").0);
    let mut batch = Batch::default();
    assert!(queue.take(0, &mut batch));
    assert_eq!((ids(&batch), batch.close_reason), (vec!["a", "b"], Some(CloseReason::Preferred)));
    // Taken: nothing is left to take back, the plugin sees the word.
    let reply = Arc::clone(&batch.requests[0].responder);
    reply.cancel_token.cancel();
    assert!(reply.cancel_token.is_cancelled() && !reply.is_finished());
}

#[test]
fn a_timeout_rings_while_every_instance_is_busy() {
    let policy = QueuePolicy { timeout_us: 20_000, ..Default::default() };
    let settings = DynamicSettings { default_policy: policy, ..batching(&[8], 0) };
    let queue = shared(settings, 1, false);
    let (late, told) = request("7");
    queue.submit(late);
    let start = Instant::now();
    while error(&told).is_none() && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let want = (Code::Unavailable, "[request id: 7] Request timeout expired".to_owned());
    assert_eq!(error(&told), Some(want));
}

/// Takes from the queue and answers; gives what was executed together.
fn serve(queue: &Arc<Queue>, instance: usize) -> std::thread::JoinHandle<Vec<Vec<String>>> {
    let queue = Arc::clone(queue);
    std::thread::spawn(move || {
        let (mut batch, mut batches) = (Batch::default(), Vec::new());
        while queue.take(instance, &mut batch) {
            batches.push(batch.requests.iter().map(|r| r.id.clone()).collect());
            for request in batch.requests.drain(..) {
                let execution = Execution::new(0, 1, 1, now_ns(), &Default::default());
                request.responder.executed_in(Arc::new(execution));
                if instance == 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
                let _ = request.responder.finish(Ok(None));
            }
        }
        batches
    })
}

/// Until `done`; a minute is more than anything takes here.
fn wait(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn who_leaves_may_let_the_others_go() {
    let policy =
        QueuePolicy { timeout_us: 3_600_000_000, allow_override: true, ..Default::default() };
    let hour = batching(&[4, 8], 3_600_000 * MS);
    let queue = shared(DynamicSettings { default_policy: policy, ..hour }, 1, false);
    let worker = serve(&queue, 0);
    let asleep = || queue.lock().idle.len() == 1;
    let rows = |id: &str, rows, timeout_us| {
        let (mut request, _, told) = request_for(&signature(&[2], 8), id, rows);
        request.timeout_us = timeout_us;
        let reply = Arc::clone(&request.responder);
        queue.submit(request);
        (reply, told)
    };
    // One row, two and three are no preferred size; without the two there are four.
    for (number, late_us) in [(0, 0), (1, 30_000)] {
        rows(&format!("a{number}"), 1, 0);
        let (gone, _) = rows(&format!("gone{number}"), 2, late_us);
        let (_, told) = rows(&format!("b{number}"), 3, 0);
        wait(asleep);
        if late_us == 0 {
            gone.cancel_token.cancel();
        }
        wait(|| !told.lock().is_empty());
    }
    queue.close();
    assert_eq!(worker.join().unwrap(), [["a0", "b0"], ["a1", "b1"]]);
}

#[test]
fn nobody_waits_for_an_instance_that_is_gone() {
    let settings = SequenceSettings {
        instances: 2,
        slots: 1,
        idle_ns: u64::MAX,
        strategy: Strategy::Direct { delay_ns: 0, min_ready: 0 },
    };
    let sequences = SchedulingPolicy::Sequence(settings, Box::default());
    for policy in [SchedulingPolicy::Dynamic(batching(&[8], 3_600_000 * MS)), sequences] {
        let queue = Queue::new(policy, &signature(&[2], 8), 2, false);
        let told: Vec<RecordedResponses> = (1..7)
            .map(|i| {
                let (mut request, told) = request("");
                request.sequence =
                    Sequence { id: CorrelationId::Number(i), start: true, end: false };
                queue.submit(request);
                told
            })
            .collect();
        let other = serve(&queue, 1);
        queue.give_up();
        other.join().unwrap();
        let (late, late_told) = request("");
        queue.submit(late);
        assert!(error(&late_told).unwrap().1.contains("'m' is out of service"));
        assert_eq!(queue.waiting(), 0);
        assert!(told.iter().all(|told| told.lock().len() == 1));
    }
}

#[test]
fn sleeping_instances_are_woken_and_nothing_is_lost() {
    for settings in [DynamicSettings::default(), batching(&[4], MS), batching(&[], 0)] {
        let queue = shared(settings, 3, false);
        let workers: Vec<_> = (0..3).map(|i| serve(&queue, i)).collect();
        let callers: Vec<_> = (0..4)
            .map(|c| {
                let queue = Arc::clone(&queue);
                std::thread::spawn(move || {
                    for i in 0..50 {
                        let (request, told) = request(&format!("{c}-{i}"));
                        queue.submit(request);
                        while i % 5 == 0 && told.lock().is_empty() {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        callers.into_iter().for_each(|c| c.join().unwrap());
        queue.close();
        let batches: Vec<_> = workers.into_iter().flat_map(|w| w.join().unwrap()).collect();
        let mut all: Vec<_> = batches.concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 200);
        assert!(batches.iter().all(|b| b.len() <= 8));
    }
}

/// Tells its id.
struct Tell(u32, std::sync::mpsc::Sender<u32>);

impl ResponseSink for Tell {
    fn send(&mut self, _: Result<Option<InferResponse>>, _: bool) {
        let _ = self.1.send(self.0);
    }
}

#[test]
fn answers_leave_in_order_of_arrival() {
    let queue = shared(DynamicSettings::default(), 3, true);
    let (sender, told) = channel();
    for i in 0..60 {
        let (request, _) = request(&i.to_string());
        request.responder.wrap_sink(|_| Tell(i, sender.clone()).into());
        queue.submit(request);
    }
    // The first instance is slow.
    let workers: Vec<_> = (0..3).map(|i| serve(&queue, i)).collect();
    queue.close();
    workers.into_iter().for_each(|w| drop(w.join().unwrap()));
    assert_eq!(told.try_iter().collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
}

#[test]
fn the_shortest_idle_limit_does_not_ring_all_the_time() {
    let settings = SequenceSettings {
        instances: 1,
        slots: 4,
        idle_ns: 1,
        strategy: Strategy::Direct { delay_ns: 0, min_ready: 0 },
    };
    let policy = SchedulingPolicy::Sequence(settings, Box::default());
    let queue = Queue::new(policy, &signature(&[2], 8), 1, false);
    let (mut begin, _) = request("begin");
    begin.sequence = Sequence { id: CorrelationId::Number(1), start: true, end: false };
    queue.submit(begin);
    // It waits, so its sequence is not silent, and is looked at again and again.
    let before = now_ns();
    let due = |queue: &Queue| queue.lock().batcher.next_deadline();
    let (mut last, mut rings) = (due(&queue), 0);
    while now_ns() < before + 50 * MS {
        let now = due(&queue);
        rings += u64::from(now != last);
        last = now;
    }
    let most = (now_ns() - before) / MIN_TIMER_INTERVAL_NS + 2;
    assert!(rings <= most, "{rings} of {most}");
    assert_eq!(queue.waiting(), 1);
    queue.close();
}

fn flag(input: usize) -> Option<super::super::Flag> {
    let no_yes = [0i32, 1].map(|v| Bytes::copy_from_slice(&v.to_le_bytes()));
    Some(super::super::Flag { input, dtype: DType::Int32, no_yes })
}

#[test]
fn sequences_get_their_controls_and_gaps_are_filled() {
    let mut declared = Arc::into_inner(signature(&[2], 8)).unwrap();
    let control =
        |name| TensorSpec { role: Role::Control, ..TensorSpec::new(name, DType::Int32, &[1]) };
    declared.hidden = vec![control("START"), control("READY")];
    let declared = Arc::new(declared);
    let settings = SequenceSettings {
        instances: 1,
        slots: 4,
        idle_ns: u64::MAX,
        strategy: Strategy::Direct { delay_ns: 0, min_ready: 0 },
    };
    let controls = Controls { start: flag(1), ready: flag(2), ..Default::default() };
    let queue =
        Queue::new(SchedulingPolicy::Sequence(settings, Box::new(controls)), &declared, 1, false);
    let step = |id: u64, start| {
        let (mut request, _, told) = request_for(&declared, &id.to_string(), 1);
        request.sequence = Sequence { id: CorrelationId::Number(id), start, end: false };
        queue.submit(request);
        told
    };
    let refused = step(9, false);
    let text = "inference request for sequence 9 to model 'm' must specify the START flag on the first \
                request of the sequence";
    assert_eq!(error(&refused), Some((Code::InvalidArg, text.to_owned())));
    let mut batch = Batch::default();
    step(1, true);
    step(2, true);
    assert!(queue.take(0, &mut batch));
    assert_eq!(ids(&batch), ["1", "2"]);
    let told = step(2, false);
    assert!(queue.take(0, &mut batch));
    assert_eq!((ids(&batch), batch.close_reason), (vec!["", "2"], Some(CloseReason::Sequence)));
    let flags = |r: &InferRequest| {
        r.inputs[1..].iter().map(|i| (i.index, i.shape.to_vec(), i.data[0])).collect::<Vec<_>>()
    };
    assert_eq!(flags(&batch.requests[0]), [(1, vec![1, 1], 0), (2, vec![1, 1], 0)]);
    assert_eq!(flags(&batch.requests[1]), [(1, vec![1, 1], 0), (2, vec![1, 1], 1)]);
    assert_eq!(batch.requests[0].inputs[0].data, vec![0; 8]);
    assert!(!batch.requests[0].context().is_counted());
    // The answer waits for the null request's, whose error is everybody's.
    batch.requests[1].responder.finish(Ok(None)).unwrap();
    assert!(told.lock().is_empty());
    batch.requests[0].responder.finish(Err(Error::internal("null"))).unwrap();
    assert_eq!(error(&told).unwrap().1, "null");
}

#[test]
fn a_start_forgets_the_states_of_before() {
    let memory = ImplicitState::default();
    let value = |b: u8| crate::request::implicit_state::StateTensor {
        shape: [1][..].into(),
        data: Bytes::copy_from_slice(&[b]),
    };
    let mut declared = Arc::into_inner(signature(&[2], 0)).unwrap();
    declared.states = vec![crate::request::implicit_state::StateSpec {
        input: 1,
        output: "S".into(),
        dtype: DType::Uint8,
        dims: vec![1],
        initial: value(7),
    }];
    let read = |memory: &ImplicitState| {
        let mut inputs = Vec::new();
        memory.inputs(&declared, &mut inputs);
        inputs[0].data[0]
    };
    assert_eq!(read(&memory), 7);
    memory.store([(0, value(9))]);
    assert_eq!(read(&memory), 9);
    memory.reset();
    assert_eq!(read(&memory), 7);
}

/// An instance that is lent, and what it executed on which thread.
struct Borrowable {
    queue: Arc<Queue>,
    quick: bool,
    ran: Mutex<Vec<(String, std::thread::ThreadId)>>,
}

impl Borrowable {
    fn run(&self, batch: &mut Batch) {
        for request in batch.requests.drain(..) {
            self.ran.lock().push((request.id.clone(), std::thread::current().id()));
            let _ = request.responder.finish(Ok(None));
        }
    }
}

impl Lendable for Borrowable {
    fn is_quick(&self) -> bool {
        self.quick
    }

    fn work(&self, now: u64) {
        let mut batch = Batch::default();
        while self.queue.take_lent(0, now, &mut batch) {
            assert!(batch.requests[0].id != "panics", "as told");
            if batch.requests[0].id == "first" {
                // Others bring requests meanwhile; whoever has borrowed the instance finds them.
                let queue = Arc::clone(&self.queue);
                std::thread::spawn(move || queue.submit(request("meanwhile").0)).join().unwrap();
            }
            let owes = batch.requests[0].id == "owes";
            let last = owes || batch.requests[0].id == "last";
            if last {
                self.queue.submit(request("left").0);
            }
            self.run(&mut batch);
            if last {
                self.queue.give_back(0, owes);
                return;
            }
        }
    }

    fn wait_for_room(&self) {
        let what = format!("room for {}", self.queue.waiting());
        self.ran.lock().push((what, std::thread::current().id()));
    }
}

/// An instance whose own thread sleeps.
fn lent(quick: bool) -> (Arc<Queue>, Arc<Borrowable>, std::thread::JoinHandle<()>) {
    let queue = shared(DynamicSettings::default(), 1, false);
    let ran = Mutex::default();
    let instance = Arc::new(Borrowable { queue: Arc::clone(&queue), quick, ran });
    queue.lend(0, Arc::downgrade(&instance) as Weak<dyn Lendable>);
    let own = std::thread::spawn({
        let instance = Arc::clone(&instance);
        move || {
            let mut batch = Batch::default();
            while instance.queue.take(0, &mut batch) {
                instance.run(&mut batch);
            }
        }
    });
    wait(|| !queue.lock().idle.is_empty());
    (queue, instance, own)
}

#[test]
fn what_a_borrower_left_owed_is_waited_for_before_more_is_taken() {
    let (queue, instance, own) = lent(true);
    borrower::Borrowers::new(2, || {}).join();
    queue.submit(request("owes").0);
    queue.close();
    own.join().unwrap();
    let ran = instance.ran.lock();
    let ran: Vec<_> = ran.iter().map(|(what, _)| &**what).collect();
    assert_eq!(ran, ["owes", "room for 1", "left"]);
}

#[test]
fn an_instance_whose_borrower_panics_is_given_up() {
    let (queue, _, own) = lent(true);
    borrower::Borrowers::new(2, || {}).join();
    let (panics, told) = request("panics");
    let submit = std::panic::AssertUnwindSafe(|| queue.submit(panics));
    assert!(std::panic::catch_unwind(submit).is_err());
    own.join().unwrap();
    assert_eq!(error(&told).unwrap().0, Code::Internal);
    let (late, told) = request("late");
    queue.submit(late);
    assert!(error(&told).unwrap().1.contains("out of service"));
    assert!(borrower::turn(1).is_some(), "the turn has ended");
}

#[test]
fn who_brings_a_request_to_a_quick_instance_executes_it() {
    for quick in [true, false] {
        let (queue, instance, own) = lent(quick);
        let asleep = |queue: &Queue| wait(|| !queue.lock().idle.is_empty());
        // Of no group: it may not execute.
        let stranger = Arc::clone(&queue);
        std::thread::spawn(move || stranger.submit(request("stranger's").0)).join().unwrap();
        asleep(&queue);
        borrower::Borrowers::new(2, || {}).join();
        for id in ["first", "last"] {
            queue.submit(request(id).0);
            asleep(&queue);
        }
        queue.close();
        let (me, its) = (std::thread::current().id(), own.thread().id());
        own.join().unwrap();
        let ran = instance.ran.lock();
        let ran: Vec<_> = ran.iter().map(|(id, thread)| (&**id, *thread)).collect();
        if quick {
            let want = [
                ("stranger's", its),
                ("first", me),
                ("meanwhile", me),
                ("last", me),
                ("left", its),
            ];
            assert_eq!(ran, want);
        } else {
            assert_eq!(ran, [("stranger's", its), ("first", its), ("last", its)]);
        }
    }
}
