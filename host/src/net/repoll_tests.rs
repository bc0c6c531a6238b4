//! Unit tests of `repoll.rs`.

use super::*;
use std::sync::atomic::AtomicUsize;

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn self_wakes_repoll_up_to_the_limit_and_later_wakes_reach_the_task() {
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let task = Waker::from(Arc::clone(&count));
    let cx = Context::from_waker(&task);
    let woken = || count.0.load(Ordering::SeqCst);
    let repoll = Repoll::default();
    // How often a future that wakes itself `times` is polled, and how often its task is woken.
    for (times, want, task_wakes) in [(0, 1, 0), (1, 2, 0), (3, 4, 0), (4, 4, 1), (100, 4, 1)] {
        let (mut polled, before) = (0, woken());
        let pending = repoll.poll(&cx, |cx| {
            polled += 1;
            if polled <= times {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        assert!(pending.is_pending());
        assert_eq!((polled, woken() - before), (want, task_wakes), "woke itself {times} times");
    }
    let mut kept = None;
    let ready = repoll.poll(&cx, |cx| {
        kept = Some(cx.waker().clone());
        Poll::Ready(7)
    });
    assert!(ready == Poll::Ready(7));
    let before = woken();
    kept.unwrap().wake();
    assert_eq!(woken() - before, 1);
}
