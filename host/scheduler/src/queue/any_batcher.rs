//! The batcher of a queue: dynamic, which serves the default scheduler too, or sequence.

use crate::SequenceControls;
use crate::batcher::dynamic::DynamicBatcher;
use crate::batcher::sequence::{SequenceBatcher, SequencePush};
use crate::batcher::settings::{DynamicSettings, PreparedSize, SequenceSettings};
use crate::batcher::{BatchDecision, BatchEntry, QueueRefusal, QueueTicket, WakeTarget};
use crate::late_refusal::QueueArrival;
use trtserver_request::{InferRequest, RequestSequence};

/// How a version's requests are scheduled.
pub enum SchedulingPolicy {
    /// Any instance takes the next request or batch.
    Dynamic(DynamicSettings),
    /// Sequences stay with an instance.
    Sequence(SequenceSettings, Box<SequenceControls>),
}

impl SchedulingPolicy {
    /// Serves clients in turn. Sequences have slots instead.
    pub fn fair(mut self) -> Self {
        if let Self::Dynamic(settings) = &mut self {
            settings.fair = true;
        }
        self
    }

    /// The most rows of a batch whose requests are not delayed for others; `None` if batches are
    /// formed in another way, or not at all.
    pub(super) fn joined_rows(&self) -> Option<usize> {
        match self {
            Self::Dynamic(DynamicSettings { batching: Some(batching), .. }) => {
                (batching.delay_ns == 0 && batching.max_rows > 1)
                    .then_some(batching.max_rows as usize)
            }
            _ => None,
        }
    }
}

/// Requests that leave without being executed, and why.
type Refused = Vec<(InferRequest, QueueRefusal)>;

/// The batcher of a queue: dynamic (also for models without batching) or sequence.
pub(super) enum QueueBatcher {
    Dynamic(Box<DynamicBatcher<InferRequest>>),
    Sequence(Box<SequenceBatcher<InferRequest>>),
}

impl QueueBatcher {
    pub(super) fn new(policy: SchedulingPolicy) -> (Self, Option<SequenceControls>) {
        match policy {
            SchedulingPolicy::Dynamic(settings) => {
                (Self::Dynamic(Box::new(DynamicBatcher::new(settings))), None)
            }
            SchedulingPolicy::Sequence(settings, controls) => {
                (Self::Sequence(Box::new(SequenceBatcher::new(settings))), Some(*controls))
            }
        }
    }

    /// `None`: the request was refused.
    pub(super) fn push(
        &mut self,
        request: InferRequest,
        now: u64,
        refused: &mut Refused,
        wakes: &mut Vec<WakeTarget>,
    ) -> Option<SequencePush> {
        let refusal = match self {
            Self::Dynamic(batcher) => match batcher.push(request, now, wakes) {
                Ok(ticket) => return Some(SequencePush { ticket, conflict: false }),
                Err(refusal) => refusal,
            },
            Self::Sequence(batcher) => match batcher.push(request, now, wakes) {
                Ok(pushed) => return Some(pushed),
                Err(refusal) => refusal,
            },
        };
        refused.push(refusal);
        None
    }

    /// What `request` would meet; `None` if it has to be queued, since it continues a sequence: of
    /// this model, or of one that follows it in an ensemble. `max_rows`: of a batch of sequences.
    pub(super) fn arrival(&self, request: &InferRequest, max_rows: u32) -> Option<QueueArrival> {
        let sequence = &request.sequence;
        if sequence.id.is_some() && !sequence.start {
            return None;
        }
        match self {
            Self::Dynamic(batcher) => Some(batcher.arrival(request)),
            Self::Sequence(batcher) => (!batcher.is_active(&sequence.id)).then(|| QueueArrival {
                ahead: batcher.ahead_of_start(),
                max_requests: max_rows.max(1),
                queue_timeout_us: 0,
            }),
        }
    }

    pub(super) fn next_batch(
        &mut self,
        instance: usize,
        now: u64,
        entries: &mut Vec<BatchEntry<InferRequest>>,
    ) -> BatchDecision {
        match self {
            Self::Dynamic(batcher) => batcher.next_batch(now, entries),
            Self::Sequence(batcher) => batcher.next_batch(instance, now, entries),
        }
    }

    pub(super) fn cancel(
        &mut self,
        ticket: QueueTicket,
        now: u64,
        refused: &mut Refused,
        wakes: &mut Vec<WakeTarget>,
    ) {
        match self {
            Self::Dynamic(batcher) => {
                refused.extend(
                    batcher.cancel(ticket).map(|request| (request, QueueRefusal::Cancelled)),
                );
            }
            Self::Sequence(batcher) => batcher.cancel(ticket, now, refused, wakes),
        }
    }

    pub(super) fn expire(&mut self, now: u64, refused: &mut Refused, wakes: &mut Vec<WakeTarget>) {
        if self.next_deadline().is_none_or(|at| at > now) {
            return;
        }
        match self {
            Self::Dynamic(batcher) => batcher.expire(now, refused),
            Self::Sequence(batcher) => batcher.expire(now, refused, wakes),
        }
    }

    /// The sizes that all instances are prepared for. Batches of sequences follow the sequences.
    pub(super) fn set_prepared(&mut self, sizes: Vec<PreparedSize>) {
        match self {
            Self::Dynamic(batcher) => batcher.set_prepared(sizes),
            Self::Sequence(_) => {}
        }
    }

    pub(super) fn close(&mut self, wakes: &mut Vec<WakeTarget>) {
        match self {
            Self::Dynamic(batcher) => batcher.close(),
            Self::Sequence(batcher) => batcher.close(wakes),
        }
    }

    /// The state of sequences that have begun on `instance` is lost.
    pub(super) fn lose(
        &mut self,
        instance: usize,
        now: u64,
        refused: &mut Refused,
        wakes: &mut Vec<WakeTarget>,
    ) {
        if let Self::Sequence(batcher) = self {
            batcher.lose(instance, now, refused, wakes);
        }
    }

    /// Whether [`Self::next_batch`] would find a batch for `instance`.
    pub(super) fn has_batch(&mut self, instance: usize, now: u64) -> bool {
        match self {
            Self::Dynamic(batcher) => batcher.is_batch_ready(now),
            Self::Sequence(batcher) => batcher.has_batch(instance, now),
        }
    }

    /// Whether requests that are left can form a batch now. Sequences wake their instances by
    /// themselves.
    pub(super) fn is_batch_ready(&mut self, now: u64) -> bool {
        match self {
            Self::Dynamic(batcher) => batcher.is_batch_ready(now),
            Self::Sequence(_) => false,
        }
    }

    /// Whether a batch may be closed while every instance executes: see
    /// [`DynamicBatcher::closes_early`].
    pub(super) fn closes_early(&mut self) -> bool {
        match self {
            Self::Dynamic(batcher) => batcher.closes_early(),
            Self::Sequence(_) => false,
        }
    }

    pub(super) fn is_sequence(&self) -> bool {
        matches!(self, Self::Sequence(_))
    }

    /// When [`Self::expire`] has something to do.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        match self {
            Self::Dynamic(batcher) => batcher.next_deadline(),
            Self::Sequence(batcher) => batcher.next_deadline(),
        }
    }

    pub(super) fn waiting(&self) -> usize {
        match self {
            Self::Dynamic(batcher) => batcher.waiting(),
            Self::Sequence(batcher) => batcher.waiting(),
        }
    }

    /// Calls `visit` with each queued request.
    pub(super) fn visit_waiting(&self, visit: &mut dyn FnMut(&InferRequest)) {
        match self {
            Self::Dynamic(batcher) => batcher.items().for_each(visit),
            Self::Sequence(batcher) => batcher.items().for_each(visit),
        }
    }

    /// Requests of sequences without a slot.
    pub(super) fn backlog(&self) -> usize {
        match self {
            Self::Dynamic(_) => 0,
            Self::Sequence(batcher) => batcher.backlog(),
        }
    }

    pub(super) fn active_sequences(&self) -> usize {
        match self {
            Self::Dynamic(_) => 0,
            Self::Sequence(batcher) => batcher.active(),
        }
    }

    pub(super) fn has_sequence(&self, sequence: &RequestSequence) -> bool {
        match self {
            Self::Dynamic(_) => false,
            Self::Sequence(batcher) => batcher.is_active(&sequence.id),
        }
    }
}
