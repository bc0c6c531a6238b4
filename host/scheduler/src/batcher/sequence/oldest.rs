//! Oldest strategy: the oldest requests, one of each sequence, without gaps.

use super::super::close_rule::{CloseDecision, CloseRule, PendingBatch};
use super::super::settings::BatchingSettings;
use super::super::{BatchDecision, BatchableRequest, CloseReason};
use super::live_sequences::{LiveSequences, SequenceKey, front_request};
use super::slots::SequenceSlot;
use std::collections::BTreeMap;

/// The sequences whose request may be executed, in order. It only chooses; the sequence batcher
/// takes the requests.
#[derive(Debug)]
pub struct OldestStrategy {
    slots: usize,
    rule: CloseRule,
    instances: Vec<OldestReady>,
    next_turn: u64,
}

#[derive(Clone, Debug, Default)]
struct OldestReady {
    /// By turn: the sequence, and since when its next request is ready. That decides and not its
    /// arrival, so that a sequence that sent all requests at once is served no faster than others.
    queue: BTreeMap<u64, (SequenceKey, u64)>,
    /// By slot: the latest turn of its sequence.
    turns: Vec<u64>,
}

impl OldestStrategy {
    pub fn new(instances: usize, slots: usize, batching: BatchingSettings) -> Self {
        let rule = CloseRule::new(&batching);
        Self { slots, rule, instances: vec![OldestReady::default(); instances], next_turn: 0 }
    }

    /// The sequence in `slot` has a request to execute next.
    pub fn ready(&mut self, slot: &SequenceSlot, key: SequenceKey, now: u64) {
        let Some(ready) = self.instances.get_mut(slot.instance()) else { return };
        self.next_turn += 1;
        if ready.turns.len() <= slot.index() {
            ready.turns.resize(slot.index() + 1, 0);
        }
        ready.turns[slot.index()] = self.next_turn;
        ready.queue.insert(self.next_turn, (key, now));
    }

    /// The sequence in `slot` was removed.
    pub fn release(&mut self, slot: &SequenceSlot) {
        if let Some(ready) = self.instances.get_mut(slot.instance())
            && let Some(turn) = ready.turns.get(slot.index())
        {
            ready.queue.remove(turn);
        }
    }

    /// How many sequences the next batch has, and why it is closed; or until when to wait.
    pub fn choose<T: BatchableRequest>(
        &mut self,
        instance: usize,
        now: u64,
        open: bool,
        live: &LiveSequences<T>,
    ) -> Result<(usize, CloseReason), Option<u64>> {
        if !open {
            self.rule.disable_delay();
        }
        let Some(ready) = self.instances.get(instance) else { return Err(None) };
        let mut pending = PendingBatch::default();
        let mut offered = 0;
        let mut first: Option<&T> = None;
        for (key, since) in ready.queue.values() {
            let Some(item) = front_request(live, *key).map(|waiting| &waiting.item) else {
                continue;
            };
            let compatible = || first.is_none_or(|first| item.compatible_with(first));
            if !pending.wants_more(&self.rule, now, true)
                || !pending.offer(&self.rule, 1, *since, compatible)
            {
                break;
            }
            first = first.or(Some(item));
            offered += 1;
        }
        let all_slots = offered == self.slots;
        match pending.verdict(&self.rule, now) {
            // Every slot is in the batch: no further request can arrive for it.
            CloseDecision::Wait(Some(_)) | CloseDecision::Take(_, CloseReason::Delay)
                if all_slots =>
            {
                Ok((offered, CloseReason::Sequence))
            }
            CloseDecision::Take(count, closed) => Ok((count, closed)),
            CloseDecision::Wait(until) => Err(until),
        }
    }

    /// Appends the sequences of the next batch. They are no longer ready.
    pub fn pick<T: BatchableRequest>(
        &mut self,
        instance: usize,
        now: u64,
        open: bool,
        live: &LiveSequences<T>,
        picks: &mut Vec<Option<SequenceKey>>,
    ) -> BatchDecision {
        let (count, closed) = match self.choose(instance, now, open, live) {
            Ok(chosen) => chosen,
            Err(until) => return BatchDecision::Wait { until },
        };
        let Some(ready) = self.instances.get_mut(instance) else {
            return BatchDecision::Wait { until: None };
        };
        for _ in 0..count {
            picks.extend(ready.queue.pop_first().map(|(_, (key, _))| Some(key)));
        }
        BatchDecision::Batch(closed)
    }
}
