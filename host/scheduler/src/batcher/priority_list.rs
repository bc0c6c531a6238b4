//! Queued requests in the order of service: by priority level, within a level by arrival, then the
//! requests of that level that timed out with action `Delay`.
//!
//! One linked list through all levels, so that a scan follows `next`. A level only knows the ends
//! of its two parts. Levels exist while they have requests, because a model may declare 2^64-1 of
//! them.

use super::QueueTicket;
use super::slab::{NONE, NodeId, RequestSlab, SlabNode};
use std::collections::BTreeMap;

#[derive(Debug)]
pub struct PriorityList<T> {
    store: RequestSlab<T>,
    head: NodeId,
    /// The level of a model without levels, which saves the map.
    only: PriorityLevel,
    used: BTreeMap<u64, PriorityLevel>,
    has_levels: bool,
    /// Ends of the list by arrival, without delayed requests. Only for models with levels.
    oldest: NodeId,
    newest: NodeId,
}

/// The last requests of a level's two parts, and the number of its requests.
#[derive(Clone, Copy, Debug)]
struct PriorityLevel {
    last_fresh: NodeId,
    last_delayed: NodeId,
    len: usize,
}

impl Default for PriorityLevel {
    fn default() -> Self {
        Self { last_fresh: NONE, last_delayed: NONE, len: 0 }
    }
}

impl PriorityLevel {
    fn last(&mut self, delayed: bool) -> &mut NodeId {
        if delayed { &mut self.last_delayed } else { &mut self.last_fresh }
    }

    fn end(&self) -> NodeId {
        if self.last_delayed == NONE { self.last_fresh } else { self.last_delayed }
    }
}

impl<T> PriorityList<T> {
    /// `has_levels`: the model has levels; otherwise all requests are of one level.
    pub fn new(has_levels: bool) -> Self {
        Self {
            store: RequestSlab::default(),
            head: NONE,
            only: PriorityLevel::default(),
            used: BTreeMap::new(),
            has_levels,
            oldest: NONE,
            newest: NONE,
        }
    }

    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// All requests, in no order.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.store.items()
    }

    /// Requests waiting in a level.
    pub fn level_len(&self, level: u64) -> usize {
        if self.has_levels {
            self.used.get(&level).map_or(0, |level| level.len)
        } else {
            self.only.len
        }
    }

    /// The next request to be served.
    pub fn head(&self) -> NodeId {
        self.head
    }

    pub fn node(&self, place: NodeId) -> &SlabNode<T> {
        &self.store[place]
    }

    pub fn item(&self, place: NodeId) -> Option<&T> {
        self.store.item(place)
    }

    pub fn set_timed(&mut self, place: NodeId) {
        self.store[place].timed = true;
    }

    pub fn mark(&mut self, place: NodeId, scan: u64) {
        self.store[place].scan = scan;
    }

    pub fn ticket(&self, place: NodeId) -> QueueTicket {
        self.store.ticket(place)
    }

    pub fn find(&self, ticket: QueueTicket) -> Option<NodeId> {
        self.store.find(ticket)
    }

    /// The oldest request; with levels, without delayed ones. Without levels the head.
    pub fn oldest(&self) -> NodeId {
        if self.has_levels { self.oldest } else { self.head }
    }

    pub fn push(&mut self, item: T, level: u64, enqueued: u64) -> Result<NodeId, T> {
        let place = self.store.insert(item, level, enqueued)?;
        self.level(level).len += 1;
        self.link(place);
        if self.has_levels {
            let newest = std::mem::replace(&mut self.newest, place);
            self.store[place].older = newest;
            *if newest == NONE { &mut self.oldest } else { &mut self.store[newest].newer } = place;
        }
        Ok(place)
    }

    pub fn remove(&mut self, place: NodeId) -> Option<T> {
        self.unlink(place);
        self.forget_arrival(place);
        let key = self.store[place].level;
        let level = self.level(key);
        level.len -= 1;
        if level.len == 0 && self.has_levels {
            self.used.remove(&key);
        }
        self.store.remove(place)
    }

    /// Moves a request that timed out behind all others of its level, for good.
    pub fn move_behind(&mut self, place: NodeId) {
        self.unlink(place);
        self.forget_arrival(place);
        let node = &mut self.store[place];
        (node.timed, node.delayed) = (false, true);
        self.link(place);
    }

    fn level(&mut self, level: u64) -> &mut PriorityLevel {
        if self.has_levels { self.used.entry(level).or_default() } else { &mut self.only }
    }

    /// Links a node behind the last one of its level and part.
    fn link(&mut self, place: NodeId) {
        let SlabNode { level: key, delayed, .. } = self.store[place];
        let level = *self.level(key);
        let mut prev = if delayed { level.end() } else { level.last_fresh };
        if prev == NONE && self.has_levels {
            prev = self.used.range(..key).next_back().map_or(NONE, |(_, level)| level.end());
        }
        let next = if prev == NONE { self.head } else { self.store[prev].next };
        *self.next_link(prev) = place;
        if next != NONE {
            self.store[next].prev = place;
        }
        let node = &mut self.store[place];
        (node.prev, node.next) = (prev, next);
        *self.level(key).last(delayed) = place;
    }

    fn unlink(&mut self, place: NodeId) {
        let SlabNode { prev, next, level: key, delayed, .. } = self.store[place];
        *self.next_link(prev) = next;
        if next != NONE {
            self.store[next].prev = prev;
        }
        if *self.level(key).last(delayed) == place {
            let same = prev != NONE
                && (self.store[prev].level, self.store[prev].delayed) == (key, delayed);
            *self.level(key).last(delayed) = if same { prev } else { NONE };
        }
    }

    fn next_link(&mut self, prev: NodeId) -> &mut NodeId {
        if prev == NONE { &mut self.head } else { &mut self.store[prev].next }
    }

    /// Unlinks a node from the list by arrival, which a delayed one has left before.
    fn forget_arrival(&mut self, place: NodeId) {
        let SlabNode { older, newer, delayed, .. } = self.store[place];
        if !self.has_levels || delayed {
            return;
        }
        *if older == NONE { &mut self.oldest } else { &mut self.store[older].newer } = newer;
        *if newer == NONE { &mut self.newest } else { &mut self.store[newer].older } = older;
    }
}

#[cfg(test)]
#[path = "priority_list_tests.rs"]
mod tests;
