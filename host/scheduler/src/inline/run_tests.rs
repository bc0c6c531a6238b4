//! Unit tests of inline runs: which thread executes, and how a run ends.

use super::*;
use crate::batcher::settings::DynamicSettings;
use crate::inline::{InlineInstance, InlinePermits};
use crate::queue::testing::{dynamic, error, request, wait_until};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::thread::{JoinHandle, ThreadId};
use trtserver_base::error::Code;

/// An instance that records what was executed on which thread.
struct TestInstance {
    queue: Arc<RequestQueue>,
    fast: bool,
    executed: Mutex<Vec<(String, ThreadId)>>,
}

impl TestInstance {
    fn execute(&self, batch: &mut RequestBatch) {
        for request in batch.requests.drain(..) {
            self.executed.lock().push((request.id.clone(), std::thread::current().id()));
            let _ = request.responder.finish(Ok(None));
        }
    }
}

impl InlineInstance for TestInstance {
    fn is_fast(&self) -> bool {
        self.fast
    }

    fn gains_by_waiting(&self) -> bool {
        false
    }

    fn run(&self, mut run: InlineRun<'_>, now: u64) {
        let mut batch = RequestBatch::default();
        while run.next_batch(now, &mut batch) {
            assert!(batch.requests[0].id != "panics", "as requested");
            if batch.requests[0].id == "first" {
                // Another thread submits meanwhile: this run takes that request too.
                let queue = Arc::clone(&self.queue);
                std::thread::spawn(move || queue.submit(request("meanwhile").0)).join().unwrap();
            }
            let outstanding = batch.requests[0].id == "outstanding";
            let stop = outstanding || batch.requests[0].id == "last";
            if stop {
                self.queue.submit(request("left").0);
            }
            self.execute(&mut batch);
            if stop {
                return run.stop(outstanding, &mut batch);
            }
        }
    }

    fn wait_for_capacity(&self) {
        let what = format!("waited with {} queued", self.queue.waiting());
        self.executed.lock().push((what, std::thread::current().id()));
    }
}

/// An instance whose own thread sleeps.
fn idle_instance(fast: bool) -> (Arc<RequestQueue>, Arc<TestInstance>, JoinHandle<()>) {
    let queue = dynamic(DynamicSettings::default(), 1, false);
    let executed = Mutex::default();
    let instance = Arc::new(TestInstance { queue: Arc::clone(&queue), fast, executed });
    queue.allow_inline(0, Arc::downgrade(&instance) as Weak<dyn InlineInstance>);
    let own = std::thread::spawn({
        let instance = Arc::clone(&instance);
        move || {
            let mut batch = RequestBatch::default();
            while instance.queue.take(0, &mut batch) {
                instance.execute(&mut batch);
            }
        }
    });
    wait_until(|| queue.has_idle_instance());
    (queue, instance, own)
}

#[test]
fn own_thread_waits_for_outstanding_requests_before_it_takes_more() {
    let (queue, instance, own) = idle_instance(true);
    InlinePermits::new(2, || {}).register_thread();
    queue.submit(request("outstanding").0);
    queue.close();
    own.join().unwrap();
    let executed = instance.executed.lock();
    let executed: Vec<_> = executed.iter().map(|(what, _)| &**what).collect();
    assert_eq!(executed, ["outstanding", "waited with 1 queued", "left"]);
}

#[test]
fn panic_takes_the_queue_out_of_service_and_returns_the_permit() {
    let (queue, _, own) = idle_instance(true);
    InlinePermits::new(2, || {}).register_thread();
    let (panics, responses) = request("panics");
    let submit = std::panic::AssertUnwindSafe(|| queue.submit(panics));
    assert!(std::panic::catch_unwind(submit).is_err());
    own.join().unwrap();
    assert_eq!(error(&responses).unwrap().0, Code::Internal);
    let (late, responses) = request("late");
    queue.submit(late);
    assert!(error(&responses).unwrap().1.contains("out of service"));
    assert!(InlinePermit::try_acquire(1).is_some());
}

#[test]
fn registered_threads_run_fast_idle_instances() {
    for fast in [true, false] {
        let (queue, instance, own) = idle_instance(fast);
        let idle = |queue: &RequestQueue| wait_until(|| queue.has_idle_instance());
        let unregistered = Arc::clone(&queue);
        std::thread::spawn(move || unregistered.submit(request("unregistered").0)).join().unwrap();
        idle(&queue);
        InlinePermits::new(2, || {}).register_thread();
        for id in ["first", "last"] {
            queue.submit(request(id).0);
            idle(&queue);
        }
        queue.close();
        let (me, its) = (std::thread::current().id(), own.thread().id());
        own.join().unwrap();
        let executed = instance.executed.lock();
        let executed: Vec<_> = executed.iter().map(|(id, thread)| (&**id, *thread)).collect();
        if fast {
            let want = [
                ("unregistered", its),
                ("first", me),
                ("meanwhile", me),
                ("last", me),
                ("left", its),
            ];
            assert_eq!(executed, want);
        } else {
            assert_eq!(executed, [("unregistered", its), ("first", its), ("last", its)]);
        }
    }
}
