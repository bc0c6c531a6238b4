//! Unit tests of `postponed.rs`: which thread executes, and what a batch holds.

use super::*;
use crate::RequestBatch;
use crate::batcher::settings::DynamicSettings;
use crate::inline::InlinePermits;
use crate::queue::testing::{batching, dynamic, request, wait_until};
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::{JoinHandle, ThreadId, current};
use std::time::Duration;

type Batches = Arc<Mutex<Vec<(Vec<String>, ThreadId)>>>;

/// Records the batches, and which thread executed each.
struct TestInstance {
    gains: bool,
    batches: Batches,
}

impl TestInstance {
    fn execute(&self, batch: &mut RequestBatch) {
        let ids = batch.requests.iter().map(|request| request.id.clone()).collect();
        self.batches.lock().push((ids, current().id()));
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
        self.gains
    }

    fn run(&self, mut run: InlineRun<'_>, now: u64) {
        let mut batch = RequestBatch::default();
        while run.next_batch(now, &mut batch) {
            self.execute(&mut batch);
        }
    }

    fn wait_for_capacity(&self) {}
}

/// A queue with instances whose own threads sleep, and this thread as a network thread.
struct Turn {
    queue: Arc<RequestQueue>,
    runs: Arc<Mutex<Vec<PostponedRun>>>,
    batches: Batches,
    own: Vec<JoinHandle<()>>,
}

impl Turn {
    fn begin(settings: DynamicSettings, gains: bool, instances: usize) -> Self {
        let queue = dynamic(settings, instances, false);
        let batches = Batches::default();
        let own = (0..instances).map(|ordinal| {
            let instance = Arc::new(TestInstance { gains, batches: Arc::clone(&batches) });
            let weak = Arc::downgrade(&instance);
            queue.allow_inline(ordinal, weak as Weak<dyn InlineInstance>);
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || {
                let mut batch = RequestBatch::default();
                while queue.take(ordinal, &mut batch) {
                    instance.execute(&mut batch);
                }
            })
        });
        let own = own.collect();
        wait_until(|| queue.lock().instances.idle_count() == instances);
        let runs = Arc::<Mutex<Vec<PostponedRun>>>::default();
        let postponed = Arc::clone(&runs);
        InlinePermits::postponing(2, || {}, move |run| postponed.lock().push(run))
            .register_thread();
        Self { queue, runs, batches, own }
    }

    fn submit(&self, ids: &[&str]) {
        ids.iter().for_each(|id| self.queue.submit(request(id).0));
    }

    fn run(&self) -> PostponedRun {
        self.runs.lock().pop().unwrap()
    }

    /// Ends all threads. Returns the batches, and whether this thread executed each.
    fn end(self) -> Vec<(Vec<String>, bool)> {
        self.queue.close();
        self.own.into_iter().for_each(|own| own.join().unwrap());
        let mut batches = self.batches.lock();
        batches.drain(..).map(|(ids, thread)| (ids, thread == current().id())).collect()
    }
}

fn batch(ids: &[&str], here: bool) -> (Vec<String>, bool) {
    (ids.iter().map(|id| (*id).to_owned()).collect(), here)
}

#[test]
fn requests_of_a_turn_are_one_batch() {
    for instances in [1, 2] {
        let turn = Turn::begin(batching(&[], 0), true, instances);
        turn.submit(&["a", "b", "c"]);
        assert_eq!((turn.queue.waiting(), turn.runs.lock().len()), (3, 1));
        turn.run().execute();
        turn.submit(&["d"]);
        turn.run().execute();
        assert_eq!(turn.end(), [batch(&["a", "b", "c"], true), batch(&["d"], true)]);
    }
}

#[test]
fn full_batch_does_not_wait_for_the_end_of_the_turn() {
    let turn = Turn::begin(batching(&[], 0), true, 1);
    let ids = ["1", "2", "3", "4", "5", "6", "7", "8"];
    turn.submit(&ids);
    turn.submit(&["9"]);
    let (second, first) = (turn.run(), turn.run());
    first.execute();
    second.execute();
    assert_eq!(turn.end(), [batch(&ids, true), batch(&["9"], true)]);
}

#[test]
fn long_turn_does_not_hold_a_request_up() {
    let turn = Turn::begin(batching(&[], 0), true, 1);
    turn.submit(&["first"]);
    std::thread::sleep(Duration::from_nanos(MAX_POSTPONED_NS + 1));
    turn.submit(&["second"]);
    assert_eq!(turn.queue.waiting(), 0);
    turn.run().execute();
    assert_eq!(turn.end(), [batch(&["first", "second"], true)]);
}

#[test]
fn own_thread_executes_what_no_network_thread_does() {
    let drops: fn(PostponedRun) = drop;
    let elsewhere = |run: PostponedRun| std::thread::spawn(|| run.execute()).join().unwrap();
    for end in [drops, elsewhere] {
        let turn = Turn::begin(batching(&[], 0), true, 1);
        turn.submit(&["a", "b"]);
        end(turn.run());
        wait_until(|| turn.batches.lock().len() == 1);
        assert_eq!(turn.end(), [batch(&["a", "b"], false)]);
    }
}

#[test]
fn closed_queue_executes_what_was_postponed() {
    // The thread of a second instance would wake, and might be faster.
    let turn = Turn::begin(batching(&[], 0), true, 1);
    turn.submit(&["a", "b"]);
    turn.queue.close();
    turn.run().execute();
    assert_eq!(turn.end(), [batch(&["a", "b"], true)]);
}

#[test]
fn retired_instance_leaves_its_postponed_batch_to_another() {
    let turn = Turn::begin(batching(&[], 0), true, 2);
    turn.submit(&["a", "b"]);
    let (postponed, _) = turn.queue.lock().instances.postponed().unwrap();
    turn.queue.remove_instance(postponed);
    wait_until(|| turn.batches.lock().len() == 1);
    turn.run().execute();
    assert_eq!(turn.end(), [batch(&["a", "b"], false)]);
}

#[test]
fn requests_are_executed_at_once_where_none_can_join() {
    for (settings, gains) in [
        (DynamicSettings::default(), true),
        (batching(&[], 0), false),
        // The batch is complete with one row.
        (batching(&[1], 1_000_000), true),
    ] {
        let turn = Turn::begin(settings, gains, 1);
        turn.submit(&["a", "b"]);
        assert!(turn.runs.lock().is_empty());
        assert_eq!(turn.end(), [batch(&["a"], true), batch(&["b"], true)]);
    }
}
