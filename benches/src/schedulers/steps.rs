//! Requests of sequences in order of submission: sixteen sequences at a time, eight steps each.

use trtserver_request::{CorrelationId, RequestSequence};

/// Concurrent sequences.
const SIDE_BY_SIDE: u64 = 16;
pub const STEPS: u64 = 8;

/// The sequence of the request with this number, and whether it starts or ends it.
pub fn step(number: u64) -> RequestSequence {
    let (block, within) = (number / (SIDE_BY_SIDE * STEPS), number % (SIDE_BY_SIDE * STEPS));
    let (step, sequence) = (within / SIDE_BY_SIDE, within % SIDE_BY_SIDE);
    RequestSequence {
        id: CorrelationId::Number(block * SIDE_BY_SIDE + sequence + 1),
        start: step == 0,
        end: step == STEPS - 1,
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
