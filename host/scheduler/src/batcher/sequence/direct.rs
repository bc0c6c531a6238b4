//! Direct strategy: a batch has a position for each slot, up to the highest slot with a request.

use super::super::{BatchDecision, BatchableRequest, CloseReason};
use super::live_sequences::{LiveSequences, QueuedRequest, SequenceKey, front_request};
use super::slots::SequenceSlot;

/// Which slots have a request. It only chooses; the sequence batcher takes the requests.
#[derive(Debug)]
pub struct DirectStrategy {
    slots: usize,
    delay_ns: u64,
    min_ready: usize,
    instances: Vec<DirectReady>,
}

#[derive(Clone, Debug, Default)]
struct DirectReady {
    /// By slot, the sequence with a queued request. The last element is never `None`: the length is
    /// the highest slot with a request, plus one.
    slots: Vec<Option<SequenceKey>>,
    count: usize,
}

impl DirectStrategy {
    pub fn new(instances: usize, slots: usize, delay_ns: u64, min_ready: usize) -> Self {
        Self { slots, delay_ns, min_ready, instances: vec![DirectReady::default(); instances] }
    }

    /// The sequence in `slot` has a request to execute next.
    pub fn ready(&mut self, slot: &SequenceSlot, key: SequenceKey) {
        let Some(ready) = self.instances.get_mut(slot.instance()) else { return };
        if ready.slots.len() <= slot.index() {
            ready.slots.resize(slot.index() + 1, None);
        }
        if ready.slots[slot.index()].replace(key).is_none() {
            ready.count += 1;
        }
    }

    /// The sequence in `slot` was removed.
    pub fn release(&mut self, slot: &SequenceSlot) {
        if let Some(ready) = self.instances.get_mut(slot.instance()) {
            ready.clear(slot.index());
        }
    }

    /// How long `instance` has to wait for a batch; `None` if there is one.
    pub fn wait<T: BatchableRequest>(
        &self,
        instance: usize,
        now: u64,
        open: bool,
        live: &LiveSequences<T>,
    ) -> Option<BatchDecision> {
        let Some(ready) = self.instances.get(instance).filter(|ready| ready.count > 0) else {
            return Some(BatchDecision::Wait { until: None });
        };
        let oldest = ready.oldest(live).filter(|_| self.is_short(ready, open))?;
        let until = oldest.arrived.saturating_add(self.delay_ns);
        (now < until).then_some(BatchDecision::Wait { until: Some(until) })
    }

    /// Fewer slots have a request than should have one.
    fn is_short(&self, ready: &DirectReady, open: bool) -> bool {
        open && self.delay_ns > 0 && ready.count < self.min_ready
    }

    /// Appends the sequences of the next batch by position. They are no longer ready.
    pub fn pick<T: BatchableRequest>(
        &mut self,
        instance: usize,
        now: u64,
        open: bool,
        live: &LiveSequences<T>,
        picks: &mut Vec<Option<SequenceKey>>,
    ) -> BatchDecision {
        if let Some(wait) = self.wait(instance, now, open, live) {
            return wait;
        }
        let short = self.instances.get(instance).is_some_and(|ready| self.is_short(ready, open));
        let Some(ready) = self.instances.get_mut(instance) else {
            return BatchDecision::Wait { until: None };
        };
        // The shapes of the oldest request decide, so that no shape starves.
        let lead = ready.oldest(live).map(|waiting| &waiting.item);
        let mut left_out = false;
        for index in 0..ready.slots.len() {
            let Some((key, item)) = ready.slots[index]
                .and_then(|key| front_request(live, key).map(|waiting| (key, &waiting.item)))
            else {
                picks.push(None);
                continue;
            };
            let compatible =
                lead.is_none_or(|lead| std::ptr::eq(lead, item) || item.compatible_with(lead));
            left_out |= !compatible;
            picks.push(compatible.then_some(key));
        }
        // A slot that is left out keeps its position: models see one batch size while the same
        // slots have requests.
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

impl DirectReady {
    fn clear(&mut self, index: usize) {
        if self.slots.get_mut(index).and_then(Option::take).is_some() {
            self.count -= 1;
        }
        while self.slots.last() == Some(&None) {
            self.slots.pop();
        }
    }

    /// The request that arrived first.
    fn oldest<'a, T: BatchableRequest>(
        &self,
        live: &'a LiveSequences<T>,
    ) -> Option<&'a QueuedRequest<T>> {
        let fronts = self.slots.iter().flatten().filter_map(|key| front_request(live, *key));
        fronts.min_by_key(|waiting| waiting.arrived)
    }
}
