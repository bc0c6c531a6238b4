//! Unit tests of `postponement.rs`.

use super::*;

/// How many of a hundred executions are postponed, where a postponed execution has `together` requests.
fn count_postponed(together: usize, ns: u64) -> usize {
    let postponement = Postponement::default();
    postponement.record(2, AVERAGE_OF * ns);
    let mut count = 0;
    for _ in 0..100 {
        let pays = postponement.pays();
        count += usize::from(pays);
        postponement.record(if pays { together } else { 1 }, ns);
    }
    count
}

#[test]
fn executions_are_postponed_where_requests_arrive_together_and_take_long() {
    for (together, ns, want) in [
        (2, MIN_RUN_NS + 10, 100),
        (16, 100_000, 100),
        (16, MIN_RUN_NS - 10, 0),
        // Nine in a row, then one of seventeen.
        (1, 100_000, 9 + 5),
    ] {
        assert_eq!(count_postponed(together, ns), want, "{together} together, {ns} ns");
    }
}

#[test]
fn an_instance_without_executions_postpones_nothing() {
    assert!(!Postponement::default().pays());
}

#[test]
fn company_is_noticed_within_one_period() {
    let postponement = Postponement::default();
    (0..1000).for_each(|_| postponement.record(1, 20_000));
    let tries = (0..).take_while(|_| {
        postponement.record(1, 20_000);
        !postponement.pays()
    });
    assert!(tries.count() <= RETRY_AFTER as usize);
    postponement.record(2, 20_000);
    assert!(postponement.pays());
}
