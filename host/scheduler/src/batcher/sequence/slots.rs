//! Sequence slots of instances, as values that exist once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One sequence slot of one instance. The value can be neither copied nor created outside of
/// [`FreeSlots`], so two sequences cannot share a slot, and releasing one twice does not compile:
///
/// ```
/// # use trtserver_scheduler::batcher::sequence::slots::FreeSlots;
/// let mut slots = FreeSlots::new(1, 1);
/// if let Some(slot) = slots.take() {
///     slots.release(slot);
/// }
/// ```
///
/// ```compile_fail,E0382
/// # use trtserver_scheduler::batcher::sequence::slots::FreeSlots;
/// let mut slots = FreeSlots::new(1, 1);
/// if let Some(slot) = slots.take() {
///     slots.release(slot);
///     slots.release(slot);
/// }
/// ```
///
/// ```compile_fail,E0599
/// # use trtserver_scheduler::batcher::sequence::slots::FreeSlots;
/// let mut slots = FreeSlots::new(1, 1);
/// if let Some(slot) = slots.take() {
///     slots.release(slot.clone());
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a slot that is dropped instead of released is lost"]
pub struct SequenceSlot {
    instance: usize,
    index: usize,
}

impl SequenceSlot {
    pub fn instance(&self) -> usize {
        self.instance
    }

    /// The slot's position in a batch of the direct strategy.
    pub fn index(&self) -> usize {
        self.index
    }
}

/// The free slots.
#[derive(Debug)]
pub struct FreeSlots {
    instances: usize,
    per_instance: usize,
    /// Slots below this one, counted across instances, have been taken before. The others need no
    /// memory, however many a configuration asks for.
    fresh: usize,
    /// (index, instance) of released slots.
    returned: BinaryHeap<Reverse<(usize, usize)>>,
}

impl FreeSlots {
    pub fn new(instances: usize, per_instance: usize) -> Self {
        Self { instances, per_instance, fresh: 0, returned: BinaryHeap::new() }
    }

    /// The lowest index of all instances first, so that sequences spread over instances before one
    /// is full.
    pub fn take(&mut self) -> Option<SequenceSlot> {
        // Every released slot precedes every fresh one.
        if let Some(Reverse((index, instance))) = self.returned.pop() {
            return Some(SequenceSlot { instance, index });
        }
        if self.instances == 0 || self.fresh / self.instances >= self.per_instance {
            return None;
        }
        let slot = SequenceSlot {
            instance: self.fresh % self.instances,
            index: self.fresh / self.instances,
        };
        self.fresh += 1;
        Some(slot)
    }

    pub fn release(&mut self, slot: SequenceSlot) {
        debug_assert!(slot.instance < self.instances && slot.index < self.per_instance);
        self.returned.push(Reverse((slot.index, slot.instance)));
    }

    pub fn any_free(&self) -> bool {
        // Without instances there are none.
        let fresh = self.fresh.checked_div(self.instances);
        !self.returned.is_empty() || fresh.is_some_and(|index| index < self.per_instance)
    }

    /// How many slots are taken.
    pub fn held(&self) -> usize {
        self.fresh - self.returned.len()
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
