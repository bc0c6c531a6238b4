//! Unit tests of `version_cache.rs` with an executor that holds requests until the test ends them.

use super::*;
use crate::benefit::WINDOW;
use bytes::Bytes;
use std::collections::VecDeque;
use trtserver_base::error::{Code, Error};
use trtserver_base::stats::{BatchExecution, VersionStats};
use trtserver_request::memory::{MemoryLocation, OutputMemory, PlacedSlice};
use trtserver_request::testing::{RecordedResponses, TestMemory, placed, request_with, signature};
use trtserver_request::{
    CorrelationId, DType, InferResponse, OutputTensor, RequestContext, RequestedOutput, Responder,
    UsedMemory,
};

/// Holds requests until the test ends them.
#[derive(Clone, Default)]
struct HeldExecutor {
    held: Arc<Mutex<VecDeque<InferRequest>>>,
    /// Fails at once whatever is executed.
    closed: Arc<AtomicBool>,
    ordered: bool,
}

impl RequestExecutor for HeldExecutor {
    fn execute(&self, request: InferRequest) {
        if self.closed.load(Ordering::Relaxed) {
            let error = Error::unavailable("stopping");
            return drop(request.responder.fail(error, FailureReason::Other));
        }
        self.held.lock().push_back(request);
    }

    fn is_ordered(&self) -> bool {
        self.ordered
    }

    fn order_response(&self, _: &Responder) {}

    fn retained(&self) -> Box<dyn RequestExecutor> {
        Box::new(self.clone())
    }
}

impl HeldExecutor {
    fn waiting(&self) -> usize {
        self.held.lock().len()
    }

    fn next(&self) -> InferRequest {
        self.held.lock().pop_front().expect("a request is executed")
    }

    /// Executes the next request: twice its input.
    fn run(&self) {
        let request = self.begin();
        let data: Vec<u8> =
            request.inputs[0].data.to_cpu().unwrap().iter().map(|b| b * 2).collect();
        let shape = [data.len() as i64].into_iter().collect();
        let data = Bytes::from(data).into();
        let output = OutputTensor { name: "O".into(), dtype: DType::Uint8, shape, data };
        let outputs = std::iter::once(output).collect();
        let _ = request
            .responder
            .finish(Ok(Some(InferResponse { outputs, ..InferResponse::default() })));
    }

    fn begin(&self) -> InferRequest {
        let request = self.next();
        let rows = request.context().batch;
        let execution = BatchExecution::new(0, 1, rows, now_ns(), &Arc::default());
        request.responder.executed_in(Arc::new(execution));
        request
    }
}

struct Fixture {
    store: Arc<ResponseStore>,
    cache: Arc<VersionCache>,
    executor: HeldExecutor,
    stats: Arc<VersionStats>,
}

/// A client's request: its responder and what it received.
struct Sent {
    responder: std::sync::Weak<Responder>,
    responses: RecordedResponses,
}

impl Sent {
    /// The bytes of the only response, or its error.
    fn result(&self) -> Option<Result<Vec<u8>, Code>> {
        let responses = self.responses.lock();
        assert!(responses.len() <= 1 && responses.iter().all(|(_, last)| *last));
        let (response, _) = responses.first()?;
        Some(match response {
            Ok(response) => {
                Ok(response.as_ref().unwrap().outputs[0].data.to_cpu().unwrap().to_vec())
            }
            Err(e) => Err(e.code),
        })
    }

    fn cancel(&self) {
        self.responder.upgrade().unwrap().cancel_token.cancel();
    }
}

impl Fixture {
    fn new() -> Self {
        let store = ResponseStore::new(1 << 20, None).unwrap();
        let cache = VersionCache::new(&store, "m", 1, LedgerOwner::SERVER);
        let stats = Arc::new(VersionStats::new(1));
        Self { store, cache: Arc::new(cache), executor: HeldExecutor::default(), stats }
    }

    fn send(&self, data: u8) -> Sent {
        self.send_changed(data, |_| {})
    }

    fn send_changed(&self, data: u8, change: impl FnOnce(&mut InferRequest)) -> Sent {
        self.send_to(Bytes::from(vec![data; 4]).into(), None, change)
    }

    fn send_to(
        &self,
        data: trtserver_request::TensorData,
        destination: Option<PlacedSlice>,
        change: impl FnOnce(&mut InferRequest),
    ) -> Sent {
        let destination = destination.map(|slice| Arc::new(OutputMemory::new(slice)));
        let outputs = [RequestedOutput::new(0, 0).written_to(destination)];
        let input =
            InputTensor { index: 0, dtype: DType::Uint8, shape: [4].into_iter().collect(), data };
        let context = RequestContext {
            signature: signature(&[4], 0),
            stats: Some(Arc::clone(&self.stats)),
            received_ns: now_ns(),
            batch: 1,
            used_memory: UsedMemory::from_tensors(std::slice::from_ref(&input), &outputs),
            outputs: outputs.into_iter().collect(),
            stream: None,
            waits: false,
            wording: Default::default(),
        };
        let (mut request, responses) = request_with(context, "", [input]);
        change(&mut request);
        let responder = Arc::downgrade(&request.responder);
        self.cache.submit(request, &self.executor);
        Sent { responder, responses }
    }

    /// Hits, misses and executions.
    fn counts(&self) -> (u64, u64, u64) {
        let counters = self.stats.snapshot();
        assert_eq!(counters.executing(), 0);
        let total = counters.total();
        assert_eq!(total.success.count, counters.cache_hit.count + total.compute_infer.count);
        (counters.cache_hit.count, counters.cache_miss.count, counters.execution_count)
    }
}

#[test]
fn equal_request_is_answered_without_execution() {
    let f = Fixture::new();
    let first = f.send(3);
    assert_eq!(first.result(), None);
    f.executor.run();
    assert_eq!(first.result(), Some(Ok(vec![6; 4])));
    assert_eq!(f.send(3).result(), Some(Ok(vec![6; 4])));
    assert_eq!(f.executor.waiting(), 0);
    let other = f.send(4);
    f.executor.run();
    assert_eq!(other.result(), Some(Ok(vec![8; 4])));
    assert_eq!(f.counts(), (1, 2, 2));
    assert_eq!(f.store.usage().entries, 2);
    drop(f.cache);
    assert_eq!(f.store.usage().entries, 0, "a closed version leaves entries");
}

#[test]
fn equal_requests_in_flight_share_one_execution() {
    let f = Fixture::new();
    let sent: Vec<Sent> = (0..16).map(|_| f.send(1)).collect();
    assert_eq!(f.executor.waiting(), 1);
    f.executor.run();
    for sent in &sent {
        assert_eq!(sent.result(), Some(Ok(vec![2; 4])));
    }
    assert_eq!((f.counts(), f.cache.report().shared), ((15, 1, 1), 15));
    assert!(f.cache.flights.lock().is_empty());
}

#[test]
fn cancelled_leader_hands_over() {
    let f = Fixture::new();
    let sent: Vec<Sent> = (0..3).map(|_| f.send(1)).collect();
    sent[0].cancel();
    // As the queue does.
    let leader = f.executor.next();
    let _ = leader.responder.fail(Error::new(Code::Cancelled, "c"), FailureReason::Canceled);
    drop(leader);
    assert_eq!(sent[0].result(), Some(Err(Code::Cancelled)));
    assert_eq!((sent[1].result(), f.executor.waiting()), (None, 1));
    f.executor.run();
    for sent in &sent[1..] {
        assert_eq!(sent.result(), Some(Ok(vec![2; 4])));
    }
    assert_eq!(f.counts(), (1, 1, 1));
}

#[test]
fn cancelled_follower_ends_at_once() {
    let f = Fixture::new();
    let sent: Vec<Sent> = (0..3).map(|_| f.send(1)).collect();
    sent[1].cancel();
    assert_eq!(sent[1].result(), Some(Err(Code::Cancelled)));
    f.executor.run();
    assert_eq!(sent[2].result(), Some(Ok(vec![2; 4])));
    assert_eq!(f.counts(), (1, 1, 1));
    // One that was cancelled before it was submitted.
    let first = f.send(9);
    let late = f.send_changed(9, |request| request.cancel_token().cancel());
    assert_eq!((first.result(), late.result()), (None, Some(Err(Code::Cancelled))));
}

/// A failed execution leaves no entry, and is the failure of all that shared it; a refusal is that
/// of one request.
#[test]
fn failures_are_not_stored() {
    let f = Fixture::new();
    let sent: Vec<Sent> = (0..3).map(|_| f.send(1)).collect();
    let _ = f.executor.begin().responder.finish(Err(Error::internal("broken")));
    for sent in &sent {
        assert_eq!(sent.result(), Some(Err(Code::Internal)));
    }
    let sent: Vec<Sent> = (0..3).map(|_| f.send(1)).collect();
    let refused = f.executor.next();
    let _ = refused.responder.fail(Error::unavailable("queue"), FailureReason::Rejected);
    assert_eq!(sent[0].result(), Some(Err(Code::Unavailable)));
    assert_eq!((sent[1].result(), f.executor.waiting()), (None, 1));
    // The queue closes: all others are refused one after another, without a call within a call.
    f.executor.closed.store(true, Ordering::Relaxed);
    let many: Vec<Sent> = (0..10_000).map(|_| f.send(1)).collect();
    let leader = f.executor.next();
    let _ = leader.responder.fail(Error::unavailable("stopping"), FailureReason::Other);
    drop(leader);
    for sent in sent.iter().chain(&many) {
        assert_eq!(sent.result(), Some(Err(Code::Unavailable)));
    }
    assert_eq!(f.store.usage().entries, 0);
    assert!(f.cache.flights.lock().is_empty());
}

/// A client that has a response which was not stored does not get it again.
#[test]
fn request_after_a_response_that_is_not_stored_is_executed() {
    let store = ResponseStore::new(200, None).unwrap();
    let cache = Arc::new(VersionCache::new(&store, "m", 1, LedgerOwner::SERVER));
    let f = Arc::new(Fixture { store, cache, ..Fixture::new() });
    // Sent by the client as soon as it has the response, while the cache still works on it.
    let again = Arc::new(Mutex::new(None));
    let (slot, fixture) = (Arc::clone(&again), Arc::clone(&f));
    let leader = f.send_changed(1, |request| {
        request
            .responder
            .wrap_sink(|sink| ResendingSink { sink: Some(sink), slot, fixture }.into());
    });
    let follower = f.send(1);
    f.executor.run();
    for sent in [leader, follower] {
        assert_eq!(sent.result(), Some(Ok(vec![2; 4])));
    }
    let again = again.lock().take().unwrap();
    assert_eq!((again.result(), f.executor.waiting()), (None, 1));
    f.executor.run();
    assert_eq!(f.counts(), (1, 2, 2));
}

/// Sends the request again once the response was delivered.
struct ResendingSink {
    sink: Option<trtserver_request::Sink>,
    slot: Arc<Mutex<Option<Sent>>>,
    fixture: Arc<Fixture>,
}

impl trtserver_request::ResponseSink for ResendingSink {
    fn send(&mut self, response: trtserver_base::error::Result<Option<InferResponse>>, last: bool) {
        let mut sink = self.sink.take().unwrap();
        sink.send(response, last);
        *self.slot.lock() = Some(self.fixture.send(1));
    }
}

/// A request that is lost by the backend.
#[test]
fn lost_leader_fails_alone() {
    let f = Fixture::new();
    let sent = [f.send(1), f.send(1)];
    drop(f.executor.next());
    assert_eq!(sent[0].result(), Some(Err(Code::Internal)));
    f.executor.run();
    assert_eq!(sent[1].result(), Some(Ok(vec![2; 4])));
}

#[test]
fn requests_that_are_executed_by_themselves() {
    let f = Fixture::new();
    type Change = fn(&mut InferRequest);
    let rows: [(&str, Change); 4] = [
        ("a correlation id", |r| r.sequence.id = CorrelationId::Number(1)),
        ("a start flag", |r| r.sequence.start = true),
        ("an end flag", |r| r.sequence.end = true),
        ("a warm-up", |r| r.warmup = true),
    ];
    for (name, change) in rows {
        f.send_changed(1, change);
        f.send_changed(1, change);
        assert_eq!(f.executor.waiting(), 2, "{name}");
        f.executor.run();
        f.executor.run();
    }
    assert_eq!((f.store.usage().entries, f.counts().0), (0, 0));
    // Looked up, but not after another request's timeout, priority or order.
    let leader = f.send(1);
    f.send_changed(1, |r| r.timeout_us = 1);
    f.send_changed(1, |r| r.priority = 2);
    let ordered = HeldExecutor { ordered: true, ..f.executor.clone() };
    let f = Fixture { executor: ordered, ..f };
    f.send(1);
    assert_eq!(f.executor.waiting(), 4);
    (0..4).for_each(|_| f.executor.run());
    assert_eq!(leader.result(), Some(Ok(vec![2; 4])));
    assert_eq!(f.store.usage().entries, 1);
}

#[test]
fn shared_memory_is_copied_before_it_is_hashed() {
    let f = Fixture::new();
    let memory = TestMemory::new(&[1; 4]).place(MemoryLocation::CPU, true);
    let slice = PlacedSlice::new(&memory, 0, 4).unwrap();
    let sent = f.send_to(slice.clone().into(), None, |_| {});
    // The client changes its memory before the model reads it.
    slice.write(&[&[5; 4]]).unwrap();
    f.executor.run();
    assert_eq!(sent.result(), Some(Ok(vec![2; 4])));
    assert_eq!(f.send(1).result(), Some(Ok(vec![2; 4])));
    let changed = f.send(5);
    assert_eq!(changed.result(), None);
    f.executor.run();
    assert_eq!(changed.result(), Some(Ok(vec![10; 4])));
}

#[test]
fn outputs_in_shared_memory_are_delivered_and_not_read_back() {
    let f = Fixture::new();
    let place = || PlacedSlice::new(&placed(&[0; 8], MemoryLocation::CPU, true), 0, 8).unwrap();
    let data = || Bytes::from(vec![1; 4]).into();
    let (first, second, third) = (place(), place(), place());
    let sent = [
        f.send_to(data(), Some(first.clone()), |_| {}),
        f.send_to(data(), Some(second.clone()), |_| {}),
    ];
    assert_eq!(f.executor.waiting(), 1);
    assert!(f.executor.held.lock()[0].context().outputs[0].destination.is_none());
    f.executor.run();
    let hit = f.send_to(data(), Some(third.clone()), |_| {});
    for (sent, slice) in sent.iter().chain([&hit]).zip([first, second, third]) {
        assert_eq!(sent.result(), Some(Ok(vec![2; 4])));
        assert_eq!(slice.readable().unwrap(), [2, 2, 2, 2, 0, 0, 0, 0]);
        // What the client writes there is not what others get.
        slice.write(&[&[9; 4]]).unwrap();
    }
    assert_eq!(f.send(1).result(), Some(Ok(vec![2; 4])));
    assert_eq!(f.counts(), (3, 1, 1));
    let small = PlacedSlice::new(&placed(&[0; 2], MemoryLocation::CPU, true), 0, 2).unwrap();
    assert_eq!(f.send_to(data(), Some(small), |_| {}).result(), Some(Err(Code::Internal)));
}

/// The cancellation of a client reaches the request that is executed for it.
#[test]
fn separate_execution_is_cancelled_with_its_client() {
    let f = Fixture::new();
    let slice = PlacedSlice::new(&placed(&[0; 8], MemoryLocation::CPU, true), 0, 8).unwrap();
    let sent = f.send_to(Bytes::from(vec![1; 4]).into(), Some(slice), |_| {});
    assert!(!f.executor.held.lock()[0].cancel_token().is_cancelled());
    sent.cancel();
    assert!(f.executor.held.lock()[0].cancel_token().is_cancelled());
    drop(f.executor.next());
    assert_eq!(sent.result(), Some(Err(Code::Internal)));
}

#[test]
fn useless_cache_looks_nothing_up() {
    let f = Fixture::new();
    // On a busy machine look-ups take long, and a shorter window decides.
    for i in (0..2 * WINDOW).take_while(|_| f.cache.report().state != CacheState::Off) {
        let data = Bytes::copy_from_slice(&(i as u32).to_le_bytes());
        f.send_to(data.into(), None, |_| {});
        let request = f.executor.begin();
        let _ = request.responder.finish(Ok(Some(InferResponse::default())));
    }
    let report = f.cache.report();
    assert_eq!((report.state, report.switched_off), (CacheState::Off, 1));
    let misses = f.counts().1;
    f.send(1);
    f.executor.run();
    assert_eq!((f.counts().1, f.cache.report().passed), (misses, report.passed + 1));
    assert!(!f.cache.takes_long(1 << 30));
}
