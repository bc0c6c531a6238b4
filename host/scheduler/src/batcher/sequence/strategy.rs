//! The strategy of a sequence batcher: direct or oldest.

use super::direct::DirectStrategy;
use super::live_sequences::{LiveSequences, SequenceKey};
use super::oldest::OldestStrategy;
use super::slots::SequenceSlot;
use crate::batcher::{BatchDecision, BatchableRequest};

/// Knows which sequences have a request to execute, and chooses the sequences of the next batch.
pub(super) enum StrategyState {
    Direct(DirectStrategy),
    Oldest(OldestStrategy),
}

impl StrategyState {
    pub(super) fn ready(&mut self, slot: &SequenceSlot, key: SequenceKey, now: u64) {
        match self {
            Self::Direct(direct) => direct.ready(slot, key),
            Self::Oldest(oldest) => oldest.ready(slot, key, now),
        }
    }

    pub(super) fn release(&mut self, slot: &SequenceSlot) {
        match self {
            Self::Direct(direct) => direct.release(slot),
            Self::Oldest(oldest) => oldest.release(slot),
        }
    }

    /// Whether [`Self::pick`] would find a batch.
    pub(super) fn has_batch<T: BatchableRequest>(
        &mut self,
        instance: usize,
        now: u64,
        open: bool,
        live: &LiveSequences<T>,
    ) -> bool {
        match self {
            Self::Direct(direct) => direct.wait(instance, now, open, live).is_none(),
            Self::Oldest(oldest) => oldest.choose(instance, now, open, live).is_ok(),
        }
    }

    pub(super) fn pick<T: BatchableRequest>(
        &mut self,
        instance: usize,
        now: u64,
        open: bool,
        live: &LiveSequences<T>,
        picks: &mut Vec<Option<SequenceKey>>,
    ) -> BatchDecision {
        match self {
            Self::Direct(direct) => direct.pick(instance, now, open, live, picks),
            Self::Oldest(oldest) => oldest.pick(instance, now, open, live, picks),
        }
    }
}
