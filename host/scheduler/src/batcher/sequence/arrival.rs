//! Arrival: a request enters its sequence, or begins one, which gets a slot or waits in the
//! backlog.

use super::live_sequences::{LiveSequence, QueuedRequest, SequenceKey};
use super::{SequenceBatcher, SequencePush};
use crate::batcher::{BatchableRequest, QueueRefusal, QueueTicket, WakeTarget};
use std::collections::hash_map::Entry;

impl<T: BatchableRequest> SequenceBatcher<T> {
    /// Appends a request to its sequence, or gives it back. Not to be called after [`Self::close`].
    /// An idle sequence ends only by [`Self::expire`].
    pub fn push(
        &mut self,
        item: T,
        now: u64,
        wakes: &mut Vec<WakeTarget>,
    ) -> Result<SequencePush, (T, QueueRefusal)> {
        let active = match self.admit(&item, now) {
            Ok(active) => active,
            Err(refusal) => return Err((item, refusal)),
        };
        let (start, end) = (item.sequence().start, item.sequence().end);
        self.next += 1;
        let ticket = QueueTicket(self.next);
        // One counter for tickets and keys: a sequence begins with a request.
        let key = active.unwrap_or(SequenceKey(self.next));
        self.tickets.insert(ticket, key);
        let sequence = match self.live.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let slot = self.slots.take();
                if slot.is_none() {
                    self.backlog.insert(key);
                }
                let sequence = entry.insert(LiveSequence::new(slot));
                if !end {
                    let id = item.sequence().id.clone();
                    self.active.insert(id.clone(), key);
                    sequence.id = Some(id);
                    sequence.idle_check = now.checked_add(self.idle_ns);
                    self.idle_checks.extend(sequence.idle_check.map(|due| (due, key)));
                }
                sequence
            }
        };
        if end {
            if let Some(id) = sequence.id.take() {
                self.active.remove(&id);
            }
            if let Some(due) = sequence.idle_check.take() {
                self.idle_checks.remove(&(due, key));
            }
        }
        let first = sequence.queue.is_empty();
        sequence.last_activity = now;
        let queued = QueuedRequest { ticket, arrived: now, item };
        let timeout = queued.timeout();
        sequence.queue.push_back(queued);
        if let Some(slot) = &sequence.slot {
            // Behind another request it changes nothing for the strategy.
            if first {
                self.strategy.ready(slot, key, now);
                wakes.push(WakeTarget::Instance(slot.instance()));
            }
        } else {
            self.backlog_requests += 1;
            if let Some(timeout) = timeout
                && sequence.backlog_timeout.is_none_or(|earlier| timeout < earlier)
            {
                if let Some(later) = sequence.backlog_timeout.replace(timeout) {
                    self.backlog_timeouts.remove(&(later, key));
                }
                self.backlog_timeouts.insert((timeout, key));
            }
        }
        Ok(SequencePush { ticket, conflict: start && active.is_some() })
    }

    /// Checks a request, in the order that clients observe. Returns the active sequence that it
    /// continues, or `None` for a new one.
    fn admit(&mut self, item: &T, now: u64) -> Result<Option<SequenceKey>, QueueRefusal> {
        let sequence = item.sequence();
        if item.rows() != 1 {
            return Err(QueueRefusal::NotOneRow);
        }
        if !sequence.id.is_some() {
            return Err(QueueRefusal::NoCorrelationId);
        }
        let active = self.active.get(&sequence.id).copied();
        if sequence.start {
            self.cancelled_ids.forget(&sequence.id);
            self.lost_ids.forget(&sequence.id);
        } else if active.is_none() {
            return Err(if self.cancelled_ids.refuses(&sequence.id, now) {
                QueueRefusal::SequenceCancelled
            } else if self.lost_ids.refuses(&sequence.id, now) {
                QueueRefusal::SequenceLost
            } else {
                QueueRefusal::NoStart
            });
        }
        Ok(active)
    }
}
