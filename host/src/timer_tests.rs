//! Unit tests of `timer.rs`.

use super::*;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

struct Bell(u32, Sender<u32>);

impl Alarm for Bell {
    fn ring(&self) {
        let _ = self.1.send(self.0);
    }
}

#[test]
fn rings_in_order_of_time_and_not_for_the_gone() {
    let (sender, rung) = channel();
    let bells: Vec<Arc<dyn Alarm>> =
        (0..4).map(|i| Arc::new(Bell(i, sender.clone())) as Arc<dyn Alarm>).collect();
    let now = now_ns();
    for (bell, ms) in bells.iter().zip([30, 10, 20, 0]) {
        at(now + ms * 1_000_000, Arc::downgrade(bell));
    }
    let gone: Arc<dyn Alarm> = Arc::new(Bell(9, sender));
    at(now + 5_000_000, Arc::downgrade(&gone));
    drop(gone);
    let order: Vec<u32> = (0..4).map(|_| rung.recv().unwrap()).collect();
    assert_eq!(order, [3, 1, 2, 0]);
    assert!(rung.try_recv().is_err());
}
#[test]
fn nobody_rings_more_often_than_asked() {
    let (sender, _rung) = channel();
    let mut state = State::default();
    let bells: Vec<Arc<dyn Alarm>> =
        (0..2).map(|i| Arc::new(Bell(i, sender.clone())) as Arc<dyn Alarm>).collect();
    for at_ns in [500, 400, 900, 450] {
        assert!(state.set(at_ns, Arc::downgrade(&bells[0])));
    }
    assert!(!state.set(460, Arc::downgrade(&bells[1])));
    assert_eq!((state.due.len(), state.times.len(), state.next()), (2, 2, Some(450)));
    for bell in &bells {
        assert!(Weak::ptr_eq(&state.pop().unwrap(), &Arc::downgrade(bell)));
    }
    assert_eq!((state.due.len(), state.times.len()), (0, 0));
}
