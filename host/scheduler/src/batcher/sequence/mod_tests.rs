//! Unit tests of the sequence batcher: arrival, slots, backlog, idle limit, timeouts, cancellation,
//! close.

#[path = "direct_tests.rs"]
mod direct_strategy;
#[path = "harness.rs"]
mod harness;
#[path = "oldest_tests.rs"]
mod oldest_strategy;
#[path = "properties_tests.rs"]
mod properties;

use harness::{delayed, direct, oldest, run};

#[test]
fn arrivals_are_checked_in_order() {
    run(
        direct(1, 2),
        "0 push A1x2         : A1 NotOneRow
         0 push 01x2         : 01 NotOneRow
         0 push 02^          : 02 NoCorrelationId
         0 push \"3^         : \"3 NoCorrelationId
         0 push -4^          : -4 NoCorrelationId
         0 push A5           : A5 NoStart
         0 push A6$          : A6 NoStart
         0 push A7^x0        : A7 NotOneRow
         0 woken             :
         0 counts            : 0 0
         0 deadline             : none
         0 push A1^          :
         0 push a2           : a2 NoStart
         0 push a1^ B1^ b1^  :
         0 form 0            : A1 a1 Sequence",
    );
}

#[test]
fn sequences_spread_over_instances_before_slots() {
    run(
        direct(2, 2),
        "0 push A1^ B1^ C1^ D1^ E1^
         0 woken  : 0 1
         0 counts : 5 1
         0 form 1 : B1 D1 Sequence
         0 form 0 : A1 C1 Sequence
         0 form 0 : nothing
         0 counts : 1 1
         1 push D2$ B2$ A2$
         1 form 1 : B2 D2 Sequence
         1 form 1 : E1 Sequence
         1 form 0 : A2 Sequence
         2 push F1^ G1^
         2 form 1 : - G1 Sequence
         2 form 0 : F1 Sequence",
    );
}

#[test]
fn lowest_free_slot_is_taken_first() {
    run(
        direct(1, 4),
        "0 push A1^$ B1^ C1^$ D1^
         0 form 0 : A1 B1 C1 D1 Sequence
         1 push E1^ F1^ D2
         1 form 0 : E1 - F1 D2 Sequence",
    );
}

#[test]
fn end_frees_the_id_at_arrival_and_the_slot_when_taken() {
    run(direct(1, 2), "0 push A1^ A2$ A3 : A3 NoStart");
    run(
        direct(1, 2),
        "0 push A1^ A2$
         0 push A3^
         0 push A4$ A5^
         0 counts : 5 1
         0 form 0 : A1 A3 Sequence
         0 counts : 3 1
         0 form 0 : A2 A4 Sequence
         0 counts : 1 0
         0 form 0 : A5 Sequence
         0 push A6$ A7$ : A7 NoStart
         0 form 0 : A6 Sequence",
    );
}

#[test]
fn start_and_end_in_one_request() {
    let harness = run(
        direct(1, 1),
        "0 push A1^$ A2^$ B1^$
         0 counts : 3 2
         0 deadline  : none
         0 form 0 : A1 Alone
         0 form 0 : A2 Alone
         0 form 0 : B1 Alone
         0 form 0 : nothing",
    );
    assert!(harness.sequences.is_empty());
}

#[test]
fn start_of_an_active_sequence_keeps_its_slot() {
    run(
        direct(1, 2),
        "0 push A1^ B1^ C1^
         0 push A2^ : A2 conflict
         0 push C2^ : C2 conflict
         0 form 0 : A1 B1 Sequence
         0 form 0 : A2 Sequence
         1 push A3$ B2
         1 form 0 : A3 B2 Sequence
         2 form 0 : C1 Sequence
         2 form 0 : C2 Sequence
         3 push C3^$ : C3 conflict
         3 push C4   : C4 NoStart
         3 form 0 : C3 Sequence
         3 form 0 : nothing",
    );
}

#[test]
fn backlog_sequence_gets_a_slot_with_all_its_requests() {
    run(
        direct(1, 2),
        "0 push A1^ B1^ C1^ D1^ C2 D2 D3$
         0 counts : 7 5
         0 form 0 : A1 B1 Sequence
         0 form 0 : nothing
         1 push B2$
         1 woken  : 0
         1 form 0 : - B2 Sequence
         1 counts : 5 3
         1 form 0 : - C1 Sequence
         1 push C3$
         1 form 0 : - C2 Sequence
         1 form 0 : - C3 Sequence
         1 form 0 : - D1 Sequence
         1 push A2$
         1 form 0 : A2 D2 Sequence
         1 push E1^
         1 form 0 : E1 D3 Sequence",
    );
}

#[test]
fn backlog_may_contain_an_id_twice() {
    // The second and third A have ended before the first one is removed.
    run(
        direct(1, 1),
        "0 push A1^ A2$ A3^ A4$ A5^ A6$ A7^
         0 counts : 7 5
         0 form 0 : A1 Alone
         0 form 0 : A2 Alone
         0 form 0 : A3 Alone
         0 push A8$
         0 form 0 : A4 Alone
         0 form 0 : A5 Alone
         0 form 0 : A6 Alone
         0 form 0 : A7 Alone
         0 form 0 : A8 Alone
         0 form 0 : nothing",
    );
}

#[test]
fn idle_sequence_loses_its_slot() {
    run(
        direct(1, 1),
        "0 push A1^ B1^
         0 deadline          : 1000000
         5 form 0         : A1 Alone
         5 woken          : 0
         5 form 0         : nothing
         1000000 expire   :
         1000000 counts   : 1 1
         1000000 deadline    : 1000005
         1000004 expire   :
         1000005 expire   :
         1000005 woken    : 0
         1000005 counts   : 1 0
         1000005 push A2  : A2 NoStart
         1000005 push B2  :
         1000005 form 0   : B1 Alone
         1000006 form 0   : B2 Alone
         1000006 form 0   : nothing
         2000005 expire   :
         2000005 push B3  :
         3000004 expire   :
         3000004 form 0   : B3 Alone
         3000004 form 0   : nothing
         4000003 expire   :
         4000003 push B4  :
         4000003 form 0   : B4 Alone
         4000003 form 0   : nothing
         5000003 expire   :
         5000003 push B5  : B5 NoStart
         5000003 deadline    : none",
    );
}

#[test]
fn sequence_with_queued_requests_is_not_idle() {
    run(
        direct(1, 1),
        "0 push A1^ B1^
         9000000 expire :
         9000000 deadline  : 10000000
         9000000 form 0 : A1 Alone
         9000000 form 0 : nothing
         9000000 push B2
         9999999 expire :
         9999999 counts : 2 2
         10000000 expire :
         10000000 counts : 2 0
         10000000 push A2 : A2 NoStart
         10000000 form 0 : B1 Alone",
    );
}

#[test]
fn executing_sequence_is_not_idle() {
    run(
        direct(1, 1),
        "0 push A1^ B1^
         0 form 0       : A1 Alone
         5000000 expire :
         5000000 form 0 : nothing
         5000000 push A2
         5000000 form 0 : A2 Alone
         9000000 form 0 : nothing
         9999999 expire :
         9999999 counts : 1 1
         10000000 expire :
         10000000 form 0 : B1 Alone",
    );
}

#[test]
fn backlog_gets_the_slot_of_an_idle_sequence() {
    run(
        direct(1, 2),
        "0 push A1^ A2 B1^ C1^ C2$ D1^
         0 form 0       : A1 B1 Sequence
         0 form 0       : A2 Sequence
         9 push B2$
         9 form 0       : - B2 Sequence
         10 form 0      : - C1 Sequence
         10 form 0      : - C2 Sequence
         10 form 0      : - D1 Sequence
         500000 push D2 E1^
         500000 form 0  : - D2 Sequence
         1000008 expire :
         1000008 form 0 : nothing
         1000009 expire :
         1000009 form 0 : E1 Sequence
         1000009 push A3 : A3 NoStart",
    );
}

#[test]
fn idle_limit_may_be_u64_max() {
    let mut settings = direct(1, 1);
    settings.idle_ns = u64::MAX;
    run(
        settings,
        "7 push A1^ B1^@18446744073709551615
         7 deadline  : none
         7 form 0 : A1 Alone
         18446744073709551614 expire :
         18446744073709551614 push A2$
         18446744073709551614 form 0 : A2 Alone
         18446744073709551614 push B2
         18446744073709551614 cancel B1 : B1 Cancelled, B2 SequenceCancelled
         18446744073709551614 deadline : none",
    );
}

#[test]
fn timeout_in_the_backlog_ends_the_sequence() {
    run(
        direct(1, 1),
        "0 push A1^@1 B1^ B2@5 C1^@7
         10 push B3@3 B4@4
         10 deadline      : 3010
         3009 expire   :
         3010 expire   : B1 SequenceTimedOut, B2 SequenceTimedOut, B3 SequenceTimedOut, B4 SequenceTimedOut
         3010 counts   : 2 1
         3010 deadline    : 7000
         3010 push B5  : B5 NoStart
         3010 push B6^ :
         3010 form 0   : A1 Alone
         3010 push A2$ :
         3010 form 0   : A2 Alone
         9000 expire   :
         9000 form 0   : C1 Alone",
    );
    // After END the id belongs to the next sequence, which stays.
    run(
        direct(1, 1),
        "0 push A1^ B1^@1 B2$ B3^
         1000 expire : B1 SequenceTimedOut, B2 SequenceTimedOut
         1000 push B4 :
         1000 counts : 3 2",
    );
}

#[test]
fn cancel_of_one_request_cancels_its_sequence() {
    run(
        direct(1, 1),
        "0 push A1^ A2 A3 B1^
         0 form 0    : A1 Alone
         0 woken     : 0
         1 cancel A1 :
         1 cancel A3 : A2 SequenceCancelled, A3 Cancelled
         1 cancel A3 :
         1 woken     : 0
         1 push A4   : A4 SequenceCancelled
         1 push A5$  : A5 SequenceCancelled
         1 form 0    : B1 Alone
         2 push A6^  :
         2 push A7   :
         2 counts    : 2 2
         3 cancel A6 : A6 Cancelled, A7 SequenceCancelled
         3 counts    : 0 0
         3 push A8   : A8 SequenceCancelled
         900000 push A9 B2 : A9 SequenceCancelled
         1000003 expire :
         1000003 push A10 : A10 SequenceCancelled
         2000003 expire :
         2000003 push A11 : A11 NoStart",
    );
}

#[test]
fn cancellation_ends_at_the_next_start() {
    run(
        direct(1, 1),
        "0 push A1^
         0 form 0    : A1 Alone
         1 push A2 A3 A4^ A5 : A4 conflict
         1 cancel A3 : A2 SequenceCancelled, A3 Cancelled
         1 push A6
         1 form 0    : A4 Alone
         2 push A7^ A8 B1^ : A7 conflict
         2 cancel A8 : A7 SequenceCancelled, A8 Cancelled
         2 push A9   : A9 SequenceCancelled
         2 form 0    : A5 Alone
         2 counts    : 2 1
         2 form 0    : A6 Alone
         2 form 0    : B1 Alone",
    );
}

#[test]
fn timeout_of_cancelled_requests_is_removed() {
    run(
        direct(1, 1),
        "0 push A1^ B1^@5 B2^ : B2 conflict
         0 cancel B1 : B1 Cancelled
         5000 expire :
         5000 counts : 2 1",
    );
}

#[test]
fn cancel_after_end_keeps_the_id_usable() {
    run(
        direct(1, 1),
        "0 push A1^ A2$ A3^ A4
         0 cancel A1 : A1 Cancelled, A2 SequenceCancelled
         0 push A5   :
         0 form 0    : A3 Alone
         0 push B1^ B2$ C1^
         0 cancel B2 : B1 SequenceCancelled, B2 Cancelled
         0 push B3   : B3 NoStart
         0 counts    : 3 1",
    );
}

#[test]
fn cancel_removes_from_the_middle_of_the_backlog() {
    run(
        direct(1, 1),
        "0 push A1^$ B1^$ C1^$ D1^$@1
         0 cancel C1    : C1 Cancelled
         0 form 0       : A1 Alone
         0 counts       : 2 1
         1000 expire    : D1 SequenceTimedOut
         1000 form 0    : B1 Alone
         1000 form 0    : nothing",
    );
}

#[test]
fn close_executes_the_backlog() {
    let harness = run(
        delayed(2, 1, 500, 2),
        "0 push A1^ B1^ C1^ C2 D1^ E1^$
         500 form 0  : A1 Alone
         500 woken   : 0 1
         500 close
         500 woken   : 0 1
         500 counts  : 5 2
         500 form 0  : C1 Alone
         500 form 1  : B1 Alone
         500 form 1  : D1 Alone
         500 form 1  : E1 Alone
         500 form 1  : nothing
         500 form 0  : C2 Alone
         500 form 0  : nothing
         500 close
         500 deadline   : none",
    );
    assert!(harness.sequences.is_empty());
    let harness = run(
        oldest(2, 4, &[], 500),
        "0 push A1^ B1^ C1^
         0 form 0   : A1 B1 Sequence
         0 close
         0 counts   : 1 0
         0 form 0   : C1 Delay",
    );
    assert!(harness.sequences.is_empty());
}

#[test]
fn requests_of_a_sequence_share_one_state() {
    use crate::batcher::BatchEntry;
    let mut harness = run(direct(1, 1), "0 push A1^ A2 A3^$ A4^ : A3 conflict");
    let mut seen = Vec::new();
    for _ in 0..4 {
        let mut batch = Vec::new();
        harness.sequences.next_batch(0, 0, &mut batch);
        let Some(BatchEntry::Request(job)) = batch.pop() else { panic!("nothing taken") };
        seen.push(job.memory.unwrap());
    }
    let counts: Vec<u32> = seen.iter().map(|memory| memory.1).collect();
    assert_eq!(counts, [1, 2, 3, 1]);
    assert!(std::rc::Rc::ptr_eq(&seen[0].0, &seen[2].0));
    assert!(!std::rc::Rc::ptr_eq(&seen[0].0, &seen[3].0));
}

#[test]
fn lost_state_ends_sequences_that_have_begun() {
    run(
        direct(2, 2),
        "0 push A1^ B1^ C1^ D1^ E1^
         0 form 0 : A1 C1 Sequence
         0 form 1 : B1 D1 Sequence
         1 push A2 C2 C3^ C4 B2 : C3 conflict
         1 lose 0 : A2 SequenceLost, C2 SequenceLost
         1 counts : 4 0
         2 push A3 : A3 SequenceLost
         2 push C5
         3 form 0 : E1 C3 Sequence
         3 form 1 : B2 Sequence
         4 push A4^
         4 push A5 E2 :
         5 form 0 : E2 C4 Sequence",
    );
    // A sequence that was not executed yet has lost nothing. The others are refused until START, or
    // until the idle limit has passed.
    let harness = run(
        oldest(4, 4, &[], 0),
        "0 push A1^ B1^ B2$
         0 form 0 : A1 B1 Delay
         1 push C1^
         1 lose 0 : B2 SequenceLost
         2 push B3 : B3 NoStart
         2 push A2 : A2 SequenceLost
         3 form 0 : C1 Delay
         4 lose 0 :
         5 push C2$ : C2 SequenceLost
         1000005 expire :
         1000005 push A3 : A3 NoStart",
    );
    assert!(harness.sequences.is_empty());
}

#[test]
fn new_sequence_is_behind_all_requests_unless_it_has_a_slot_of_its_own() {
    for (settings, script, expected) in [
        (direct(1, 2), "0 push A1^ A2 A3", 0),
        (direct(1, 2), "0 push A1^ A2 B1^ B2", 4),
        (oldest(2, 4, &[], 0), "0 push A1^ A2", 2),
    ] {
        assert_eq!(run(settings, script).sequences.ahead_of_start(), expected, "{script}");
    }
}
