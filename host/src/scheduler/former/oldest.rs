//! The oldest strategy: the requests that have waited longest, one of each sequence, without gaps.

use super::live::{Key, Live, front};
use super::rule::{Pending, Rule, Verdict};
use super::settings::Batching;
use super::slots::Slot;
use super::{Closed, Formed, Item};
use std::collections::BTreeMap;

/// The requests that may be executed, in order. Chooses; they are taken by [`super::sequence`].
#[derive(Debug)]
pub struct Oldest {
    slots: usize,
    rule: Rule,
    instances: Vec<Ready>,
    next_turn: u64,
}

#[derive(Clone, Debug, Default)]
struct Ready {
    /// By turn: the sequence, and since when its request waits for nothing but a batch. That, and not its arrival,
    /// decides: a sequence that sent everything at once goes no faster than its neighbours.
    queue: BTreeMap<u64, (Key, u64)>,
    /// By slot: the last turn that its sequence got.
    turns: Vec<u64>,
}

impl Oldest {
    pub fn new(instances: usize, slots: usize, batching: Batching) -> Self {
        let rule = Rule::new(&batching);
        Self { slots, rule, instances: vec![Ready::default(); instances], next_turn: 0 }
    }

    /// The sequence in `slot` has a request to execute next.
    pub fn ready(&mut self, slot: &Slot, key: Key, now: u64) {
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
    pub fn pick<T: Item>(
        &mut self,
        instance: usize,
        now: u64,
        waits: bool,
        live: &Live<T>,
        picks: &mut Vec<Option<Key>>,
    ) -> Formed {
        let Some(ready) = self.instances.get_mut(instance) else {
            return Formed::Nothing { until: None };
        };
        if !waits {
            self.rule.hurry();
        }
        let mut pending = Pending::default();
        let mut offered = 0;
        let mut first: Option<&T> = None;
        for (key, since) in ready.queue.values() {
            let Some(item) = front(live, *key).map(|waiting| &waiting.item) else { continue };
            let joins = || first.is_none_or(|first| item.joins(first));
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
            Verdict::Wait(Some(_)) | Verdict::Take(_, Closed::Delay) if all_places => {
                (offered, Closed::Sequence)
            }
            Verdict::Take(count, closed) => (count, closed),
            Verdict::Wait(until) => return Formed::Nothing { until },
        };
        for _ in 0..count {
            picks.extend(ready.queue.pop_first().map(|(_, (key, _))| Some(key)));
        }
        Formed::Batch(closed)
    }
}
