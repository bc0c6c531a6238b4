//! Unit tests of `limits.rs`.

use super::*;

fn limits(rate: Option<u32>, in_flight: Option<u32>) -> NameLimits {
    NameLimits { rate, in_flight, usage: Arc::default() }
}

#[test]
fn a_second_of_requests_may_come_at_once() {
    let limits = limits(Some(4), None);
    let start = 100 * SECOND;
    for (after_ms, admitted) in [
        (0, 4),
        (0, 0),
        (249, 0),
        (250, 1),
        (250, 0),
        (1250, 4),
        (1250, 0),
        (60_000, 4),
        (60_000, 0),
    ] {
        let now = start + after_ms * 1_000_000;
        let found = (0..4).filter(|_| limits.admit("a", now).is_ok()).count();
        assert_eq!(found, admitted, "after {after_ms} ms");
    }
    let now = start + 60_000 * 1_000_000;
    let refused = limits.admit("a", now).unwrap_err();
    let wait = Duration::from_millis(250);
    assert_eq!(refused, AccessRefusal::TooFast { name: "a".to_owned(), rate: 4, wait });
}

#[test]
fn one_a_second_is_one_a_second() {
    let limits = limits(Some(1), None);
    let at = |ms: u64| limits.admit("a", SECOND + ms * 1_000_000).is_ok();
    assert_eq!([0, 1, 999, 1000, 1001, 2000].map(at), [true, false, false, true, false, true]);
}

#[test]
fn requests_in_flight_leave_place_when_they_end() {
    let limits = limits(Some(2), Some(2));
    let first = limits.admit("a", 0).unwrap().unwrap();
    let refused = AccessRefusal::TooMany { name: "a".to_owned(), in_flight: 2 };
    let second = limits.admit("a", 0).unwrap();
    assert_eq!(limits.admit("a", SECOND).unwrap_err(), refused);
    drop(first);
    // The refused one has not used up the rate.
    let third = limits.admit("a", SECOND).unwrap();
    drop((second, third));
    assert!(limits.admit("a", SECOND).is_ok());
    assert!(matches!(limits.admit("a", SECOND), Err(AccessRefusal::TooFast { .. })));
    assert_eq!(limits.usage.in_flight.load(Relaxed), 0);
}
