//! Unit tests of `standby.rs`.

use super::{StandbyInstances, StandbyState};
use crate::batcher::settings::{DynamicSettings, QueuePolicy};
use crate::queue::limited::NextBatch;
use crate::queue::testing::{MS, batching, dynamic, error, ids, request, wait_until};
use crate::queue::{RequestBatch, RequestQueue};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::Duration;
use trtserver_base::clock::now_ns;
use trtserver_base::error::Error;
use trtserver_request::testing::{request_for, signature};

const HOUR: u64 = 3_600_000 * MS;

/// The copy thread of instance 0, which sends the ids of its batches.
struct CopyThread {
    queue: Arc<RequestQueue>,
    thread: JoinHandle<()>,
    taken: Receiver<Vec<String>>,
}

impl CopyThread {
    fn start(queue: &Arc<RequestQueue>) -> Self {
        let (sender, taken) = channel();
        let thread = std::thread::spawn({
            let queue = Arc::clone(queue);
            move || {
                let mut batch = RequestBatch::default();
                while queue.take_standby(0, &mut batch) {
                    let taken = batch.requests.drain(..).map(|request| request.id.clone());
                    sender.send(taken.collect()).unwrap();
                }
            }
        });
        Self { queue: Arc::clone(queue), thread, taken }
    }

    fn taken(&self) -> Vec<String> {
        self.taken.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    /// Ends the thread, which has taken nothing since.
    fn stop(self) {
        self.queue.stop_standby(0);
        self.thread.join().unwrap();
        assert_eq!(self.taken.try_iter().next(), None);
    }
}

/// What `instance` executes next.
fn take(queue: &RequestQueue, instance: usize) -> Vec<String> {
    let mut batch = RequestBatch::default();
    assert!(queue.take(instance, &mut batch));
    ids(&batch).into_iter().map(str::to_owned).collect()
}

/// The own thread of instance 1, which sleeps until there is a batch, and returns it.
fn start_idle_instance(queue: &Arc<RequestQueue>) -> JoinHandle<Vec<String>> {
    let thread = std::thread::spawn({
        let queue = Arc::clone(queue);
        move || take(&queue, 1)
    });
    wait_until(|| queue.has_idle_instance());
    thread
}

fn submit(queue: &RequestQueue, id: &str) {
    queue.submit(request(id).0);
}

#[test]
fn copy_thread_takes_one_batch_that_arrives_during_a_run() {
    let queue = dynamic(DynamicSettings::default(), 1, false);
    let copies = CopyThread::start(&queue);
    for run in ["a", "b", "c"] {
        queue.begin_standby(0);
        submit(&queue, run);
        submit(&queue, "next");
        assert_eq!(copies.taken(), [run]);
        assert_eq!(queue.waiting(), 1, "one batch for each run");
        assert!(queue.end_standby(0));
        assert!(!queue.end_standby(0));
        assert_eq!(take(&queue, 0), ["next"]);
    }
    copies.stop();
}

#[test]
fn copy_thread_takes_what_arrived_just_before_the_run() {
    let queue = dynamic(DynamicSettings::default(), 1, false);
    let copies = CopyThread::start(&queue);
    submit(&queue, "a");
    queue.begin_standby(0);
    assert_eq!(copies.taken(), ["a"]);
    copies.stop();
}

/// Whether the copy thread would take a batch now.
fn takes(queue: &RequestQueue) -> bool {
    let mut batch = RequestBatch::default();
    let mut state = queue.lock();
    let open = state.standby.state(0) == Some(StandbyState::Open);
    open && matches!(state.next_standby(0, now_ns(), &mut batch), NextBatch::Taken(_))
}

#[test]
fn nothing_is_taken_without_a_run_or_beside_a_free_instance() {
    let queue = dynamic(DynamicSettings::default(), 2, false);
    let copies = CopyThread::start(&queue);
    // No run has begun; then it has ended.
    submit(&queue, "a");
    assert!(!takes(&queue));
    assert_eq!(take(&queue, 0), ["a"]);
    queue.begin_standby(0);
    assert!(!queue.end_standby(0));
    submit(&queue, "b");
    assert!(!takes(&queue));
    assert_eq!(take(&queue, 0), ["b"]);
    // The other instance is idle, and takes what arrives.
    queue.begin_standby(0);
    let other = start_idle_instance(&queue);
    submit(&queue, "c");
    assert_eq!(other.join().unwrap(), ["c"]);
    // Now it executes.
    submit(&queue, "d");
    assert_eq!(copies.taken(), ["d"]);
    assert!(queue.end_standby(0));
    copies.stop();
}

#[test]
fn idle_instance_that_leaves_requests_behind_wakes_the_copy_thread() {
    let queue = dynamic(DynamicSettings::default(), 2, false);
    let copies = CopyThread::start(&queue);
    queue.begin_standby(0);
    let other = start_idle_instance(&queue);
    ["a", "b"].iter().for_each(|id| submit(&queue, id));
    let mut all = vec![other.join().unwrap(), copies.taken()];
    all.sort();
    assert_eq!(all, [["a"], ["b"]]);
    copies.stop();
}

/// What the copy thread takes of requests of these rows that arrive during a run.
fn taken_of(settings: DynamicSettings, rows: &[u32]) -> usize {
    let queue = dynamic(settings, 1, false);
    queue.begin_standby(0);
    for rows in rows {
        queue.submit(request_for(&signature(&[2], 8), "", *rows).0);
    }
    let mut batch = RequestBatch::default();
    let mut state = queue.lock();
    state.next_standby(0, now_ns(), &mut batch);
    batch.entries.len()
}

#[test]
fn batch_that_requests_can_join_until_the_end_of_the_run_stays_open() {
    let cases: &[(&[u32], u64, &[u32], usize)] = &[
        // Without a delay: a full batch.
        (&[], 0, &[], 0),
        (&[], 0, &[1], 0),
        (&[], 0, &[3, 4], 0),
        (&[], 0, &[4, 4], 2),
        (&[], 0, &[4, 4, 1], 2),
        (&[], 0, &[5, 5], 1),
        (&[], 0, &[8], 1),
        // One of a preferred size.
        (&[4], 0, &[2], 0),
        (&[4], 0, &[2, 2], 2),
        (&[4], 0, &[2, 3], 1),
        // With a delay: when it has passed, or the batch is full.
        (&[], HOUR, &[1], 0),
        (&[], HOUR, &[4, 4], 2),
        (&[], 1, &[1, 1], 2),
    ];
    for (preferred, delay_ns, rows, taken) in cases {
        assert_eq!(
            taken_of(batching(preferred, *delay_ns), rows),
            *taken,
            "{preferred:?} {delay_ns} {rows:?}"
        );
    }
    assert_eq!(taken_of(DynamicSettings::default(), &[1, 1]), 1, "requests are executed alone");
}

#[test]
fn copy_thread_waits_for_the_delay_of_the_batcher() {
    let queue = dynamic(batching(&[], 20 * MS), 1, false);
    let copies = CopyThread::start(&queue);
    queue.begin_standby(0);
    let sent = std::time::Instant::now();
    submit(&queue, "a");
    submit(&queue, "b");
    assert_eq!(copies.taken(), ["a", "b"]);
    assert!(sent.elapsed() >= Duration::from_millis(20));
    assert!(queue.end_standby(0));
    // A full batch is not delayed; the wake-up of its first request has set a later time.
    let queue = dynamic(batching(&[], HOUR), 1, false);
    let full = CopyThread::start(&queue);
    queue.begin_standby(0);
    (0..8).for_each(|_| submit(&queue, "c"));
    assert_eq!(full.taken().len(), 8);
    full.stop();
    copies.stop();
}

#[test]
fn retired_instance_takes_nothing_and_another_is_woken() {
    let queue = dynamic(DynamicSettings::default(), 2, false);
    let retired = CopyThread::start(&queue);
    queue.begin_standby(0);
    queue.begin_standby(1);
    assert_eq!(queue.lock().standby.first_open(), Some(0));
    assert!(!queue.retire(0, &Error::unavailable("broken")));
    assert_eq!(queue.lock().standby.first_open(), Some(1));
    queue.begin_standby(0);
    submit(&queue, "a");
    assert!(!takes(&queue));
    assert!(!queue.end_standby(0));
    retired.stop();
}

#[test]
fn closed_queue_is_emptied_by_both_threads() {
    let queue = dynamic(DynamicSettings::default(), 1, false);
    let copies = CopyThread::start(&queue);
    ["a", "b", "c"].iter().for_each(|id| submit(&queue, id));
    queue.close();
    assert_eq!(take(&queue, 0), ["a"]);
    queue.begin_standby(0);
    assert_eq!(copies.taken(), ["b"]);
    assert!(queue.end_standby(0));
    assert_eq!(take(&queue, 0), ["c"]);
    queue.begin_standby(0);
    assert!(!queue.end_standby(0));
    assert!(!queue.take(0, &mut RequestBatch::default()));
    copies.stop();
}

#[test]
fn request_that_times_out_is_refused_by_the_copy_thread_or_the_timer() {
    let policy = QueuePolicy { timeout_us: 1000, ..Default::default() };
    let settings = DynamicSettings { default_policy: policy, ..batching(&[], HOUR) };
    let queue = dynamic(settings, 1, false);
    let copies = CopyThread::start(&queue);
    queue.begin_standby(0);
    let (late, responses) = request("late");
    queue.submit(late);
    wait_until(|| error(&responses).is_some());
    assert_eq!(queue.waiting(), 0);
    copies.stop();
}

#[test]
fn no_request_is_lost_between_runs() {
    const REQUESTS: usize = 2000;
    let queue = dynamic(DynamicSettings::default(), 1, false);
    let copies = CopyThread::start(&queue);
    let start = Arc::new(Barrier::new(2));
    let client = std::thread::spawn({
        let (queue, start) = (Arc::clone(&queue), Arc::clone(&start));
        move || {
            start.wait();
            for i in 0..REQUESTS {
                submit(&queue, &i.to_string());
                // A run ends or begins meanwhile.
                (i % 3 == 0).then(std::thread::yield_now);
            }
            queue.close();
        }
    });
    start.wait();
    let (mut batch, mut executed) = (RequestBatch::default(), Vec::new());
    while queue.take(0, &mut batch) {
        executed.extend(ids(&batch).into_iter().map(str::to_owned));
        loop {
            queue.begin_standby(0);
            std::thread::yield_now();
            if !queue.end_standby(0) {
                break;
            }
            executed.extend(copies.taken());
        }
    }
    client.join().unwrap();
    // In the order of arrival, each once.
    assert_eq!(executed, (0..REQUESTS).map(|i| i.to_string()).collect::<Vec<_>>());
    copies.stop();
}

#[test]
fn instance_that_began_first_comes_first() {
    let mut standby = StandbyInstances::default();
    assert_eq!(standby.first_open(), None);
    for instance in [2, 0, 1] {
        standby.set(instance, StandbyState::Open);
    }
    standby.set(2, StandbyState::Taken);
    assert_eq!(standby.first_open(), Some(0));
    standby.withdraw(2);
    standby.withdraw(0);
    assert_eq!((standby.first_open(), standby.state(2)), (Some(1), Some(StandbyState::Taken)));
    assert_eq!(standby.remove(2), Some(StandbyState::Taken));
    assert_eq!(standby.remove(2), None);
}
