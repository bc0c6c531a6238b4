//! Unit tests of `instance.rs`: batches that another process accepts ahead of its responses.

use super::*;
use crate::batcher::settings::DynamicSettings;
use crate::inline::InlinePermits;
use crate::queue::testing::{dynamic, request, wait_until};
use std::thread::{ThreadId, current};
use trtserver_request::InferRequest;

type Log = Arc<Mutex<Vec<(String, ThreadId)>>>;

/// Accepts three batches before it responds.
struct Remote {
    queue: Arc<RequestQueue>,
    log: Log,
    outstanding: Vec<InferRequest>,
}

impl Remote {
    fn note(&self, what: String) {
        self.log.lock().push((what, current().id()));
    }
}

impl InstanceExecutor for Remote {
    fn execute(&mut self, batch: &mut RequestBatch, may_wait: bool) {
        let id = batch.requests[0].id.clone();
        self.note(format!("{id}{}", if may_wait { ", may wait" } else { "" }));
        if id == "first" {
            for id in ["second", "third", "fourth"] {
                self.queue.submit(request(id).0);
            }
        }
        self.outstanding.append(&mut batch.requests);
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn accepts_ahead(&self) -> bool {
        self.has_capacity()
    }

    fn collect(&mut self, more: bool) -> Option<u64> {
        self.note(if more { "more" } else { "all" }.into());
        if !more {
            for request in self.outstanding.drain(..) {
                let _ = request.responder.finish(Ok(None));
            }
        }
        Some(1000)
    }

    fn has_capacity(&self) -> bool {
        self.outstanding.len() < 3
    }

    fn wait_for_capacity(&mut self) {
        assert!(self.has_capacity());
    }
}

/// What is executed, and by which thread, once this thread submits `first`: after requests
/// `before`, one at a time, and if it should `register`, as a network thread.
fn executed(before: usize, register: bool) -> Vec<(String, ThreadId)> {
    let (queue, log) = (dynamic(DynamicSettings::default(), 1, false), Log::default());
    let remote =
        Remote { queue: Arc::clone(&queue), log: Arc::clone(&log), outstanding: Vec::new() };
    let own = std::thread::spawn({
        let queue = Arc::clone(&queue);
        move || drop(SharedInstance::serve(queue, 0, remote))
    });
    for _ in 0..before {
        wait_until(|| queue.has_idle_instance());
        queue.submit(request("before").0);
    }
    wait_until(|| queue.has_idle_instance());
    log.lock().clear();
    if register {
        InlinePermits::new(2, || {}).register_thread();
    }
    queue.submit(request("first").0);
    wait_until(|| log.lock().len() == 8);
    queue.close();
    own.join().unwrap();
    std::mem::take(&mut *log.lock())
}

#[test]
fn own_thread_sends_ahead_and_collects_at_the_end() {
    let executed = executed(0, false);
    let log: Vec<_> = executed.iter().map(|(what, _)| &**what).collect();
    assert_eq!(log[..6], ["first, may wait", "more", "second", "more", "third", "all"]);
    assert_eq!(log[6..], ["fourth, may wait", "all"]);
}

/// How many batches are sent ahead depends on the time, but a network thread never waits, and never
/// leaves responses behind.
#[test]
fn network_thread_collects_before_it_leaves() {
    let executed = executed(40, true);
    let (me, mut more) = (current().id(), false);
    assert_eq!(executed[0], ("first".to_owned(), me));
    for pair in executed.chunks(2) {
        let [(batch, thread), (collect, collects)] = pair else { panic!("{executed:?}") };
        assert_eq!(thread, collects, "{executed:?}");
        let own_thread_begins = *thread != me && !more;
        assert_eq!(batch.ends_with(", may wait"), own_thread_begins, "{executed:?}");
        more = collect == "more";
    }
    assert!(!more, "{executed:?}");
    let ids = executed.iter().step_by(2).map(|(id, _)| id.split(',').next());
    assert!(ids.eq(["first", "second", "third", "fourth"].map(Some)), "{executed:?}");
}
