//! The sequences that exist: what one of them is, and how the two strategies look at them.

use super::super::{Batchable, QueueTicket};
use super::slots::Slot;
use crate::request::CorrelationId;
use std::collections::{HashMap, VecDeque};

/// Names a sequence for as long as it exists. Later sequences have greater keys, and an id that starts again gets a
/// new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceKey(pub u64);

/// A request that has not been taken.
pub struct QueuedRequest<T> {
    pub ticket: QueueTicket,
    pub arrived: u64,
    pub item: T,
}

impl<T: Batchable> QueuedRequest<T> {
    /// When it gives up waiting for a slot.
    pub fn deadline(&self) -> Option<u64> {
        match self.item.timeout_us() {
            0 => None,
            timeout => timeout.checked_mul(1000).and_then(|wait| self.arrived.checked_add(wait)),
        }
    }
}

pub struct LiveSequence<T: Batchable> {
    /// `None` once END has arrived: from then on the id belongs to whoever starts it next.
    pub id: Option<CorrelationId>,
    /// In order of arrival. Never empty without a slot, nor after END: such a sequence is gone.
    pub queue: VecDeque<QueuedRequest<T>>,
    /// `None`: in the backlog.
    pub slot: Option<Slot>,
    pub memory: T::Memory,
    /// When the last request arrived, was taken, or had been executed.
    pub touched: u64,
    /// One of its requests is being executed.
    pub executing: bool,
    /// Its model knows of it: a request was taken, and nothing was lost since.
    pub begun: bool,
    /// Its entry in the list of those to be looked at for idleness.
    pub due: Option<u64>,
    /// Its entry in the list of backlog timeouts: the earliest of its requests.
    pub deadline: Option<u64>,
}

impl<T: Batchable> LiveSequence<T> {
    pub fn new(slot: Option<Slot>) -> Self {
        Self {
            id: None,
            queue: VecDeque::new(),
            slot,
            memory: T::Memory::default(),
            touched: 0,
            executing: false,
            begun: false,
            due: None,
            deadline: None,
        }
    }
}

impl<T: Batchable> LiveSequence<T> {
    /// Where in the queue the run of a waiting request begins and ends. A START that came before END began another.
    pub fn run_of(&self, ticket: QueueTicket) -> Option<(usize, usize)> {
        let at = self.queue.iter().position(|waiting| waiting.ticket == ticket)?;
        let starts = |i: &usize| self.queue[*i].item.sequence().start;
        let begin = (0..=at).rev().find(starts).unwrap_or(0);
        let end = (at + 1..self.queue.len()).find(starts).unwrap_or(self.queue.len());
        Some((begin, end))
    }
}

pub type LiveSequences<T> = HashMap<SequenceKey, LiveSequence<T>>;

/// The request that a sequence would execute next.
pub fn front<T: Batchable>(live: &LiveSequences<T>, key: SequenceKey) -> Option<&QueuedRequest<T>> {
    live.get(&key)?.queue.front()
}
