//! Unit tests of `close_rule.rs`: tables of queued requests, the current time and the verdict.

use super::*;

const DELAY: u64 = 100;

/// Requests as (rows, shape, enqueued).
fn verdict(rule: &CloseRule, waiting: &[(u32, u8, u64)], now: u64) -> CloseDecision {
    let mut pending = PendingBatch::default();
    for &(rows, shape, enqueued) in waiting {
        let joins = || shape == waiting[0].1;
        if !pending.wants_more(rule, now, false) || !pending.offer(rule, rows, enqueued, joins) {
            break;
        }
    }
    pending.verdict(rule, now)
}

fn rule(max_rows: u32, preferred: &[u32], delay_ns: u64) -> CloseRule {
    CloseRule::new(&BatchingSettings { max_rows, preferred: preferred.to_vec(), delay_ns })
}

/// Requests of one shape, all enqueued at 0.
fn rows(rows: &[u32]) -> Vec<(u32, u8, u64)> {
    rows.iter().map(|&rows| (rows, 0, 0)).collect()
}

#[test]
fn max_and_preferred_sizes_close_a_batch() {
    use CloseReason::*;
    let take = |count, closed| CloseDecision::Take(count, closed);
    let wait = CloseDecision::Wait(Some(DELAY));
    type Case<'a> = (&'a str, u32, &'a [u32], &'a [u32], CloseDecision);
    #[rustfmt::skip]
    let table: &[Case] = &[
        ("nothing waits", 8, &[4], &[], CloseDecision::Wait(None)),
        ("too few", 8, &[4], &[1, 2], wait),
        ("a preferred size", 8, &[4], &[1, 3], take(2, Preferred)),
        ("the larger one wins", 8, &[2, 4], &[1, 1, 1, 1, 1], take(4, Preferred)),
        (
            "the smaller one rather than waiting for the larger",
            8,
            &[2, 8],
            &[1, 1, 1],
            take(2, Preferred),
        ),
        ("the next would exceed the largest preferred size", 8, &[4], &[3, 2, 1], take(1, Full)),
        ("not when it reaches a preferred size", 8, &[2, 4], &[2, 3], take(1, Preferred)),
        ("the next would exceed the maximum", 4, &[4], &[3, 2], take(1, Full)),
        ("first alone, exactly the largest preferred size", 8, &[4], &[4, 1], take(1, Alone)),
        ("first alone, beyond the largest preferred size", 8, &[4], &[6], take(1, Alone)),
        ("and with more behind it", 8, &[4], &[6, 1, 1], take(1, Alone)),
        ("first alone, beyond the maximum", 4, &[], &[9, 1], take(1, Alone)),
        ("no preferred sizes: as many as fit", 4, &[], &[1, 2, 1, 1], take(3, Full)),
        ("no preferred sizes: too few", 4, &[], &[1, 2], wait),
        ("preferred sizes beyond the maximum are none", 4, &[6, 0], &[1, 3], take(2, Full)),
        ("in any order, twice", 8, &[4, 2, 4], &[2, 2], take(2, Preferred)),
        ("a maximum of 1", 1, &[], &[1, 1], take(1, Alone)),
    ];
    for &(name, max_rows, preferred, waiting, expected) in table {
        assert_eq!(
            verdict(&rule(max_rows, preferred, DELAY), &rows(waiting), 50),
            expected,
            "{name}"
        );
    }
}

#[test]
fn delay_of_the_oldest_request_closes_a_batch() {
    use CloseReason::*;
    type Case<'a> = (&'a str, &'a [u32], &'a [u32], u64, CloseDecision);
    #[rustfmt::skip]
    let table: &[Case] = &[
        ("a moment before", &[4], &[1, 2], 99, CloseDecision::Wait(Some(100))),
        ("everything goes", &[4], &[1, 2], 100, CloseDecision::Take(2, Delay)),
        ("not only the preferred size", &[2], &[1, 1, 1], 100, CloseDecision::Take(3, Delay)),
        ("as far as it fits", &[2], &[1, 1, 5, 2], 100, CloseDecision::Take(3, Full)),
        ("a full one is full", &[2], &[1, 1, 6], 100, CloseDecision::Take(3, Full)),
        ("alone stays alone", &[2], &[3], 100, CloseDecision::Take(1, Alone)),
    ];
    for &(name, preferred, waiting, now, expected) in table {
        assert_eq!(verdict(&rule(8, preferred, DELAY), &rows(waiting), now), expected, "{name}");
    }
    let none = rule(8, &[4], 0);
    assert_eq!(verdict(&none, &rows(&[1, 2]), 0), CloseDecision::Take(2, Delay), "no delay");
    assert_eq!(
        verdict(&none, &rows(&[2, 2, 1]), 9),
        CloseDecision::Take(2, Preferred),
        "but preferred"
    );
    let mut hurried = rule(8, &[4], DELAY);
    hurried.disable_delay();
    assert_eq!(verdict(&hurried, &rows(&[1]), 0), CloseDecision::Take(1, Delay));
    let endless = rule(8, &[4], u64::MAX);
    assert_eq!(verdict(&endless, &[(1, 0, 7)], 8), CloseDecision::Wait(Some(u64::MAX)));
}

/// Known behaviour of TRTIS (docs/protocol/v1.md §14): the delay of the oldest request counts,
/// wherever it is queued.
#[test]
fn delay_counts_for_an_oldest_request_behind_younger_ones() {
    let waiting = [(1, 0, 60), (1, 0, 10), (1, 0, 30)];
    assert_eq!(verdict(&rule(8, &[4], DELAY), &waiting, 109), CloseDecision::Wait(Some(110)));
    assert_eq!(
        verdict(&rule(8, &[4], DELAY), &waiting, 110),
        CloseDecision::Take(3, CloseReason::Delay)
    );
    // The oldest request is behind the preferred size. Its delay has passed all the same.
    assert_eq!(
        verdict(&rule(8, &[1], DELAY), &waiting, 109),
        CloseDecision::Take(1, CloseReason::Alone)
    );
    assert_eq!(
        verdict(&rule(8, &[1], DELAY), &waiting, 110),
        CloseDecision::Take(3, CloseReason::Delay)
    );
}

/// Known behaviour of Triton (docs/protocol/v2.md §8): a shape mismatch closes the batch at once,
/// and requests behind the mismatch are not scanned.
#[test]
fn different_shape_closes_the_batch() {
    use CloseReason::*;
    let rule = rule(8, &[4], DELAY);
    let at = |now, waiting: &[(u32, u8, u64)]| verdict(&rule, waiting, now);
    assert_eq!(at(1, &[(1, 0, 0), (1, 1, 0), (3, 0, 0)]), CloseDecision::Take(1, Shape));
    assert_eq!(at(1, &[(1, 0, 0), (3, 0, 0), (1, 1, 0)]), CloseDecision::Take(2, Preferred));
    assert_eq!(at(100, &[(1, 0, 0), (3, 0, 0), (1, 1, 0)]), CloseDecision::Take(2, Shape));
    // Both reasons hold: the preferred size applies before the delay has passed, the shape after
    // it.
    assert_eq!(at(1, &[(3, 0, 0), (2, 1, 0)]), CloseDecision::Take(1, Full));
    assert_eq!(at(100, &[(3, 0, 0), (2, 1, 0)]), CloseDecision::Take(1, Shape));
}

/// For requests in order of age a scan ends at the largest preferred size until the delay has
/// passed.
#[test]
fn scan_ends_where_the_verdict_is_known() {
    let rule = rule(1000, &[4], DELAY);
    let mut pending = PendingBatch::default();
    let mut offered = 0;
    while pending.wants_more(&rule, 50, true) {
        assert!(pending.offer(&rule, 1, 0, || true));
        offered += 1;
    }
    assert_eq!(
        (offered, pending.verdict(&rule, 50)),
        (4, CloseDecision::Take(4, CloseReason::Preferred))
    );
    assert!(pending.wants_more(&rule, 50, false) && pending.wants_more(&rule, 100, true));
}

/// Times in microseconds of a ResNet-50 with a CUDA graph for each size, measured on one H100.
const MEASURED: [(u32, u64); 6] =
    [(1, 913), (2, 1071), (4, 1309), (8, 1831), (16, 3009), (32, 5542)];

fn prepared(mut rule: CloseRule, sizes: &[(u32, u64)]) -> CloseRule {
    rule.set_prepared(sizes.iter().map(|&(rows, run_ns)| PreparedSize { rows, run_ns }).collect());
    rule
}

#[test]
fn batch_is_padded_or_cut_by_the_times_of_the_prepared_sizes() {
    use CloseReason::*;
    let untimed = MEASURED.map(|(rows, _)| (rows, 0));
    type Case<'a> = (&'a str, &'a [(u32, u64)], &'a [u32], (usize, CloseReason));
    let table: &[Case] = &[
        ("five run as eight", &MEASURED, &[1; 5], (5, Delay)),
        ("nine are eight and one", &MEASURED, &[1; 9], (8, Preferred)),
        ("twelve run as sixteen", &MEASURED, &[1; 12], (12, Delay)),
        ("seventeen are sixteen and one", &MEASURED, &[1; 17], (16, Preferred)),
        ("twenty-five run as thirty-two", &MEASURED, &[1; 25], (25, Delay)),
        ("a prepared size is taken whole", &MEASURED, &[1; 16], (16, Delay)),
        ("one row alone", &MEASURED, &[1], (1, Delay)),
        ("cuts fall between requests", &MEASURED, &[5, 4], (2, Delay)),
        ("and where a request ends", &MEASURED, &[5, 3, 1], (2, Preferred)),
        ("sizes far apart", &[(4, 1300), (32, 5500)], &[1; 5], (4, Preferred)),
        ("unknown times", &untimed, &[1; 9], (9, Delay)),
        ("no size is large enough", &MEASURED[..4], &[1; 9], (9, Delay)),
        ("not prepared at all", &[], &[1; 9], (9, Delay)),
        ("the next would exceed the maximum", &MEASURED, &[8, 1, 31], (1, Preferred)),
    ];
    for &(name, sizes, waiting, (count, closed)) in table {
        for delay in [0, DELAY] {
            let rule = prepared(rule(32, &[], delay), sizes);
            let expected = CloseDecision::Take(count, closed);
            assert_eq!(verdict(&rule, &rows(waiting), DELAY), expected, "{name}, delay {delay}");
        }
    }
}

#[test]
fn batch_waits_for_more_rows_before_it_is_padded() {
    let rule = prepared(rule(8, &[], DELAY), &MEASURED[..4]);
    let five = rows(&[1; 5]);
    assert_eq!(verdict(&rule, &five, DELAY - 1), CloseDecision::Wait(Some(DELAY)));
    assert_eq!(verdict(&rule, &five, DELAY), CloseDecision::Take(5, CloseReason::Delay));
    let eight = CloseDecision::Take(8, CloseReason::Full);
    assert_eq!(verdict(&rule, &rows(&[1; 8]), 1), eight, "a full one does not wait");
}

#[test]
fn preferred_sizes_close_a_batch_before_prepared_ones() {
    let rule = prepared(rule(32, &[4, 16], DELAY), &MEASURED);
    let take = CloseDecision::Take(4, CloseReason::Preferred);
    assert_eq!(verdict(&rule, &rows(&[1; 9]), 1), take);
    let take = CloseDecision::Take(8, CloseReason::Preferred);
    assert_eq!(verdict(&rule, &rows(&[1; 9]), DELAY), take, "the delay has passed: eight and one");
}
