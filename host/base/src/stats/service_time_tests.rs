//! Unit tests of `service_time.rs`.

use super::*;

#[test]
fn time_is_that_of_the_last_period() {
    let time = ServiceTime::default();
    let mut counters = VersionCounters::default();
    assert_eq!(time.estimate_ns(0, &counters), 0.0);
    let mut execute = |requests: u64, ns: u64| {
        counters.executions.entry(4).or_default().compute_infer.ns += ns;
        counters.requests.entry(1).or_default().success.count += requests;
        counters.clone()
    };
    // A batch of four requests.
    assert_eq!(time.estimate_ns(PERIOD_NS, &execute(4, 400)), 100.0);
    let slow = execute(1, 5000);
    assert_eq!(time.estimate_ns(PERIOD_NS + 1, &slow), 100.0);
    assert_eq!(time.estimate_ns(2 * PERIOD_NS, &slow), 5000.0);
    assert_eq!(time.estimate_ns(9 * PERIOD_NS, &slow), 5000.0);
}
