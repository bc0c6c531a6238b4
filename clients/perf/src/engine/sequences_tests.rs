//! Unit tests of `sequences.rs`.

use super::{SequenceChooser, SequenceSlot, Sequences};

fn chooser(streams: Vec<usize>, length: usize) -> SequenceChooser {
    SequenceChooser::new(streams, Some(Sequences { length, concurrent: 4, first_id: 100 }), (0, 1))
}

/// Ids, flags and data of `count` requests in one slot.
fn steps(chooser: &mut SequenceChooser, count: usize) -> Vec<(u32, bool, bool, (usize, usize))> {
    let mut slot = SequenceSlot::new();
    (0..count)
        .map(|_| {
            let (step, data) = chooser.step(&mut slot, false);
            (step.id, step.start, step.end, data)
        })
        .collect()
}

#[test]
fn given_streams_are_sent_whole_and_in_turn() {
    let expected = [
        (100, true, false, (0, 0)),
        (100, false, true, (0, 1)),
        (101, true, false, (1, 0)),
        (101, false, false, (1, 1)),
        (101, false, true, (1, 2)),
        (102, true, false, (0, 0)),
    ];
    assert_eq!(steps(&mut chooser(vec![2, 3], 20), 6), expected);
}

#[test]
fn lengths_vary_by_a_fifth() {
    let all = steps(&mut chooser(vec![1], 20), 20_000);
    let mut lengths: Vec<usize> =
        all.split(|step| step.2).map(|part| part.len() + 1).take(500).collect();
    lengths.sort_unstable();
    assert_eq!((lengths[0], lengths[lengths.len() - 1]), (16, 24));
    assert!(steps(&mut chooser(vec![1], 1), 3).iter().all(|step| step.1 && step.2));
}

#[test]
fn a_sequence_ends_early_on_demand() {
    let mut chooser = chooser(vec![1], 20);
    let mut slot = SequenceSlot::new();
    assert!(!slot.is_open());
    let (first, _) = chooser.step(&mut slot, false);
    assert!(first.start && !first.end && slot.is_open());
    let (last, _) = chooser.step(&mut slot, true);
    assert!(last.id == first.id && !last.start && last.end && !slot.is_open());
}

#[test]
fn threads_use_different_ids() {
    let sequences = Sequences { length: 1, concurrent: 4, first_id: 10 };
    let ids = |index| {
        let mut chooser = SequenceChooser::new(vec![1], Some(sequences.clone()), (index, 2));
        let mut slot = SequenceSlot::new();
        [(); 3].map(|()| chooser.step(&mut slot, false).0.id)
    };
    assert_eq!((ids(0), ids(1)), ([10, 12, 14], [11, 13, 15]));
}
