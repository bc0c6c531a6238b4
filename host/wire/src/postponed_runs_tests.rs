//! Unit tests of `postponed_runs.rs`: a runtime of one thread, and a queue whose instance is a double.

use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use trtserver_base::timer::DeadlineTimer;
use trtserver_request::testing::{request_for, signature};
use trtserver_scheduler::batcher::settings::{BatchingSettings, DynamicSettings};
use trtserver_scheduler::inline::{InlineInstance, InlinePermits, InlineRun};
use trtserver_scheduler::{RequestBatch, RequestQueue, SchedulingPolicy};

const LONG: Duration = Duration::from_secs(60);

/// Tells how many requests each batch has, and the name of the thread that executes it.
struct TestInstance(Mutex<Sender<(usize, String)>>);

impl TestInstance {
    fn execute(&self, batch: &mut RequestBatch) {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        self.0.lock().send((batch.requests.len(), name)).unwrap();
        for request in batch.requests.drain(..) {
            let _ = request.responder.finish(Ok(None));
        }
    }
}

impl InlineInstance for TestInstance {
    fn is_fast(&self) -> bool {
        true
    }

    fn gains_by_waiting(&self) -> bool {
        true
    }

    fn run(&self, mut run: InlineRun<'_>, now: u64) {
        let mut batch = RequestBatch::default();
        while run.next_batch(now, &mut batch) {
            self.execute(&mut batch);
        }
    }

    fn wait_for_capacity(&self) {}
}

/// A queue whose instance has executed one request on its own thread, and sleeps or is about to.
fn idle_queue() -> (Arc<RequestQueue>, Receiver<(usize, String)>) {
    let batching = BatchingSettings { max_rows: 8, preferred: Vec::new(), delay_ns: 0 };
    let settings = DynamicSettings { batching: Some(batching), ..Default::default() };
    let policy = SchedulingPolicy::Dynamic(settings);
    let queue = RequestQueue::new(policy, &signature(&[2], 8), 1, false, DeadlineTimer::leak());
    let (sender, batches) = channel();
    let instance = Arc::new(TestInstance(Mutex::new(sender)));
    let weak = Arc::downgrade(&instance);
    queue.allow_inline(0, weak as Weak<dyn InlineInstance>);
    let own = Arc::clone(&queue);
    let serve = move || {
        let mut batch = RequestBatch::default();
        while own.take(0, &mut batch) {
            instance.execute(&mut batch);
        }
    };
    std::thread::Builder::new().name("own".into()).spawn(serve).unwrap();
    (queue, batches)
}

fn submit(queue: &RequestQueue) {
    queue.submit(request_for(&signature(&[2], 8), "request", 1).0);
}

/// A runtime of one network thread, as `threads.rs` makes it.
fn runtime(postponed: &Arc<PostponedRuns>) -> Runtime {
    let permits = InlinePermits::postponing(2, || {}, |run| postpone(run, false));
    let postponed = Arc::clone(postponed);
    let register = move || {
        permits.register_thread();
        postponed.register_thread();
    };
    let threads = Builder::new_multi_thread().worker_threads(1).on_thread_start(register).build();
    threads.unwrap()
}

/// Submits one request after another until the network thread executes.
fn wait_until_inline(
    runtime: &Runtime,
    queue: &Arc<RequestQueue>,
    batches: &Receiver<(usize, String)>,
) {
    loop {
        let queue = Arc::clone(queue);
        runtime.spawn(async move { submit(&queue) });
        if batches.recv_timeout(LONG).unwrap().1 != "own" {
            return;
        }
    }
}

#[test]
fn requests_of_the_tasks_that_are_ready_are_one_batch() {
    let runtime = runtime(&Arc::default());
    let (queue, batches) = idle_queue();
    wait_until_inline(&runtime, &queue, &batches);
    // A thread that takes 200 microseconds for the five executes earlier: on a slow machine, or if
    // the system suspends it.
    let (mut most, begin) = (0, Instant::now());
    while begin.elapsed() < LONG {
        let requests = [(); 5].map(|()| request_for(&signature(&[2], 8), "request", 1).0);
        let queue = Arc::clone(&queue);
        runtime.spawn(async move {
            for request in requests {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move { queue.submit(request) });
            }
        });
        let mut left = 5;
        while left > 0 {
            let (requests, thread) = batches.recv_timeout(LONG).unwrap();
            left -= requests;
            most = most.max(if thread == "own" { 0 } else { requests });
        }
        if most == 5 {
            return;
        }
    }
    panic!("at most {most} of five requests were one batch");
}

#[test]
fn rescue_leaves_a_batch_to_the_thread_of_its_instance() {
    let postponed = Arc::<PostponedRuns>::default();
    let runtime = runtime(&postponed);
    let (queue, batches) = idle_queue();
    wait_until_inline(&runtime, &queue, &batches);
    let ((submitted, is_submitted), (release, released)) = (channel(), channel::<()>());
    runtime.spawn(async move {
        submit(&queue);
        submitted.send(()).unwrap();
        // The thread is held up.
        let _ = released.recv();
    });
    is_submitted.recv_timeout(LONG).unwrap();
    assert!(batches.try_recv().is_err());
    postponed.rescue();
    assert_eq!(batches.recv_timeout(LONG).unwrap(), (1, "own".to_owned()));
    drop(release);
}
