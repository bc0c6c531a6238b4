//! Unit tests of `permit.rs` and of its watchdog.

use super::super::watchdog::{IDLE_CHECKS, STALL_LIMIT};
use super::*;
use parking_lot::Mutex;
use std::sync::mpsc;
use std::time::Duration;
use trtserver_base::clock::now_ns;

#[test]
fn only_registered_threads_get_a_permit_and_only_one() {
    std::thread::spawn(|| {
        assert!(InlinePermit::try_acquire(1).is_none());
        InlinePermits::new(3, || {}).register_thread();
        let first = InlinePermit::try_acquire(1);
        assert!(first.is_some());
        assert!(InlinePermit::try_acquire(2).is_none());
        drop(first);
        assert!(InlinePermit::try_acquire(3).is_some());
    })
    .join()
    .unwrap();
}

#[test]
fn one_thread_never_gets_a_permit() {
    let permits = InlinePermits::new(2, || {});
    let other_thread = {
        let permits = Arc::clone(&permits);
        move || {
            permits.register_thread();
            InlinePermit::try_acquire(1).is_some()
        }
    };
    permits.register_thread();
    let first = InlinePermit::try_acquire(1);
    assert!(first.is_some());
    assert!(!std::thread::spawn(other_thread.clone()).join().unwrap());
    drop(first);
    assert!(std::thread::spawn(other_thread).join().unwrap());
}

#[test]
fn watchdog_reports_a_stalled_thread_once() {
    let (sender, woken) = mpsc::channel();
    let sender = Mutex::new(sender);
    let permits = InlinePermits::new(2, move || sender.lock().send(()).unwrap());
    permits.register_thread();
    for _ in 0..2 {
        // The watchdog sleeps by now.
        std::thread::sleep(STALL_LIMIT * (IDLE_CHECKS + 5));
        assert!(woken.try_recv().is_err());
        let stalled = InlinePermit::try_acquire(now_ns());
        woken.recv_timeout(Duration::from_secs(5)).unwrap();
        assert!(woken.recv_timeout(STALL_LIMIT * 10).is_err());
        drop(stalled);
    }
}
