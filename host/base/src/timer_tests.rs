//! Unit tests of `timer.rs`.

use super::*;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

struct Recorder(u32, Sender<u32>);

impl DeadlineCallback for Recorder {
    fn on_deadline(&self) {
        let _ = self.1.send(self.0);
    }
}

#[test]
fn calls_in_order_of_time_and_skips_dropped_callbacks() {
    let (sender, fired) = channel();
    let callbacks: Vec<Arc<dyn DeadlineCallback>> = (0..4)
        .map(|i| Arc::new(Recorder(i, sender.clone())) as Arc<dyn DeadlineCallback>)
        .collect();
    let (timer, now) = (DeadlineTimer::leak(), now_ns());
    for (callback, ms) in callbacks.iter().zip([30, 10, 20, 0]) {
        timer.schedule(now + ms * 1_000_000, Arc::downgrade(callback));
    }
    let dropped: Arc<dyn DeadlineCallback> = Arc::new(Recorder(9, sender));
    timer.schedule(now + 5_000_000, Arc::downgrade(&dropped));
    drop(dropped);
    let order: Vec<u32> = (0..4).map(|_| fired.recv().unwrap()).collect();
    assert_eq!(order, [3, 1, 2, 0]);
    assert!(fired.try_recv().is_err());
}

#[test]
fn each_callback_has_one_deadline() {
    let (sender, _rung) = channel();
    let mut state = TimerState::default();
    let callbacks: Vec<Arc<dyn DeadlineCallback>> = (0..2)
        .map(|i| Arc::new(Recorder(i, sender.clone())) as Arc<dyn DeadlineCallback>)
        .collect();
    for at_ns in [500, 400, 900, 450] {
        assert!(state.set(at_ns, Arc::downgrade(&callbacks[0])));
    }
    assert!(!state.set(460, Arc::downgrade(&callbacks[1])));
    assert_eq!((state.deadlines.len(), state.times.len(), state.next()), (2, 2, Some(450)));
    for callback in &callbacks {
        assert!(Weak::ptr_eq(&state.pop().unwrap(), &Arc::downgrade(callback)));
    }
    assert_eq!((state.deadlines.len(), state.times.len()), (0, 0));
}
