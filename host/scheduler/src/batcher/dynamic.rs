//! Dynamic batcher: batches for models without sequences. Also serves models without batching, one
//! request at a time.
//!
//! The requests at the front that fit one batch are *pending*. They are kept from call to call: a
//! request that arrives behind them continues the scan. Only one that arrives among them, or one of
//! them that leaves, restarts it.

use super::close_rule::{CloseDecision, CloseRule, PendingBatch};
use super::priority_list::PriorityList;
use super::settings::{DynamicSettings, PreparedSize, QueuePolicy, TimeoutAction};
use super::slab::{NONE, NodeId};
use super::timeouts::TimeoutHeap;
use super::{
    BatchDecision, BatchEntry, BatchableRequest, CloseReason, QueueRefusal, QueueTicket, WakeTarget,
};
use crate::late_refusal::QueueArrival;

#[derive(Debug)]
pub struct DynamicBatcher<T> {
    settings: DynamicSettings,
    /// `None`: each request is executed alone.
    rule: Option<CloseRule>,
    /// Requests are served in order of arrival.
    in_order: bool,
    waiting: PriorityList<T>,
    timeouts: TimeoutHeap,
    /// Latest time of arrival. Clocks are read before the lock is taken, so `now` may go back.
    latest: u64,
    pending: PendingBatch,
    /// The last pending request.
    last: NodeId,
    /// Number of the scan, which pending requests are marked with.
    scan_number: u64,
}

impl<T: BatchableRequest> DynamicBatcher<T> {
    pub fn new(settings: DynamicSettings) -> Self {
        let moves =
            |policy: &QueuePolicy| policy.timeout_us != 0 && policy.action == TimeoutAction::Delay;
        let many = settings.levels != 0;
        Self {
            rule: settings.batching.as_ref().map(CloseRule::new),
            in_order: !many && !settings.fair && !moves(&settings.default_policy),
            waiting: PriorityList::new(many, settings.fair),
            timeouts: TimeoutHeap::default(),
            latest: 0,
            pending: PendingBatch::default(),
            last: NONE,
            scan_number: 1,
            settings,
        }
    }

    /// Appends a request to its level, or gives it back. Wakes an instance if a batch can be closed
    /// now, or if the time of the next attempt has moved forward: the queue was empty, or this
    /// timeout is the earliest.
    pub fn push(
        &mut self,
        item: T,
        now: u64,
        wakes: &mut Vec<WakeTarget>,
    ) -> Result<QueueTicket, (T, QueueRefusal)> {
        let level = self.settings.priority_level(item.priority());
        let policy = self.settings.policy(level);
        if policy.max_size != 0 && self.waiting.level_len(level) >= policy.max_size as usize {
            return Err((item, QueueRefusal::QueueFull));
        }
        let timeout_us = policy.timeout_for(item.timeout_us());
        let now = now.max(self.latest);
        self.latest = now;
        let client = |item: &T| (item.client(), item.rows());
        let place = match self.waiting.push(item, level, now, client) {
            Ok(place) => place,
            Err(item) => return Err((item, QueueRefusal::QueueFull)),
        };
        let ticket = self.waiting.ticket(place);
        let mut wake = self.waiting.len() == 1;
        if timeout_us != 0 {
            self.waiting.set_timed(place);
            let when = now.saturating_add(timeout_us.saturating_mul(1000));
            wake |= self.timeouts.push(when, ticket);
        }
        self.inserted(place);
        if wake || self.can_close(now) {
            wakes.push(WakeTarget::Any);
        }
        Ok(ticket)
    }

    /// What `item` would meet.
    pub fn arrival(&self, item: &T) -> QueueArrival {
        let level = self.settings.priority_level(item.priority());
        QueueArrival {
            ahead: self.waiting.ahead(level, item.client().key),
            max_requests: self.settings.batching.as_ref().map_or(1, |batching| batching.max_rows),
            queue_timeout_us: self.settings.policy(level).timeout_for(item.timeout_us()),
        }
    }

    /// Appends the next batch. The caller has called [`Self::expire`] before.
    pub fn next_batch(&mut self, now: u64, batch: &mut Vec<BatchEntry<T>>) -> BatchDecision {
        if self.rule.is_none() {
            let head = self.waiting.head();
            if head != NONE {
                self.waiting.serve(head);
            }
            let Some(item) = self.take(head) else {
                return BatchDecision::Wait { until: None };
            };
            batch.push(BatchEntry::Request(item));
            return BatchDecision::Batch(CloseReason::Alone);
        }
        let (count, closed) = match self.scan(now) {
            CloseDecision::Take(count, closed) => (count, closed),
            CloseDecision::Wait(until) => return BatchDecision::Wait { until },
        };
        self.restart_scan();
        let overtaken = self.take_first(count, batch);
        BatchDecision::Batch(match closed {
            CloseReason::Full | CloseReason::Preferred | CloseReason::Delay if overtaken => {
                CloseReason::Priority
            }
            closed => closed,
        })
    }

    /// Removes a queued request.
    pub fn cancel(&mut self, ticket: QueueTicket) -> Option<T> {
        let place = self.waiting.find(ticket)?;
        self.removing(place);
        self.take(place)
    }

    /// Removes requests whose timeout has passed, or moves them behind the others of their level.
    pub fn expire(&mut self, now: u64, out: &mut Vec<(T, QueueRefusal)>) {
        while let Some(ticket) =
            self.timeouts.pop(now, |ticket| self.waiting.find(ticket).is_some())
        {
            let Some(place) = self.waiting.find(ticket) else { continue };
            self.removing(place);
            match self.settings.policy(self.waiting.node(place).level).action {
                TimeoutAction::Reject => {
                    out.extend(
                        self.waiting.remove(place).map(|item| (item, QueueRefusal::TimedOut)),
                    );
                }
                TimeoutAction::Delay => {
                    self.waiting.move_behind(place);
                    self.inserted(place);
                }
            }
        }
    }

    /// When [`Self::expire`] has something to do. Too early if the request has left, never too
    /// late.
    pub fn next_deadline(&self) -> Option<u64> {
        self.timeouts.earliest()
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Queued requests, in no order.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.waiting.items()
    }

    /// Whether [`Self::next_batch`] would find a batch. For requests that leave or change places,
    /// which wakes no instance.
    pub fn is_batch_ready(&mut self, now: u64) -> bool {
        self.waiting.len() > 0 && self.can_close(now)
    }

    /// Whether the next batch may be closed while every instance executes. Not if it is closed only
    /// because no delay is configured: requests that arrive during the run can still join it.
    pub fn closes_early(&mut self) -> bool {
        if self.waiting.len() == 0 || self.rule.as_ref().is_none_or(CloseRule::has_delay) {
            return self.waiting.len() > 0;
        }
        // Without a delay the time does not matter.
        self.scan(self.latest);
        self.rule.as_ref().is_some_and(|rule| self.pending.is_complete(rule))
    }

    /// The sizes that all instances are prepared for; empty: any.
    pub fn set_prepared(&mut self, sizes: Vec<PreparedSize>) {
        if let Some(rule) = &mut self.rule {
            rule.set_prepared(sizes);
            self.restart_scan();
        }
    }

    /// No more requests arrive: queued ones are not delayed any more.
    pub fn close(&mut self) {
        if let Some(rule) = &mut self.rule {
            rule.disable_delay();
        }
    }

    /// Continues the scan as far as `now` needs it.
    fn scan(&mut self, now: u64) -> CloseDecision {
        let Some(rule) = &self.rule else { return CloseDecision::Wait(None) };
        let head = self.waiting.head();
        while self.pending.wants_more(rule, now, self.in_order) {
            let next = match self.last {
                NONE => head,
                last => self.waiting.node(last).next,
            };
            let (Some(first), Some(item)) = (self.waiting.item(head), self.waiting.item(next))
            else {
                break;
            };
            let enqueued = self.waiting.node(next).enqueued;
            if !self.pending.offer(rule, item.rows(), enqueued, || item.compatible_with(first)) {
                break;
            }
            self.waiting.mark(next, self.scan_number);
            self.last = next;
        }
        self.pending.verdict(rule, now)
    }

    fn can_close(&mut self, now: u64) -> bool {
        let Some(rule) = &self.rule else { return true };
        // If the delay of any request has passed there is a batch: the scan reaches that request or
        // ends before it. This saves the scans that arrivals of a high level would restart while a
        // request of a low level waits.
        let oldest = self.waiting.oldest();
        if oldest != NONE && rule.delay_expired(self.waiting.node(oldest).enqueued, now) {
            return true;
        }
        matches!(self.scan(now), CloseDecision::Take(..))
    }

    fn restart_scan(&mut self) {
        self.pending = PendingBatch::default();
        self.last = NONE;
        self.scan_number += 1;
    }

    fn is_pending(&self, place: NodeId) -> bool {
        place != NONE && self.waiting.node(place).scan == self.scan_number
    }

    /// A request was linked in at `place`.
    fn inserted(&mut self, place: NodeId) {
        if self.is_pending(self.waiting.node(place).next) {
            self.restart_scan();
        } else if self.waiting.node(place).prev == self.last {
            self.pending.reopen();
        }
    }

    /// The request at `place` is about to be unlinked.
    fn removing(&mut self, place: NodeId) {
        if self.is_pending(place) {
            self.restart_scan();
        } else if self.waiting.node(place).prev == self.last {
            self.pending.reopen();
        }
    }

    /// Takes the first `count` requests. True when one of a higher level overtook one that stays.
    fn take_first(&mut self, count: usize, batch: &mut Vec<BatchEntry<T>>) -> bool {
        let (mut newest, mut first_level) = (0, None);
        for _ in 0..count {
            let head = self.waiting.head();
            if head == NONE {
                break;
            }
            let node = self.waiting.node(head);
            newest = newest.max(node.enqueued);
            first_level = first_level.or(Some(node.level));
            self.waiting.serve(head);
            batch.extend(self.take(head).map(BatchEntry::Request));
        }
        // The oldest request that stays decides. Within a level only requests that timed out are
        // overtaken, and they do not count. So a younger request that was taken is of a higher
        // level.
        let oldest = self.waiting.oldest();
        if self.settings.levels == 0 || oldest == NONE {
            return false;
        }
        let oldest = self.waiting.node(oldest);
        // Clients that are served in turn overtake each other within a level.
        let other_level = !self.settings.fair || first_level.is_some_and(|of| of < oldest.level);
        other_level && oldest.enqueued < newest
    }

    fn take(&mut self, place: NodeId) -> Option<T> {
        if place == NONE {
            return None;
        }
        let timed = self.waiting.node(place).timed;
        let item = self.waiting.remove(place);
        if timed {
            self.timeouts.left(|ticket| self.waiting.find(ticket).is_some());
        }
        item
    }
}

#[cfg(test)]
#[path = "dynamic_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "dynamic_properties_tests.rs"]
mod properties;

#[cfg(test)]
#[path = "dynamic_fair_tests.rs"]
mod fair_tests;
