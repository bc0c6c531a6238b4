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
#[path = "steps_tests.rs"]
mod tests;
