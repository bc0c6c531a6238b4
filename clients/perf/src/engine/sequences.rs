//! Which request of which sequence is sent next.

use super::arrivals::Random;

/// Sequences of a stateful model.
#[derive(Clone, Debug)]
pub struct Sequences {
    /// Steps of a sequence; each has up to a fifth more or less.
    pub length: usize,
    /// Sequences at a time in an open loop.
    pub concurrent: usize,
    /// First correlation id.
    pub first_id: u32,
}

/// A request's place in its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceStep {
    pub id: u32,
    pub start: bool,
    pub end: bool,
}

/// One sequence after another; at most one of its requests is in flight.
#[derive(Debug)]
pub struct SequenceSlot {
    remaining: usize,
    id: u32,
    stream: usize,
    step: usize,
}

impl SequenceSlot {
    pub fn new() -> Self {
        SequenceSlot { remaining: 0, id: 0, stream: 0, step: 0 }
    }

    /// Whether a sequence has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.remaining > 0
    }
}

/// Chooses data and correlation ids for the requests of one thread.
#[derive(Debug)]
pub struct SequenceChooser {
    /// Requests of each data stream.
    streams: Vec<usize>,
    sequences: Option<Sequences>,
    random: Random,
    next_id: u32,
    id_step: u32,
    next_stream: usize,
    next_request: usize,
}

impl SequenceChooser {
    /// For thread `index` of `count`. `streams` are the numbers of steps of each data stream.
    pub fn new(
        streams: Vec<usize>,
        sequences: Option<Sequences>,
        (index, count): (usize, usize),
    ) -> Self {
        let first = sequences.as_ref().map_or(0, |sequences| sequences.first_id);
        SequenceChooser {
            next_stream: index % streams.len().max(1),
            next_request: index,
            streams,
            sequences,
            random: Random(index as u64 + 1),
            next_id: first + index as u32,
            id_step: count as u32,
        }
    }

    /// Data of the next request outside of sequences: its stream and step.
    pub fn request(&mut self) -> (usize, usize) {
        let at = self.next_request;
        self.next_request = self.next_request.wrapping_add(1);
        (0, at % self.streams.first().copied().unwrap_or(1).max(1))
    }

    /// The next step of the sequence in a slot, and its data. `last` ends the sequence with this
    /// request.
    pub fn step(&mut self, slot: &mut SequenceSlot, last: bool) -> (SequenceStep, (usize, usize)) {
        let start = slot.remaining == 0;
        if start {
            slot.remaining = self.length(self.next_stream);
            slot.id = self.next_id;
            self.next_id += self.id_step;
            (slot.stream, slot.step) = (self.next_stream, 0);
            self.next_stream = (self.next_stream + 1) % self.streams.len().max(1);
        }
        if last {
            slot.remaining = 1;
        }
        let steps = self.streams.get(slot.stream).copied().unwrap_or(1).max(1);
        let data = (slot.stream, slot.step % steps);
        slot.step += 1;
        slot.remaining -= 1;
        (SequenceStep { id: slot.id, start, end: slot.remaining == 0 }, data)
    }

    /// Given data determines the length; generated data has one step, and the configured length
    /// varies by a fifth.
    fn length(&mut self, stream: usize) -> usize {
        let given = self.streams.get(stream).copied().unwrap_or(1);
        let usual = self.sequences.as_ref().map_or(1, |sequences| sequences.length);
        if given > 1 {
            return given;
        }
        let spread = usual / 5;
        (usual - spread + self.random.below(2 * spread as u64 + 1) as usize).max(1)
    }
}

#[cfg(test)]
#[path = "sequences_tests.rs"]
mod tests;
