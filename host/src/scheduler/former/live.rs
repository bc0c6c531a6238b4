//! The sequences that exist: what one of them is, and how the two strategies look at them.

use super::slots::Slot;
use super::{Item, Ticket};
use crate::request::CorrelationId;
use std::collections::{HashMap, VecDeque};

/// Names a sequence for as long as it exists. Later sequences have greater keys, and an id that starts again gets a
/// new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub u64);

/// A request that has not been taken.
pub struct Waiting<T> {
    pub ticket: Ticket,
    pub arrived: u64,
    pub item: T,
}

pub struct Running<T: Item> {
    /// `None` once END has arrived: from then on the id belongs to whoever starts it next.
    pub id: Option<CorrelationId>,
    /// In order of arrival. Never empty without a slot, nor after END: such a sequence is gone.
    pub queue: VecDeque<Waiting<T>>,
    /// `None`: in the backlog.
    pub slot: Option<Slot>,
    pub memory: T::Memory,
    /// When the last request arrived, was taken, or had been executed.
    pub touched: u64,
    /// One of its requests is being executed.
    pub executing: bool,
    /// Its entry in the list of those to be looked at for idleness.
    pub due: Option<u64>,
    /// Its entry in the list of backlog timeouts: the earliest of its requests.
    pub deadline: Option<u64>,
}

impl<T: Item> Running<T> {
    pub fn new(slot: Option<Slot>) -> Self {
        Self {
            id: None,
            queue: VecDeque::new(),
            slot,
            memory: T::Memory::default(),
            touched: 0,
            executing: false,
            due: None,
            deadline: None,
        }
    }
}

pub type Live<T> = HashMap<Key, Running<T>>;

/// The request that a sequence would execute next.
pub fn front<T: Item>(live: &Live<T>, key: Key) -> Option<&Waiting<T>> {
    live.get(&key)?.queue.front()
}
