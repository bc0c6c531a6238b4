//! Unit tests of `oldest.rs`: order, one request of a sequence at a time, and when a batch is
//! closed.

use super::harness::{oldest, run};

#[test]
fn batches_are_compact_and_in_order() {
    run(
        oldest(4, 4, &[], 0),
        "0 push A1^ B1^ C1^ D1^
         0 form 0 : A1 B1 C1 D1 Full
         1 push C2 A2
         1 form 0 : C2 A2 Delay
         1 form 0 : nothing
         1 form 7 : nothing",
    );
}

#[test]
fn one_request_of_a_sequence_at_a_time() {
    run(
        oldest(4, 2, &[], 0),
        "0 push A1^ A2 A3 A4 B1^ C1^ C2$
         0 woken  : 0
         0 form 0 : A1 B1 Full
         0 form 0 : C1 A2 Full
         0 push B2 C3 : C3 NoStart
         0 woken  : 0
         0 form 0 : C2 A3 Full
         0 form 0 : B2 A4 Full
         0 form 0 : nothing",
    );
}

#[test]
fn freed_slot_belongs_to_the_next_batch() {
    let harness = run(
        oldest(2, 4, &[], 0),
        "0 push A1^$ B1^ C1^ C2$ D1^$
         0 counts : 5 3
         0 form 0 : A1 B1 Sequence
         0 counts : 3 1
         0 form 0 : C1 Delay
         0 push B2$
         0 form 0 : C2 B2 Sequence
         0 form 0 : D1 Delay",
    );
    assert!(harness.sequences.is_empty());
}

#[test]
fn largest_reached_preferred_size_closes_the_batch() {
    run(
        oldest(8, 8, &[2, 4], 100),
        "0 push A1^
         0 form 0   : until 100
         5 push B1^
         5 form 0   : A1 B1 Preferred
         10 push C1^ D1^ E1^
         10 form 0  : C1 D1 Preferred
         10 form 0  : until 110
         11 push A2 B2 C2 D2
         11 form 0  : E1 A2 B2 C2 Preferred
         11 form 0  : until 111
         12 push E2 A3
         120 form 0 : D2 E2 A3 Delay",
    );
    run(
        oldest(8, 4, &[4], 0),
        "0 push A1^ B1^ C1^
         0 form 0 : A1 B1 C1 Delay
         0 push A2 B2 C2 D1^ E1^
         0 form 0 : A2 B2 C2 D1 Full
         0 form 0 : E1 Delay",
    );
}

#[test]
fn no_delay_when_all_slots_have_requests() {
    run(
        oldest(3, 8, &[6], 100),
        "0 push A1^ B1^
         0 form 0 : until 100
         1 push C1^ D1^
         1 form 0 : A1 B1 C1 Sequence
         2 push A2 C2
         2 form 0 : until 102
         3 push B2
         3 form 0 : A2 C2 B2 Sequence",
    );
}

#[test]
fn delay_counts_from_when_a_request_is_ready() {
    run(
        oldest(4, 4, &[], 100),
        "0 push A1^ A2
         50 push B1^
         60 form 0  : until 100
         100 form 0 : A1 B1 Delay
         150 form 0 : until 200
         200 form 0 : A2 Delay",
    );
    run(
        oldest(2, 4, &[], u64::MAX),
        "9 push A1^
         9 form 0 : until 18446744073709551615",
    );
}

#[test]
fn different_shape_closes_the_batch_and_comes_next() {
    run(
        oldest(4, 4, &[], 100),
        "0 push A1^/1 B1^/2 C1^/1
         0 form 0 : A1 Shape
         0 form 0 : B1 Shape
         0 form 0 : until 100
         100 push A2/2
         100 form 0 : C1 Shape",
    );
    run(
        oldest(8, 4, &[2], 100),
        "0 push A1^/1 B1^/1 C1^/2
         0 form 0 : A1 B1 Preferred
         0 form 0 : until 100",
    );
}

#[test]
fn model_without_batching_executes_one_request_at_a_time() {
    run(
        oldest(2, 1, &[], 100),
        "0 push A1^ B1^ A2
         0 form 0 : A1 Alone
         0 form 0 : B1 Alone
         0 form 0 : A2 Alone
         0 form 0 : nothing",
    );
}

#[test]
fn cancelled_sequence_leaves_the_order() {
    run(
        oldest(2, 2, &[], 100),
        "0 push A1^ B1^ C1^ B2
         0 cancel A1 : A1 Cancelled
         0 counts    : 3 0
         0 form 0    : B1 C1 Full
         7 cancel B2 : B2 Cancelled
         7 form 0    : nothing
         8 push D1^
         8 form 0    : until 108",
    );
}

#[test]
fn sequences_spread_over_instances() {
    let mut settings = oldest(2, 4, &[], 0);
    settings.instances = 2;
    run(
        settings,
        "0 push A1^ B1^ C1^ D1^ E1^
         0 form 1 : B1 D1 Sequence
         0 form 0 : A1 C1 Sequence
         0 woken  : 0 1
         1 push D2$
         1 form 1 : D2 Delay
         1 form 1 : E1 Delay
         1 form 0 : nothing",
    );
}
