//! The direct strategy: a batch has a position for each slot, up to the highest one with work.

use super::super::{BatchDecision, Batchable, CloseReason};
use super::live::{LiveSequences, QueuedRequest, SequenceKey, front};
use super::slots::Slot;

/// Which slots have work. Chooses; the requests are taken by [`super::sequence`].
#[derive(Debug)]
pub struct DirectStrategy {
    slots: usize,
    delay_ns: u64,
    min_ready: usize,
    instances: Vec<Ready>,
}

#[derive(Clone, Debug, Default)]
struct Ready {
    /// By slot, the sequence with a waiting request. The last one is never `None`: the length is the highest slot
    /// with work, plus one.
    places: Vec<Option<SequenceKey>>,
    count: usize,
}

impl DirectStrategy {
    pub fn new(instances: usize, slots: usize, delay_ns: u64, min_ready: usize) -> Self {
        Self { slots, delay_ns, min_ready, instances: vec![Ready::default(); instances] }
    }

    /// The sequence in `slot` has a request to execute next.
    pub fn ready(&mut self, slot: &Slot, key: SequenceKey) {
        let Some(ready) = self.instances.get_mut(slot.instance()) else { return };
        if ready.places.len() <= slot.index() {
            ready.places.resize(slot.index() + 1, None);
        }
        if ready.places[slot.index()].replace(key).is_none() {
            ready.count += 1;
        }
    }

    /// The sequence that held `slot` is gone.
    pub fn gone(&mut self, slot: &Slot) {
        if let Some(ready) = self.instances.get_mut(slot.instance()) {
            ready.clear(slot.index());
        }
    }

    /// Appends the sequences that the next batch is made of, by position. They stop being ready.
    pub fn pick<T: Batchable>(
        &mut self,
        instance: usize,
        now: u64,
        waits: bool,
        live: &LiveSequences<T>,
        picks: &mut Vec<Option<SequenceKey>>,
    ) -> BatchDecision {
        let Some(ready) = self.instances.get_mut(instance).filter(|ready| ready.count > 0) else {
            return BatchDecision::Wait { until: None };
        };
        let short = waits && self.delay_ns > 0 && ready.count < self.min_ready;
        if short && let Some(oldest) = ready.oldest(live) {
            let until = oldest.arrived.saturating_add(self.delay_ns);
            if now < until {
                return BatchDecision::Wait { until: Some(until) };
            }
        }
        // Whoever has waited longest says which shapes go, so that no shape is left out for ever.
        let lead = ready.oldest(live).map(|waiting| &waiting.item);
        let mut left_out = false;
        for index in 0..ready.places.len() {
            let Some((key, item)) = ready.places[index]
                .and_then(|key| front(live, key).map(|waiting| (key, &waiting.item)))
            else {
                picks.push(None);
                continue;
            };
            let joins =
                lead.is_none_or(|lead| std::ptr::eq(lead, item) || item.compatible_with(lead));
            left_out |= !joins;
            picks.push(joins.then_some(key));
        }
        // Those left out above the last one taken need no position.
        while picks.last() == Some(&None) {
            picks.pop();
        }
        for index in (0..picks.len()).rev() {
            if picks[index].is_some() {
                ready.clear(index);
            }
        }
        BatchDecision::Batch(if self.slots == 1 {
            CloseReason::Alone
        } else if left_out {
            CloseReason::Shape
        } else if short {
            CloseReason::Delay
        } else {
            CloseReason::Sequence
        })
    }
}

impl Ready {
    fn clear(&mut self, index: usize) {
        if self.places.get_mut(index).and_then(Option::take).is_some() {
            self.count -= 1;
        }
        while self.places.last() == Some(&None) {
            self.places.pop();
        }
    }

    /// The request that has waited longest.
    fn oldest<'a, T: Batchable>(&self, live: &'a LiveSequences<T>) -> Option<&'a QueuedRequest<T>> {
        let fronts = self.places.iter().flatten().filter_map(|key| front(live, *key));
        fronts.min_by_key(|waiting| waiting.arrived)
    }
}
