//! The direct strategy: positions, skipped ones, shapes, delay, and how often the old server's tests execute.

use super::harness::{Harness, delayed, direct, run};
use crate::scheduler::batcher::{BatchDecision, BatchEntry, CloseReason};

#[test]
fn skipped_slots_are_idle_and_the_last_seat_is_taken() {
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
fn a_queued_slot_is_woken_for_once() {
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
fn other_shapes_stay_queued() {
    run(
        direct(1, 4),
        "0 push A1^/1 B1^/2 C1^/1 D1^/2
         0 form 0 : A1 - C1 Shape
         0 counts : 2 0
         0 form 0 : - B1 - D1 Sequence
         0 push B2/2 C2/3 D2/3
         0 form 0 : - B2 Shape
         0 form 0 : - - C2 D2 Sequence",
    );
}

#[test]
fn a_shape_that_waits_longest_comes_next() {
    run(
        direct(1, 2),
        "0 push A1^/1 B1^/2
         0 form 0 : A1 Shape
         5 push A2/1
         5 form 0 : - B1 Shape
         5 form 0 : A2 Sequence",
    );
}

#[test]
fn the_delay_waits_for_enough_slots() {
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
    // What waited in the backlog has waited.
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
fn shapes_before_delay_in_the_reason() {
    run(
        delayed(1, 4, 100, 3),
        "0 push A1^/1 B1^/2
         100 form 0 : A1 Shape
         100 form 0 : - B1 Delay",
    );
}

/// Everything that is queued is executed; returns how many batches that took and how many positions were idle.
fn executions(mut harness: Harness, instances: usize) -> (usize, usize) {
    let (mut batches, mut idle) = (0, 0);
    let mut batch = Vec::new();
    for instance in 0..instances {
        while let BatchDecision::Batch(closed) =
            harness.sequences.next_batch(instance, 0, &mut batch)
        {
            batches += 1;
            idle += batch.drain(..).filter(|seat| matches!(seat, BatchEntry::Null)).count();
            assert!(matches!(closed, CloseReason::Sequence | CloseReason::Alone));
        }
    }
    assert!(harness.sequences.is_empty());
    (batches, idle)
}

/// Four slots as 1×4, 2×2 and 4×1, everything queued before anything is executed.
#[test]
fn executions_of_the_old_servers_tests() {
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

/// Five and more sequences on four slots: the fifth takes the place that is free first, and positions show it.
#[test]
fn backlog_of_the_old_servers_tests() {
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
    // Short ones make room early.
    run(
        direct(1, 4),
        "0 push A1^ A2$ B1^ B2 B3 B4$ C1^ C2$ D1^ D2 D3 D4$ E1^ E2$ F1^ F2$
         0 form 0 : A1 B1 C1 D1 Sequence
         0 form 0 : A2 B2 C2 D2 Sequence
         0 form 0 : E1 B3 F1 D3 Sequence
         0 form 0 : E2 B4 F2 D4 Sequence
         0 form 0 : nothing",
    );
    // A successor with the same id, first behind its predecessor's END, then without an END of its own.
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
