//! Sequence batcher: assigns sequences to slots of instances and keeps each sequence's requests in
//! order.
//!
//! A sequence is live from its START until its END was taken. It holds a slot of one instance, or
//! waits in the backlog with all its requests. Its id is active only until END arrives.

mod arrival;
mod direct;
mod live_sequences;
mod oldest;
mod refused_ids;
mod removal;
pub mod slots;
mod strategy;

use super::settings::{SequenceSettings, SequenceStrategy};
use super::{BatchDecision, BatchEntry, BatchableRequest, QueueTicket, WakeTarget};
use direct::DirectStrategy;
use live_sequences::{LiveSequences, QueuedRequest, SequenceKey};
use oldest::OldestStrategy;
use refused_ids::RefusedIds;
use slots::FreeSlots;
use std::collections::{BTreeSet, HashMap};
use strategy::StrategyState;
use trtserver_request::CorrelationId;

/// A request that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequencePush {
    pub ticket: QueueTicket,
    /// START of a sequence that had not ended. It keeps its slot and queue; worth a warning.
    pub conflict: bool,
}

/// Batcher of a model with sequences: gives sequences slots, and forms batches from their requests.
pub struct SequenceBatcher<T: BatchableRequest> {
    instances: usize,
    idle_ns: u64,
    open: bool,
    live: LiveSequences<T>,
    /// The sequences whose END has not arrived.
    active: HashMap<CorrelationId, SequenceKey>,
    /// Every queued request.
    tickets: HashMap<QueueTicket, SequenceKey>,
    slots: FreeSlots,
    strategy: StrategyState,
    /// Sequences without a slot; keys grow, so the first is the oldest.
    backlog: BTreeSet<SequenceKey>,
    /// Number of requests of the sequences in `backlog`.
    backlog_requests: usize,
    /// Times at which sequences leave the backlog by a timeout.
    backlog_timeouts: BTreeSet<(u64, SequenceKey)>,
    /// One entry for each active sequence: when to check whether it is idle. Requests do not move
    /// it; a check that comes too early is repeated later.
    idle_checks: BTreeSet<(u64, SequenceKey)>,
    cancelled_ids: RefusedIds,
    /// Ids of sequences whose instance lost their state.
    lost_ids: RefusedIds,
    /// Source of tickets and keys.
    next: u64,
    /// Reused from batch to batch.
    picks: Vec<Option<SequenceKey>>,
    /// By instance, the sequences of the batch that it executes.
    executing: Vec<Vec<SequenceKey>>,
}

impl<T: BatchableRequest> SequenceBatcher<T> {
    pub fn new(settings: SequenceSettings) -> Self {
        let SequenceSettings { instances, slots, idle_ns, strategy } = settings;
        // With a limit of 0 no sequence could ever continue.
        let idle_ns = idle_ns.max(1);
        Self {
            instances,
            idle_ns,
            open: true,
            live: LiveSequences::new(),
            active: HashMap::new(),
            tickets: HashMap::new(),
            slots: FreeSlots::new(instances, slots),
            strategy: match strategy {
                SequenceStrategy::Direct { delay_ns, min_ready } => StrategyState::Direct(
                    DirectStrategy::new(instances, slots, delay_ns, min_ready),
                ),
                SequenceStrategy::Oldest(batching) => {
                    StrategyState::Oldest(OldestStrategy::new(instances, slots, batching))
                }
            },
            backlog: BTreeSet::new(),
            backlog_requests: 0,
            backlog_timeouts: BTreeSet::new(),
            idle_checks: BTreeSet::new(),
            cancelled_ids: RefusedIds::new(idle_ns),
            lost_ids: RefusedIds::new(idle_ns),
            next: 0,
            picks: Vec::new(),
            executing: vec![Vec::new(); instances],
        }
    }

    /// Appends the next batch for `instance`, which executes nothing now. The caller has called
    /// [`Self::expire`] before.
    pub fn next_batch(
        &mut self,
        instance: usize,
        now: u64,
        batch: &mut Vec<BatchEntry<T>>,
    ) -> BatchDecision {
        self.executed(instance, now);
        let mut picks = std::mem::take(&mut self.picks);
        let decision = self.strategy.pick(instance, now, self.open, &self.live, &mut picks);
        for pick in picks.drain(..) {
            let taken = pick.and_then(|key| self.take(key, now));
            debug_assert_eq!(pick.is_some(), taken.is_some());
            if let (Some(key), Some(executing)) = (pick, self.executing.get_mut(instance)) {
                executing.push(key);
            }
            batch.push(taken.map_or(BatchEntry::Null, BatchEntry::Request));
        }
        self.picks = picks;
        decision
    }

    /// Whether [`Self::next_batch`] would find a batch for `instance`.
    pub fn has_batch(&mut self, instance: usize, now: u64) -> bool {
        self.executed(instance, now);
        self.strategy.has_batch(instance, now, self.open, &self.live)
    }

    /// The previous batch of `instance` has been executed. Its sequences were not idle meanwhile.
    fn executed(&mut self, instance: usize, now: u64) {
        let Some(executing) = self.executing.get_mut(instance) else { return };
        for key in executing.drain(..) {
            if let Some(sequence) = self.live.get_mut(&key) {
                (sequence.executing, sequence.last_activity) = (false, now);
            }
        }
    }

    /// Takes the front request. The last one of an ended sequence frees the slot. The slot's next
    /// sequence belongs to the next batch, since this one has been chosen already.
    fn take(&mut self, key: SequenceKey, now: u64) -> Option<T> {
        let sequence = self.live.get_mut(&key)?;
        let QueuedRequest { ticket, mut item, .. } = sequence.queue.pop_front()?;
        self.tickets.remove(&ticket);
        (sequence.executing, sequence.begun, sequence.last_activity) = (true, true, now);
        item.set_memory(&sequence.memory);
        if !sequence.queue.is_empty() {
            if let Some(slot) = &sequence.slot {
                self.strategy.ready(slot, key, now);
            }
        } else if sequence.id.is_none() || !self.open {
            self.end(key, now);
        }
        Some(item)
    }

    /// When [`Self::expire`] has something to do next. May be early, never late.
    pub fn next_deadline(&self) -> Option<u64> {
        let deadline = self.backlog_timeouts.first().map(|entry| entry.0);
        let idle = self.idle_checks.first().map(|entry| entry.0);
        [deadline, idle, self.cancelled_ids.next_deadline(), self.lost_ids.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Queued requests.
    pub fn waiting(&self) -> usize {
        self.tickets.len()
    }

    /// Queued requests, in no order.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.live.values().flat_map(|sequence| &sequence.queue).map(|queued| &queued.item)
    }

    /// Queued requests whose sequence has no slot.
    pub fn backlog(&self) -> usize {
        self.backlog_requests
    }

    /// How many requests are executed before the first one of a new sequence. At the direct strategy
    /// a free slot is one of the next batch.
    pub fn ahead_of_start(&self) -> usize {
        match self.strategy {
            StrategyState::Direct(_) if self.slots.any_free() => 0,
            _ => self.waiting(),
        }
    }

    /// Sequences whose END has not arrived.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    pub fn is_active(&self, id: &CorrelationId) -> bool {
        self.active.contains_key(id)
    }

    /// No more requests arrive: batches wait for no further ones, and a sequence keeps its slot
    /// only for queued requests.
    pub fn close(&mut self, wakes: &mut Vec<WakeTarget>) {
        self.open = false;
        self.cancelled_ids = RefusedIds::new(self.idle_ns);
        self.lost_ids = RefusedIds::new(self.idle_ns);
        let unused = self.live.iter().filter(|(_, sequence)| sequence.queue.is_empty());
        let mut unused: Vec<SequenceKey> = unused.map(|(key, _)| *key).collect();
        unused.sort_unstable();
        for key in unused {
            self.end(key, 0);
        }
        wakes.extend((0..self.instances).map(WakeTarget::Instance));
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
