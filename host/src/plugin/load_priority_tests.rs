//! Unit tests of `load_priority.rs`. Without the right to take a niceness back nothing changes, which holds for them, too.

use super::*;
use std::sync::mpsc::channel;

#[test]
fn threads_started_during_a_load_get_their_priority_back() {
    let before = nice();
    let loaded = std::thread::spawn(move || {
        let low = LowPriority::begin();
        let during = nice();
        let (go, wait) = channel();
        let started = std::thread::spawn(move || {
            let during = nice();
            wait.recv().unwrap();
            // An instance's thread.
            (during, nice())
        });
        drop(low);
        restore_started(before);
        go.send(()).unwrap();
        (during, nice(), started.join().unwrap())
    });
    let (during, after, started) = loaded.join().unwrap();
    let expected = if is_restorable() { LOAD_NICE } else { before };
    assert_eq!((during, after, started), (expected, before, (expected, before)));
    assert_eq!(nice(), before);
}
