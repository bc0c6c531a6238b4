//! Unit tests of `service_time.rs`.

use super::*;

const MS: u64 = 1_000_000;

fn estimate(execution: u64, turn: u64, requests: f64, saturated: bool) -> ServiceEstimate {
    let (execution_ns, turn_ns) = (execution as f64, turn as f64);
    ServiceEstimate { execution_ns, turn_ns, requests, saturated }
}

#[test]
fn estimate_is_that_of_the_last_period() {
    let none = ServiceEstimate::default();
    let first = estimate(45 * MS, 45 * MS, 4.0, true);
    let second = estimate(400 * MS, 400 * MS, 1.0, false);
    // An instance with ten executions at a time.
    let third = estimate(600 * MS, 120 * MS, 1.0, true);
    let time = ServiceTime::default();
    // At, in ms; executions, their time and requests since the row before; the estimate.
    let mut work = ExecutedWork::default();
    for (at, executions, busy_ms, requests, expected) in [
        (1, 0, 0, 0, none),
        (11, 1, 45, 4, none),
        (51, 0, 0, 0, first),
        // Renewed after a second.
        (1050, 1, 400, 1, first),
        (1051, 0, 0, 0, second),
        // And after three executions: 1.2 s.
        (2250, 1, 999, 1, second),
        (2251, 9, 5001, 9, third),
        // Nothing new: looked at again soon.
        (9000, 0, 0, 0, third),
        (9049, 1, 1, 1, third),
        (9050, 0, 0, 0, estimate(MS, MS, 1.0, false)),
    ] {
        work.executions += executions;
        work.busy_ns += busy_ms * MS;
        work.requests += requests;
        let found = time.estimate(at * MS, 1, || work);
        assert_eq!(found, expected, "at {at} ms");
    }
}

#[test]
fn history_before_the_first_look_counts_as_it_is() {
    let time = ServiceTime::default();
    let work = ExecutedWork { busy_ns: 600, executions: 2, requests: 4 };
    assert_eq!(time.estimate(5, 1, || work), estimate(300, 300, 2.0, false));
    assert_eq!(time.estimate(6, 1, || panic!("it is not due")), estimate(300, 300, 2.0, false));
}

#[test]
fn waits_follow_batches_and_instances() {
    let ms = Duration::from_millis;
    let alone = estimate(10 * MS, 10 * MS, 1.0, false);
    let batches = estimate(40 * MS, 40 * MS, 4.0, true);
    let overlapping = estimate(500 * MS, 20 * MS, 1.0, true);
    // Waiting, instances, largest batch, no idle instance; the wait, and that of busy instances.
    for (estimate, waiting, instances, largest, is_busy, wait, busy) in [
        (ServiceEstimate::default(), 9, 1, 1, true, 0, 0),
        (alone, 0, 1, 1, false, 0, 0),
        (alone, 0, 1, 1, true, 0, 10),
        (alone, 6, 2, 1, true, 30, 35),
        (alone, 6, 0, 1, true, 60, 70),
        // They could have been in one batch.
        (alone, 8, 1, 8, true, 80, 20),
        (batches, 8, 1, 8, true, 80, 120),
        (overlapping, 10, 1, 1, true, 200, 220),
    ] {
        let found = (
            estimate.wait(waiting, instances),
            estimate.busy_wait(waiting, instances, largest, is_busy),
        );
        assert_eq!(found, (ms(wait), ms(busy)), "{estimate:?} {waiting} {instances} {largest}");
    }
}
