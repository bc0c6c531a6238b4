//! The requests of sequences, one after the other: sixteen sequences at a time, eight steps each.

use trtserver::request::{CorrelationId, Sequence};

/// Sequences that advance side by side.
const SIDE_BY_SIDE: u64 = 16;
pub const STEPS: u64 = 8;

/// To which sequence the request of this number belongs, and whether it begins or ends it.
pub fn step(number: u64) -> Sequence {
    let (block, within) = (number / (SIDE_BY_SIDE * STEPS), number % (SIDE_BY_SIDE * STEPS));
    let (step, sequence) = (within / SIDE_BY_SIDE, within % SIDE_BY_SIDE);
    Sequence {
        id: CorrelationId::Number(block * SIDE_BY_SIDE + sequence + 1),
        start: step == 0,
        end: step == STEPS - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_sequence_has_its_steps_in_order() {
        let mut taken = HashMap::new();
        for number in 0..3 * SIDE_BY_SIDE * STEPS {
            let Sequence { id, start, end } = step(number);
            let steps = taken.entry(id).or_insert(0);
            *steps += 1;
            assert_eq!((start, end), (*steps == 1, *steps == STEPS));
        }
        assert_eq!(taken.len() as u64, 3 * SIDE_BY_SIDE);
        assert!(taken.values().all(|steps| *steps == STEPS));
    }
}
