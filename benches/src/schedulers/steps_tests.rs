//! Unit tests of `steps.rs`.

use super::*;
use std::collections::HashMap;

#[test]
fn each_sequence_has_its_steps_in_order() {
    let mut taken = HashMap::new();
    for number in 0..3 * SIDE_BY_SIDE * STEPS {
        let RequestSequence { id, start, end } = step(number);
        let steps = taken.entry(id).or_insert(0);
        *steps += 1;
        assert_eq!((start, end), (*steps == 1, *steps == STEPS));
    }
    assert_eq!(taken.len() as u64, 3 * SIDE_BY_SIDE);
    assert!(taken.values().all(|steps| *steps == STEPS));
}
