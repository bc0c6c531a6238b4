//! Unit tests of `in_flight.rs`.

use super::*;
use std::thread;

#[test]
fn requests_of_all_threads_are_counted() {
    let requests = InFlightRequests::default();
    let [first, second] = [requests.begin(), requests.begin()];
    let others: Vec<InFlightGuard> = thread::scope(|scope| {
        let threads: Vec<_> = (0..40).map(|_| scope.spawn(|| requests.begin())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(requests.count(), 42);
    drop(first);
    thread::scope(|scope| {
        scope.spawn(|| drop(second));
    });
    assert_eq!(requests.count(), 40);
    drop(others);
    assert_eq!(requests.count(), 0);
}

#[test]
fn counters_are_on_cache_lines_of_their_own() {
    let requests = InFlightRequests::default();
    let counters: Vec<usize> =
        requests.counters.iter().map(|counter| Arc::as_ptr(counter).addr()).collect();
    assert!(counters.iter().all(|address| address.is_multiple_of(128)), "{counters:x?}");
}
