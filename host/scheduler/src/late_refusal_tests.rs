//! Unit tests of `late_refusal.rs`.

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn requests_are_refused_that_would_wait_too_long() {
    use WaitLimit::{Deadline, Target, Timeout};
    // Executions of 10 ms, one request each, one instance; a target of 100 ms.
    let estimate =
        ServiceEstimate { execution_ns: 10e6, turn_ns: 10e6, requests: 1.0, saturated: false };
    // Requests ahead, largest batch, no idle instance; the queue's timeout, the request's, the time
    // until its deadline in ms (0 = none); the wait, its limit and which one it is.
    for (ahead, largest, is_busy, queue, own, deadline, expected) in [
        (0, 1, false, 0, 0, 0, None),
        (0, 1, true, 0, 0, 0, None),
        // The execution in progress comes first.
        (9, 1, true, 0, 0, 0, None),
        (10, 1, true, 0, 0, 0, Some((110, 100, Target))),
        (10, 1, false, 0, 0, 0, None),
        (10, 4, true, 0, 0, 0, None),
        (40, 4, true, 0, 0, 0, Some((110, 100, Target))),
        // The timeout of the queue takes the place of the target.
        (10, 1, true, 200, 0, 0, None),
        (20, 1, true, 200, 0, 0, Some((210, 200, Timeout))),
        (5, 1, true, 50, 0, 0, Some((60, 50, Timeout))),
        // The queue does not allow a timeout of its own: the queue's is what counts.
        (5, 1, true, 200, 50, 0, None),
        (5, 1, true, 0, 50, 0, Some((60, 50, Timeout))),
        (4, 1, true, 0, 50, 0, None),
        (10, 1, true, 0, 500, 0, Some((110, 100, Target))),
        // The deadline is that of the response.
        (3, 1, true, 0, 0, 50, None),
        (4, 1, true, 0, 0, 50, Some((50, 50, Deadline))),
        (10, 1, true, 0, 0, 5000, Some((110, 100, Target))),
        // It is executed at once: the estimate may be that of other requests.
        (0, 1, false, 1, 1, 1, None),
    ] {
        let arrival = QueueArrival { ahead, max_requests: largest, queue_timeout_us: queue * 1000 };
        let answer_within = (deadline != 0).then(|| ms(deadline));
        let limits = WaitLimits { target: ms(100), timeout_us: own * 1000, answer_within };
        let late = |(wait, limit, kind)| LateArrival { wait: ms(wait), limit: ms(limit), kind };
        let found = find_late(&estimate, &arrival, (1, is_busy), &limits);
        assert_eq!(found, expected.map(late), "{arrival:?} {limits:?}");
    }
    // Nothing was executed yet.
    let arrival = QueueArrival { ahead: 1000, max_requests: 1, queue_timeout_us: 1 };
    let limits = WaitLimits { target: ms(1), timeout_us: 0, answer_within: Some(ms(1)) };
    assert_eq!(find_late(&ServiceEstimate::default(), &arrival, (1, true), &limits), None);
}
