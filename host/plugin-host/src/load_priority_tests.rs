//! Unit tests of `load_priority.rs`. Without the right to take a niceness back nothing changes,
//! which holds for them, too.

use super::*;
use std::sync::mpsc::channel;

#[test]
fn threads_started_during_a_load_get_their_priority_back() {
    let before = server_nice();
    let loaded = std::thread::spawn(move || {
        let low = LowPriority::begin();
        let during = nice();
        let (go, wait) = channel();
        let (report, reported) = channel();
        let started = std::thread::spawn(move || {
            report.send(nice()).unwrap();
            wait.recv().unwrap();
            nice()
        });
        let inherited = reported.recv().unwrap();
        drop(low);
        restore_started();
        go.send(()).unwrap();
        (during, nice(), inherited, started.join().unwrap())
    });
    let expected = if is_restorable() { load_nice() } else { before };
    assert_eq!(loaded.join().unwrap(), (expected, before, expected, before));
    assert_eq!(nice(), before);
}
