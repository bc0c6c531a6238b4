//! Unit tests of `borrower.rs`.

use super::*;
use std::sync::mpsc;

#[test]
fn strangers_and_nested_calls_have_no_turn() {
    std::thread::spawn(|| {
        assert!(turn(1).is_none());
        Borrowers::new(3, || {}).join();
        let first = turn(1);
        assert!(first.is_some());
        assert!(turn(2).is_none());
        drop(first);
        assert!(turn(3).is_some());
    })
    .join()
    .unwrap();
}

#[test]
fn one_thread_stays_free() {
    let group = Borrowers::new(2, || {});
    let turn_elsewhere = {
        let group = Arc::clone(&group);
        move || {
            group.join();
            turn(1).is_some()
        }
    };
    group.join();
    let mine = turn(1);
    assert!(mine.is_some());
    assert!(!std::thread::spawn(turn_elsewhere.clone()).join().unwrap());
    drop(mine);
    assert!(std::thread::spawn(turn_elsewhere).join().unwrap());
}

#[test]
fn who_is_held_up_is_rescued_once() {
    let (sender, rescued) = mpsc::channel();
    let sender = Mutex::new(sender);
    let group = Borrowers::new(2, move || sender.lock().send(()).unwrap());
    group.join();
    for _ in 0..2 {
        // The watch sleeps by now.
        std::thread::sleep(TOLERATED * (QUIET_LOOKS + 5));
        assert!(rescued.try_recv().is_err());
        let held_up = turn(now_ns());
        rescued.recv_timeout(Duration::from_secs(5)).unwrap();
        assert!(rescued.recv_timeout(TOLERATED * 10).is_err());
        drop(held_up);
    }
}
