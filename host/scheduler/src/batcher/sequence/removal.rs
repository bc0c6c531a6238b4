//! Removal: sequences that are cancelled, lost their state, timed out in the backlog or were idle,
//! and whose slots pass on.

use super::SequenceBatcher;
use super::live_sequences::{LiveSequence, QueuedRequest, SequenceKey};
use super::slots::SequenceSlot;
use crate::batcher::{BatchableRequest, QueueRefusal, QueueTicket, WakeTarget};
use std::collections::{BTreeSet, VecDeque};

impl<T: BatchableRequest> SequenceBatcher<T> {
    /// Removes a queued request, and with it the rest of its sequence, from its START up to the
    /// next START, which may belong to another client. No effect on a request that was taken or
    /// refused before.
    pub fn cancel(
        &mut self,
        ticket: QueueTicket,
        now: u64,
        refused: &mut Vec<(T, QueueRefusal)>,
        wakes: &mut Vec<WakeTarget>,
    ) {
        let Some(key) = self.tickets.get(&ticket).copied() else { return };
        let Some(sequence) = self.live.get_mut(&key) else { return };
        let Some((begin, end)) = sequence.find_part(ticket) else { return };
        let (whole, last) = (end - begin == sequence.queue.len(), end == sequence.queue.len());
        if last && let Some(id) = sequence.id.take() {
            // As after END: the sequence ends with its last queued request.
            self.active.remove(&id);
            self.cancelled_ids.remember(id, now);
            if let Some(due) = sequence.idle_check.take() {
                self.idle_checks.remove(&(due, key));
            }
        }
        let gone = if whole {
            let Some(mut removed) = self.remove(key) else { return };
            if let Some(slot) = removed.slot.take() {
                wakes.extend(self.reassign(slot, now));
            }
            removed.queue
        } else {
            self.drain_part(key, begin, end, wakes)
        };
        refused.extend(gone.into_iter().map(|waiting| match waiting.ticket == ticket {
            true => (waiting.item, QueueRefusal::Cancelled),
            false => (waiting.item, QueueRefusal::SequenceCancelled),
        }));
    }

    /// `instance` lost its state: the sequences that have begun there end, each up to its next
    /// START.
    pub fn lose(
        &mut self,
        instance: usize,
        now: u64,
        refused: &mut Vec<(T, QueueRefusal)>,
        wakes: &mut Vec<WakeTarget>,
    ) {
        let here = |s: &LiveSequence<T>| s.slot.as_ref().is_some_and(|s| s.instance() == instance);
        let begun = self.live.iter().filter(|(_, sequence)| sequence.begun && here(sequence));
        let mut begun: Vec<SequenceKey> = begun.map(|(key, _)| *key).collect();
        begun.sort_unstable();
        for key in begun {
            let Some(sequence) = self.live.get_mut(&key) else { continue };
            sequence.begun = false;
            let next = sequence.queue.iter().position(|waiting| waiting.item.sequence().start);
            let gone = match next {
                Some(next) => self.drain_part(key, 0, next, wakes),
                None => {
                    if let Some(id) = sequence.id.clone() {
                        self.lost_ids.remember(id, now);
                    }
                    let Some(mut removed) = self.remove(key) else { continue };
                    if let Some(slot) = removed.slot.take() {
                        wakes.extend(self.reassign(slot, now));
                    }
                    removed.queue
                }
            };
            refused
                .extend(gone.into_iter().map(|waiting| (waiting.item, QueueRefusal::SequenceLost)));
        }
    }

    /// Removes a part of a sequence's queue, not all of it.
    fn drain_part(
        &mut self,
        key: SequenceKey,
        begin: usize,
        end: usize,
        wakes: &mut Vec<WakeTarget>,
    ) -> VecDeque<QueuedRequest<T>> {
        let Some(sequence) = self.live.get_mut(&key) else { return VecDeque::new() };
        let gone: VecDeque<_> = sequence.queue.drain(begin..end).collect();
        for waiting in &gone {
            self.tickets.remove(&waiting.ticket);
        }
        match &sequence.slot {
            // There may be another request at the front, whose shapes may fit a batch.
            Some(slot) => wakes.push(WakeTarget::Instance(slot.instance())),
            None => {
                self.backlog_requests -= gone.len();
                if let Some(deadline) = sequence.backlog_timeout.take() {
                    self.backlog_timeouts.remove(&(deadline, key));
                }
                sequence.backlog_timeout =
                    sequence.queue.iter().filter_map(QueuedRequest::timeout).min();
                self.backlog_timeouts
                    .extend(sequence.backlog_timeout.map(|deadline| (deadline, key)));
            }
        }
        gone
    }

    /// Removes sequences whose backlog timeout or idle limit has passed.
    pub fn expire(
        &mut self,
        now: u64,
        refused: &mut Vec<(T, QueueRefusal)>,
        wakes: &mut Vec<WakeTarget>,
    ) {
        // Timeouts come first: a sequence that timed out must not get a slot that becomes free now.
        while let Some(key) = pop_due(&mut self.backlog_timeouts, now) {
            if let Some(removed) = self.remove(key) {
                let late = removed.queue.into_iter();
                refused.extend(late.map(|waiting| (waiting.item, QueueRefusal::SequenceTimedOut)));
            }
        }
        while let Some(key) = pop_due(&mut self.idle_checks, now) {
            let Some(sequence) = self.live.get_mut(&key) else { continue };
            // A sequence that waits for the server is not idle.
            let busy = !sequence.queue.is_empty() || sequence.executing;
            let active = if busy { now } else { sequence.last_activity };
            sequence.idle_check = active.checked_add(self.idle_ns);
            match sequence.idle_check {
                Some(due) if due <= now => {
                    wakes.extend(self.end(key, now));
                }
                due => self.idle_checks.extend(due.map(|due| (due, key))),
            }
        }
        self.cancelled_ids.expire(now);
        self.lost_ids.expire(now);
    }

    /// Ends a sequence without queued requests.
    pub(super) fn end(&mut self, key: SequenceKey, now: u64) -> Option<WakeTarget> {
        let slot = self.remove(key)?.slot?;
        self.reassign(slot, now)
    }

    /// Removes a sequence from everything but its slot, which the caller has to reassign.
    fn remove(&mut self, key: SequenceKey) -> Option<LiveSequence<T>> {
        let sequence = self.live.remove(&key)?;
        if let Some(id) = &sequence.id {
            self.active.remove(id);
        }
        if let Some(due) = sequence.idle_check {
            self.idle_checks.remove(&(due, key));
        }
        if let Some(deadline) = sequence.backlog_timeout {
            self.backlog_timeouts.remove(&(deadline, key));
        }
        for waiting in &sequence.queue {
            self.tickets.remove(&waiting.ticket);
        }
        if sequence.slot.is_none() {
            self.backlog.remove(&key);
            self.backlog_requests -= sequence.queue.len();
        }
        Some(sequence)
    }

    /// Gives a slot to the oldest sequence of the backlog, or back to the free ones.
    fn reassign(&mut self, slot: SequenceSlot, now: u64) -> Option<WakeTarget> {
        self.strategy.release(&slot);
        let next = self.backlog.pop_first().and_then(|key| Some((key, self.live.get_mut(&key)?)));
        let Some((key, sequence)) = next else {
            self.slots.release(slot);
            return None;
        };
        self.backlog_requests -= sequence.queue.len();
        if let Some(deadline) = sequence.backlog_timeout.take() {
            self.backlog_timeouts.remove(&(deadline, key));
        }
        self.strategy.ready(&slot, key, now);
        let wake = WakeTarget::Instance(slot.instance());
        sequence.slot = Some(slot);
        Some(wake)
    }
}

fn pop_due(times: &mut BTreeSet<(u64, SequenceKey)>, now: u64) -> Option<SequenceKey> {
    if times.first()?.0 > now {
        return None;
    }
    times.pop_first().map(|(_, key)| key)
}
