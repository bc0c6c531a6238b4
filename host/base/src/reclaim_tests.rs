//! Unit tests of `reclaim.rs`.

use super::*;
use std::sync::mpsc;
use std::thread::ThreadId;

struct Reports(mpsc::Sender<ThreadId>);

impl Drop for Reports {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
    }
}

#[test]
fn garbage_is_dropped_on_another_thread() {
    let queue = ReclaimQueue::start().unwrap();
    let (sent, dropped) = mpsc::channel();
    for _ in 0..3 {
        queue.push(Reports(sent.clone()));
    }
    for _ in 0..3 {
        assert_ne!(dropped.recv().unwrap(), thread::current().id());
    }
}
