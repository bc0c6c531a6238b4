//! Unit tests of `copy_thread.rs`.

use super::{BatchCopier, CopiedBatches, CopyingInstance};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use trtserver_base::timer::DeadlineTimer;
use trtserver_request::InferRequest;
use trtserver_request::testing::{RecordedResponses, request_for, signature};
use trtserver_scheduler::batcher::settings::DynamicSettings;
use trtserver_scheduler::{RequestBatch, RequestQueue, SchedulingPolicy};

/// An instance whose copy thread reports what it copies. The inputs of `bad` make it panic.
struct Fixture {
    queue: Arc<RequestQueue>,
    batches: Option<CopiedBatches<usize>>,
    thread: JoinHandle<()>,
    copying: std::sync::mpsc::Receiver<usize>,
}

fn copy(requests: &mut Vec<InferRequest>, copying: &Sender<usize>) -> usize {
    copying.send(requests.len()).unwrap();
    assert!(requests.iter().all(|request| request.id != "bad"), "bad inputs");
    requests.retain(|request| {
        let refused = request.id == "refused";
        if refused {
            let _ = request.responder.finish(Ok(None));
        }
        !refused
    });
    requests.len()
}

impl Fixture {
    fn new() -> Self {
        let policy = SchedulingPolicy::Dynamic(DynamicSettings::default());
        let queue = RequestQueue::new(policy, &signature(&[2], 8), 1, false, DeadlineTimer::leak());
        let instance = CopyingInstance { queue: Arc::clone(&queue), ordinal: 0, model: "m".into() };
        let (copier, batches): (BatchCopier<usize>, _) = instance.channel();
        let (sender, copying) = channel();
        let thread = std::thread::spawn(move || copier.run(|requests| copy(requests, &sender)));
        Self { queue, batches: Some(batches), thread, copying }
    }

    fn submit(&self, id: &str) -> RecordedResponses {
        let (request, _, responses) = request_for(&signature(&[2], 8), id, 1);
        self.queue.submit(request);
        responses
    }

    /// What arrives during a run and is copied by its end: the ids of the batch, and its copies.
    fn during_run(&self, id: &str) -> (RecordedResponses, Option<(Vec<String>, usize)>) {
        self.queue.begin_standby(0);
        let responses = self.submit(id);
        self.copying.recv_timeout(Duration::from_secs(60)).unwrap();
        let taken = self.batches.as_ref().and_then(CopiedBatches::end_standby);
        let ids = |batch: RequestBatch| batch.requests.iter().map(|r| r.id.clone()).collect();
        (responses, taken.map(|(batch, copies)| (ids(batch), copies)))
    }

    fn end(mut self) {
        self.batches = None;
        self.thread.join().unwrap();
    }
}

fn error(responses: &RecordedResponses) -> String {
    let responses = responses.lock();
    responses[0].0.as_ref().err().map(|e| e.message.clone()).unwrap_or_default()
}

#[test]
fn batch_is_handed_over_with_its_copies() {
    let fixture = Fixture::new();
    for id in ["a", "b"] {
        let (_, taken) = fixture.during_run(id);
        assert_eq!(taken, Some((vec![id.to_owned()], 1)));
    }
    // Its requests are answered; the own thread goes on.
    let (_, taken) = fixture.during_run("refused");
    assert_eq!(taken, Some((vec![], 0)));
    fixture.queue.begin_standby(0);
    assert!(fixture.batches.as_ref().unwrap().end_standby().is_none());
    fixture.end();
}

#[test]
fn panic_of_a_copy_fails_its_requests_only() {
    let fixture = Fixture::new();
    let (responses, taken) = fixture.during_run("bad");
    assert_eq!(taken, Some((vec![], 0)));
    let want = "model 'm': the copy of the inputs panicked; see the log of the server";
    assert_eq!(error(&responses), want);
    let (_, taken) = fixture.during_run("good");
    assert_eq!(taken, Some((vec!["good".to_owned()], 1)));
    fixture.end();
}

#[test]
fn own_thread_that_panics_leaves_no_request_without_a_response() {
    let mut fixture = Fixture::new();
    fixture.queue.begin_standby(0);
    let responses = fixture.submit("a");
    fixture.copying.recv_timeout(Duration::from_secs(60)).unwrap();
    let batches = fixture.batches.take();
    let run = || {
        let _batches = batches;
        panic!("during the run")
    };
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    let want = "model 'm': its instance has ended by a panic; see the log of the server";
    assert_eq!(error(&responses), want);
    fixture.end();
}
