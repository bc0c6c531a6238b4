//! The oldest strategy: the requests that have waited longest, one of each sequence, without gaps.

use super::super::close_rule::{CloseRule, PendingBatch, Verdict};
use super::super::settings::Batching;
use super::super::{BatchDecision, Batchable, CloseReason};
use super::live::{LiveSequences, SequenceKey, front};
use super::slots::Slot;
use std::collections::BTreeMap;

/// The requests that may be executed, in order. Chooses; they are taken by [`super::sequence`].
#[derive(Debug)]
pub struct OldestStrategy {
    slots: usize,
    rule: CloseRule,
    instances: Vec<Ready>,
    next_turn: u64,
}

#[derive(Clone, Debug, Default)]
struct Ready {
    /// By turn: the sequence, and since when its request waits for nothing but a batch. That, and not its arrival,
    /// decides: a sequence that sent everything at once goes no faster than its neighbours.
    queue: BTreeMap<u64, (SequenceKey, u64)>,
    /// By slot: the last turn that its sequence got.
    turns: Vec<u64>,
}

impl OldestStrategy {
    pub fn new(instances: usize, slots: usize, batching: Batching) -> Self {
        let rule = CloseRule::new(&batching);
        Self { slots, rule, instances: vec![Ready::default(); instances], next_turn: 0 }
    }

    /// The sequence in `slot` has a request to execute next.
    pub fn ready(&mut self, slot: &Slot, key: SequenceKey, now: u64) {
        let Some(ready) = self.instances.get_mut(slot.instance()) else { return };
        self.next_turn += 1;
        if ready.turns.len() <= slot.index() {
            ready.turns.resize(slot.index() + 1, 0);
        }
        ready.turns[slot.index()] = self.next_turn;
        ready.queue.insert(self.next_turn, (key, now));
    }

    /// The sequence that held `slot` is gone.
    pub fn gone(&mut self, slot: &Slot) {
        if let Some(ready) = self.instances.get_mut(slot.instance())
            && let Some(turn) = ready.turns.get(slot.index())
        {
            ready.queue.remove(turn);
        }
    }

    /// Appends the sequences that the next batch is made of. They stop being ready.
    pub fn pick<T: Batchable>(
        &mut self,
        instance: usize,
        now: u64,
        waits: bool,
        live: &LiveSequences<T>,
        picks: &mut Vec<Option<SequenceKey>>,
    ) -> BatchDecision {
        let Some(ready) = self.instances.get_mut(instance) else {
            return BatchDecision::Wait { until: None };
        };
        if !waits {
            self.rule.disable_delay();
        }
        let mut pending = PendingBatch::default();
        let mut offered = 0;
        let mut first: Option<&T> = None;
        for (key, since) in ready.queue.values() {
            let Some(item) = front(live, *key).map(|waiting| &waiting.item) else { continue };
            let joins = || first.is_none_or(|first| item.compatible_with(first));
            if !pending.wants_more(&self.rule, now, true)
                || !pending.offer(&self.rule, 1, *since, joins)
            {
                break;
            }
            first = first.or(Some(item));
            offered += 1;
        }
        let all_places = offered == self.slots;
        let (count, closed) = match pending.verdict(&self.rule, now) {
            // Nobody could still join, so there is nothing to wait for.
            Verdict::Wait(Some(_)) | Verdict::Take(_, CloseReason::Delay) if all_places => {
                (offered, CloseReason::Sequence)
            }
            Verdict::Take(count, closed) => (count, closed),
            Verdict::Wait(until) => return BatchDecision::Wait { until },
        };
        for _ in 0..count {
            picks.extend(ready.queue.pop_first().map(|(_, (key, _))| Some(key)));
        }
        BatchDecision::Batch(closed)
    }
}
