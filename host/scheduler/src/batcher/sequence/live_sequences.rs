//! Live sequences: their queued requests, slot and times, as the batcher and its strategies see
//! them.

use super::super::{BatchableRequest, QueueTicket};
use super::slots::SequenceSlot;
use std::collections::{HashMap, VecDeque};
use trtserver_request::CorrelationId;

/// Identifies a live sequence. Later sequences have greater keys; an id that starts anew gets a new
/// key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceKey(pub u64);

/// A request that has not been taken yet.
pub struct QueuedRequest<T> {
    pub ticket: QueueTicket,
    pub arrived: u64,
    pub item: T,
}

impl<T: BatchableRequest> QueuedRequest<T> {
    /// Time until which the request's sequence may wait for a slot.
    pub fn timeout(&self) -> Option<u64> {
        match self.item.timeout_us() {
            0 => None,
            timeout => timeout.checked_mul(1000).and_then(|wait| self.arrived.checked_add(wait)),
        }
    }
}

pub struct LiveSequence<T: BatchableRequest> {
    /// `None` once END has arrived: from then on the id belongs to the next sequence that starts
    /// with it.
    pub id: Option<CorrelationId>,
    /// In order of arrival. Never empty without a slot nor after END, since the sequence is removed
    /// then.
    pub queue: VecDeque<QueuedRequest<T>>,
    /// `None`: in the backlog.
    pub slot: Option<SequenceSlot>,
    pub memory: T::Memory,
    /// When the last request arrived, was taken or finished execution.
    pub last_activity: u64,
    /// One of its requests is being executed.
    pub executing: bool,
    /// Its instance holds state of the sequence: a request was taken, and the state was not lost
    /// since.
    pub begun: bool,
    /// The sequence's entry in the list of idle checks.
    pub idle_check: Option<u64>,
    /// Its entry in the list of backlog timeouts: the earliest of its requests.
    pub backlog_timeout: Option<u64>,
}

impl<T: BatchableRequest> LiveSequence<T> {
    pub fn new(slot: Option<SequenceSlot>) -> Self {
        Self {
            id: None,
            queue: VecDeque::new(),
            slot,
            memory: T::Memory::default(),
            last_activity: 0,
            executing: false,
            begun: false,
            idle_check: None,
            backlog_timeout: None,
        }
    }
}

impl<T: BatchableRequest> LiveSequence<T> {
    /// The part of the queue from START to the next START that a request belongs to. A START that
    /// arrived before END began another part.
    pub fn find_part(&self, ticket: QueueTicket) -> Option<(usize, usize)> {
        let at = self.queue.iter().position(|waiting| waiting.ticket == ticket)?;
        let starts = |i: &usize| self.queue[*i].item.sequence().start;
        let begin = (0..=at).rev().find(starts).unwrap_or(0);
        let end = (at + 1..self.queue.len()).find(starts).unwrap_or(self.queue.len());
        Some((begin, end))
    }
}

pub type LiveSequences<T> = HashMap<SequenceKey, LiveSequence<T>>;

/// The request that a sequence would execute next.
pub fn front_request<T: BatchableRequest>(
    live: &LiveSequences<T>,
    key: SequenceKey,
) -> Option<&QueuedRequest<T>> {
    live.get(&key)?.queue.front()
}
