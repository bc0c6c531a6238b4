//! Unit tests of `cancel.rs`.

use super::*;
use std::sync::Arc;

#[derive(Default)]
struct Tickets(Mutex<Vec<u64>>);

impl CancelObserver for Tickets {
    fn cancelled(&self, ticket: u64) {
        self.0.lock().push(ticket);
    }
}

fn weak(tickets: &Arc<Tickets>) -> Weak<dyn CancelObserver> {
    Arc::downgrade(&(Arc::clone(tickets) as Arc<dyn CancelObserver>))
}

#[test]
fn cancel_notifies_latest_observer_once() {
    let (queue, backend) = (Arc::new(Tickets::default()), Arc::new(Tickets::default()));
    let token = CancelToken::default();
    assert!(!token.notify(weak(&queue), 1));
    assert!(!token.notify(weak(&backend), 2));
    token.cancel();
    token.cancel();
    assert!(token.is_cancelled());
    assert!(queue.0.lock().is_empty());
    assert_eq!(*backend.0.lock(), [2]);
}

#[test]
fn notify_reports_earlier_cancel() {
    let queue = Arc::new(Tickets::default());
    let token = CancelToken::default();
    token.cancel();
    assert!(token.notify(weak(&queue), 1));
    assert!(queue.0.lock().is_empty());
}

#[test]
fn dropped_observer_is_ignored() {
    let queue = Arc::new(Tickets::default());
    let token = CancelToken::default();
    token.notify(weak(&queue), 1);
    drop(queue);
    token.cancel();
    assert!(token.is_cancelled());
}
