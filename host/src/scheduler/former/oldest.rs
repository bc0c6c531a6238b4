//! The oldest strategy: the requests that have waited longest, one of each sequence, without gaps.

use super::live::{Key, Live, front};
use super::settings::Batching;
use super::slots::Slot;
use super::{Closed, Formed, Item};
use std::collections::BTreeMap;

/// The requests that may be executed, in order. Chooses; they are taken by [`super::sequence`].
#[derive(Debug)]
pub struct Oldest {
    slots: usize,
    batching: Batching,
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
        Self { slots, batching, instances: vec![Ready::default(); instances], next_turn: 0 }
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
        let delay = if waits { self.batching.delay_ns } else { 0 };
        let Some(ready) = self.instances.get_mut(instance) else {
            return Formed::Nothing { until: None };
        };
        let Some(&(_, since)) = ready.queue.values().next() else {
            return Formed::Nothing { until: None };
        };
        let until = since.saturating_add(delay);
        let scan = Scan::of(&self.batching, ready, live);
        let all_places = scan.count == self.slots;
        let (count, closed) = match scan.close(delay > 0 && now >= until) {
            Some(closed) => closed,
            // Nobody could still join, so there is nothing to wait for.
            None if all_places => (scan.count, Closed::Sequence),
            None if delay == 0 => (scan.count, Closed::Delay),
            None => return Formed::Nothing { until: Some(until) },
        };
        for _ in 0..count {
            picks.extend(ready.queue.pop_first().map(|(_, (key, _))| Some(key)));
        }
        Formed::Batch(closed)
    }
}

/// What a look at the queue, in order and without passing anybody over, found.
struct Scan {
    limit: usize,
    count: usize,
    /// The largest preferred size that was reached, or 0.
    best: usize,
    /// Ended by a request that does not join.
    shape: bool,
}

impl Scan {
    fn of<T: Item>(batching: &Batching, ready: &Ready, live: &Live<T>) -> Self {
        let limit = (batching.max_rows as usize).max(1);
        let largest = batching.preferred.last().map_or(limit, |size| limit.min(*size as usize));
        let mut scan = Self { limit, count: 0, best: 0, shape: false };
        let mut first: Option<&T> = None;
        for (key, _) in ready.queue.values().take(largest.max(1)) {
            let Some(item) = front(live, *key).map(|waiting| &waiting.item) else { continue };
            if !first.is_none_or(|first| item.joins(first)) {
                scan.shape = true;
                break;
            }
            first = first.or(Some(item));
            scan.count += 1;
            if scan.count == limit || batching.preferred.contains(&(scan.count as u32)) {
                scan.best = scan.count;
            }
        }
        scan
    }

    /// How many to take and why, if that is decided whoever else may come. `aged`: the first one has waited as long as
    /// it may.
    fn close(&self, aged: bool) -> Option<(usize, Closed)> {
        let count = if aged || self.best == 0 { self.count } else { self.best };
        if self.limit == 1 {
            Some((count, Closed::Alone))
        } else if count == self.limit {
            Some((count, Closed::Full))
        } else if count == self.best {
            Some((count, Closed::Preferred))
        } else if self.shape {
            Some((count, Closed::Shape))
        } else if aged {
            Some((count, Closed::Delay))
        } else {
            None
        }
    }
}
