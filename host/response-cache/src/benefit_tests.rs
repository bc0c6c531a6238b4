//! Unit tests of `benefit.rs`: windows and pauses on a fake clock.

use super::CacheState::{Off, On, Trial};
use super::*;

const SECOND: u64 = 1_000_000_000;

/// A window of 1000 look-ups of 1 µs, of which `hits` are hits, with executions of 10 µs.
fn window(hits: u64) -> WindowSums {
    let executions = 1000 - hits;
    WindowSums { hits, cost_ns: 1_000_000, executions, execution_ns: executions * 10_000 }
}

#[test]
fn switches_with_hysteresis() {
    // Seconds, hits of the window that ends then (none: a request finds the cache off), and the
    // state afterwards. 91 hits of 11 µs save as much as the look-ups cost.
    let rows = [
        (1, Some(500), On),
        (2, Some(0), On),
        (3, Some(91), On),
        (4, Some(90), On),
        (5, Some(90), Off),
        (14, None, Off),
        (15, None, Trial),
        // A trial must save twice the cost.
        (16, Some(181), Off),
        (35, None, Off),
        (36, None, Trial),
        (37, Some(0), Off),
        (76, None, Off),
        (77, None, Trial),
        (78, Some(182), On),
        (79, Some(0), On),
        (80, Some(0), Off),
        // The pause is short again.
        (90, None, Trial),
    ];
    let mut judge = BenefitJudge::default();
    for (at, hits, want) in rows {
        let state = match hits {
            Some(hits) => judge.window_ended(window(hits), at * SECOND),
            None => judge.try_again(at * SECOND),
        };
        assert_eq!(state, want, "at {at} s");
    }
}

#[test]
fn hits_alone_are_judged_by_the_last_executions() {
    let mut judge = BenefitJudge::default();
    let all = |cost_ns| WindowSums { hits: 1000, cost_ns, ..WindowSums::default() };
    // Nothing is known of executions but that they take the work of a queue.
    assert_eq!(judge.window_ended(all(1_000_000), 1), On);
    assert_eq!(judge.losing, 0);
    judge.window_ended(all(1_000_001), 2);
    assert_eq!(judge.losing, 1);
    judge.window_ended(window(500), 3);
    judge.window_ended(all(11_000_000), 4);
    assert_eq!(judge.losing, 0);
}

#[test]
fn pauses_have_a_limit() {
    let (mut judge, mut now) = (BenefitJudge::default(), 0);
    judge.window_ended(window(0), now);
    judge.window_ended(window(0), now);
    for _ in 0..20 {
        now = judge.until_ns;
        assert_eq!(judge.try_again(now), Trial);
        assert_eq!(judge.window_ended(window(0), now), Off);
    }
    assert_eq!(judge.until_ns - now, LONGEST_PAUSE_NS);
}

#[test]
fn useless_cache_passes_requests_and_is_tried_again() {
    let (benefit, now) = (CacheBenefit::default(), 5);
    let mut first = 0;
    while benefit.is_on(|| now) {
        first += u64::from(benefit.looked_up(1000, 64, now));
        benefit.executed(100);
    }
    assert_eq!((benefit.cost_ns.load(Ordering::Relaxed), first), (0, 1));
    assert_eq!((benefit.state(), benefit.switched_off()), (Off, 1));
    let later = now + FIRST_PAUSE_NS;
    // The first of them was the end of the loop.
    for _ in 0..PASSES - 2 {
        assert!(!benefit.is_on(|| later));
    }
    assert!(benefit.is_on(|| later));
    assert_eq!((benefit.state(), benefit.passed()), (Trial, PASSES));
    for _ in 0..WINDOW {
        benefit.hit();
        assert!(!benefit.looked_up(100, 64, later));
    }
    assert_eq!((benefit.state(), benefit.switched_off()), (On, 1));
}

#[test]
fn costly_look_ups_are_judged_early() {
    // Nanoseconds of a look-up and of an execution, bytes, and look-ups until it is off.
    for (ns, execution_ns, bytes, want) in [
        (1_000, 100, 64, 2 * WINDOW),
        // 64 of them take 12.8 ms.
        (200_000, 1_000, 1 << 20, 2 * SHORT_WINDOW),
        // They are a fiftieth of the executions.
        (200_000, 10_000_000, 1 << 20, 2 * WINDOW),
        // A thread that is interrupted each time: 20.1 µs count.
        (5_000_000, 1_000, 64, 2 * 512),
    ] {
        let benefit = CacheBenefit::default();
        let mut lookups = 0;
        while benefit.is_on(|| 0) {
            benefit.looked_up(ns, bytes, 0);
            benefit.executed(execution_ns);
            lookups += 1;
        }
        assert_eq!(lookups, want, "{ns} ns for {bytes} bytes");
    }
}
