//! Unit tests of `direct.rs`: positions, null requests, shapes, delay, and the batches of Triton's
//! own tests.

use super::harness::{SequenceHarness, delayed, direct, run};
use crate::batcher::{BatchDecision, BatchEntry, CloseReason};

#[test]
fn slots_without_request_are_null_and_the_last_position_is_not() {
    run(
        direct(1, 4),
        "0 push A1^ B1^ C1^ D1^
         0 form 0 : A1 B1 C1 D1 Sequence
         0 push C2
         0 form 0 : - - C2 Sequence
         0 push A2 D2
         0 form 0 : A2 - - D2 Sequence
         0 push B2$
         0 form 0 : - B2 Sequence
         0 push D3$ D4^
         0 form 0 : - D4 - D3 Sequence
         0 form 0 : nothing
         0 form 9 : nothing",
    );
}

#[test]
fn only_the_first_queued_request_of_a_slot_wakes() {
    run(
        direct(2, 1),
        "0 push A1^ B1^
         0 woken  : 0 1
         0 push A2 B2
         0 woken  :
         0 form 1 : B1 Alone
         0 woken  :
         0 form 1 : B2 Alone
         0 push B3
         0 woken  : 1",
    );
}

#[test]
fn requests_of_other_shapes_stay_queued() {
    run(
        direct(1, 4),
        "0 push A1^/1 B1^/2 C1^/1 D1^/2
         0 form 0 : A1 - C1 - Shape
         0 counts : 2 0
         0 form 0 : - B1 - D1 Sequence
         0 push B2/2 C2/3 D2/3
         0 form 0 : - B2 - - Shape
         0 form 0 : - - C2 D2 Sequence",
    );
}

#[test]
fn shape_of_the_oldest_request_comes_next() {
    run(
        direct(1, 2),
        "0 push A1^/1 B1^/2
         0 form 0 : A1 - Shape
         5 push A2/1
         5 form 0 : - B1 Shape
         5 form 0 : A2 Sequence",
    );
}

#[test]
fn delay_waits_for_min_ready_slots() {
    run(
        delayed(1, 4, 100, 3),
        "0 push A1^
         10 push B1^
         10 form 0 : until 100
         20 push A2
         20 form 0 : until 100
         30 push C1^
         30 form 0 : A1 B1 C1 Sequence
         30 form 0 : until 120
         50 push C2
         60 form 0 : until 120
         120 form 0 : A2 - C2 Delay
         130 push B2 C3 D1^
         130 form 0 : - B2 C3 D1 Sequence",
    );
    // Time in the backlog counts for the delay.
    run(
        delayed(1, 2, 100, 2),
        "0 push A1^ B1^$ C1^
         0 form 0 : A1 B1 Sequence
         50 form 0 : until 100
         100 form 0 : - C1 Delay",
    );
    run(
        delayed(1, 2, u64::MAX, 2),
        "5 push A1^
         5 form 0 : until 18446744073709551615
         6 push B1^
         6 form 0 : A1 B1 Sequence",
    );
    run(
        delayed(1, 4, 100, 3),
        "0 push A1^/1 B1^/2 C1^/1
         0 form 0 : A1 - C1 Shape
         100 form 0 : - B1 Delay",
    );
}

#[test]
fn reason_is_shape_rather_than_delay() {
    run(
        delayed(1, 4, 100, 3),
        "0 push A1^/1 B1^/2
         100 form 0 : A1 - Shape
         100 form 0 : - B1 Delay",
    );
}

/// Executes everything queued. Returns the number of batches and of null requests.
fn executions(mut harness: SequenceHarness, instances: usize) -> (usize, usize) {
    let (mut batches, mut idle) = (0, 0);
    let mut batch = Vec::new();
    for instance in 0..instances {
        while let BatchDecision::Batch(closed) =
            harness.sequences.next_batch(instance, 0, &mut batch)
        {
            batches += 1;
            idle += batch.drain(..).filter(|entry| matches!(entry, BatchEntry::Null)).count();
            assert!(matches!(closed, CloseReason::Sequence | CloseReason::Alone));
        }
    }
    assert!(harness.sequences.is_empty());
    (batches, idle)
}

/// Four slots as 1×4, 2×2 and 4×1; all requests are queued before the first execution.
#[test]
fn batches_of_tritons_sequence_tests() {
    let half = "0 push A1^ A2 A3 A4$ B1^ B2 B3 B4$";
    let skipped = "0 push A1^ A2$ B1^ B2$ C1^ C2 C3 C4$ D1^ D2 D3 D4$";
    let full = "0 push A1^ A2 A3$ B1^ B2 B3$ C1^ C2 C3$ D1^ D2 D3$";
    for (instances, slots) in [(1, 4), (2, 2), (4, 1)] {
        let count = |script: &str| executions(run(direct(instances, slots), script), instances);
        assert_eq!(count(half), (4 * instances.min(2), 0));
        assert_eq!(count(full), (3 * instances, 0));
        let expected = match instances {
            1 => (4, 4),
            2 => (8, 4),
            _ => (12, 0),
        };
        assert_eq!(count(skipped), expected);
    }
}

/// Triton's `test_ragged_batch`: sequences of three shapes are executed apart, each time with all
/// four positions.
#[test]
fn batch_keeps_positions_of_slots_that_are_left_out() {
    run(
        direct(1, 4),
        "0 push A1^/2 A2$/2 B1^/2 B2$/2 C1^/1 C2$/1 D1^/3 D2$/3
         0 form 0 : A1 B1 - - Shape
         0 form 0 : A2 B2 - - Shape
         0 form 0 : - - C1 - Shape
         0 form 0 : - - C2 - Shape
         0 form 0 : - - - D1 Sequence
         0 form 0 : - - - D2 Sequence
         0 form 0 : nothing",
    );
}

/// Five and more sequences on four slots: the fifth gets the slot that becomes free first, as
/// positions show.
#[test]
fn batches_of_tritons_backlog_tests() {
    run(
        direct(1, 4),
        "0 push A1^ A2 A3$ B1^ B2 B3$ C1^ C2 C3$ D1^ D2 D3$ E1^ E2$ F1^$
         0 counts : 15 3
         0 form 0 : A1 B1 C1 D1 Sequence
         0 form 0 : A2 B2 C2 D2 Sequence
         0 form 0 : A3 B3 C3 D3 Sequence
         0 form 0 : E1 F1 Sequence
         0 form 0 : E2 Sequence
         0 form 0 : nothing",
    );
    // Short sequences free their slots early.
    run(
        direct(1, 4),
        "0 push A1^ A2$ B1^ B2 B3 B4$ C1^ C2$ D1^ D2 D3 D4$ E1^ E2$ F1^ F2$
         0 form 0 : A1 B1 C1 D1 Sequence
         0 form 0 : A2 B2 C2 D2 Sequence
         0 form 0 : E1 B3 F1 D3 Sequence
         0 form 0 : E2 B4 F2 D4 Sequence
         0 form 0 : nothing",
    );
    // The next sequence with the same id, first after END of the one before, then without END of
    // its own.
    run(
        direct(1, 4),
        "0 push A1^ A2$ B1^ B2$ C1^ C2$ D1^ D2 D3$ E1^ E2$ E3^ E4
         0 form 0 : A1 B1 C1 D1 Sequence
         0 form 0 : A2 B2 C2 D2 Sequence
         0 form 0 : E1 E3 - D3 Sequence
         0 push E5
         0 form 0 : E2 E4 Sequence
         0 form 0 : - E5 Sequence
         0 form 0 : nothing",
    );
    // A sequence without END keeps its slot, and the backlog waits.
    run(
        direct(1, 1),
        "0 push A1^ A2 B1^ B2$
         0 form 0 : A1 Alone
         0 form 0 : A2 Alone
         0 form 0 : nothing
         0 counts : 2 2
         9 push A3^$ : A3 conflict
         9 form 0 : A3 Alone
         9 form 0 : B1 Alone",
    );
}
