//! What waits, in the order in which it is served: by level, inside a level first come first served, and behind
//! those the requests whose timeout moved them.
//!
//! One list through all levels, so that a scan just follows `next`. A level knows only where its two parts end;
//! levels are made when used and dropped when empty, because a model may declare 2^64-1 of them.

use super::QueueTicket;
use super::slab::{NONE, Node, NodeId, Slab};
use std::collections::BTreeMap;

#[derive(Debug)]
pub struct PriorityList<T> {
    store: Slab<T>,
    head: NodeId,
    /// The level of a model that has none: it is not looked up.
    only: Level,
    used: BTreeMap<u64, Level>,
    many: bool,
    /// Ends of the list by arrival, without the delayed ones; kept for a model with levels.
    oldest: NodeId,
    newest: NodeId,
}

/// The last of a level's requests, delayed or not, and how many there are.
#[derive(Clone, Copy, Debug)]
struct Level {
    last_fresh: NodeId,
    last_delayed: NodeId,
    len: usize,
}

impl Default for Level {
    fn default() -> Self {
        Self { last_fresh: NONE, last_delayed: NONE, len: 0 }
    }
}

impl Level {
    fn last(&mut self, delayed: bool) -> &mut NodeId {
        if delayed { &mut self.last_delayed } else { &mut self.last_fresh }
    }

    fn end(&self) -> NodeId {
        if self.last_delayed == NONE { self.last_fresh } else { self.last_delayed }
    }
}

impl<T> PriorityList<T> {
    /// `many`: the model has levels; else all requests must be of the same one.
    pub fn new(many: bool) -> Self {
        Self {
            store: Slab::default(),
            head: NONE,
            only: Level::default(),
            used: BTreeMap::new(),
            many,
            oldest: NONE,
            newest: NONE,
        }
    }

    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Requests waiting in a level.
    pub fn len_of(&self, level: u64) -> usize {
        if self.many { self.used.get(&level).map_or(0, |level| level.len) } else { self.only.len }
    }

    /// The next to be served.
    pub fn head(&self) -> NodeId {
        self.head
    }

    pub fn node(&self, place: NodeId) -> &Node<T> {
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

    /// The one that came first; with levels, of those that were not moved by their timeout. Without, the head.
    pub fn oldest(&self) -> NodeId {
        if self.many { self.oldest } else { self.head }
    }

    pub fn push(&mut self, item: T, level: u64, enqueued: u64) -> Result<NodeId, T> {
        let place = self.store.insert(item, level, enqueued)?;
        self.level(level).len += 1;
        self.link(place);
        if self.many {
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
        if level.len == 0 && self.many {
            self.used.remove(&key);
        }
        self.store.remove(place)
    }

    /// Behind everything of its level, where it stays: its timeout is over.
    pub fn move_behind(&mut self, place: NodeId) {
        self.unlink(place);
        self.forget_arrival(place);
        let node = &mut self.store[place];
        (node.timed, node.delayed) = (false, true);
        self.link(place);
    }

    fn level(&mut self, level: u64) -> &mut Level {
        if self.many { self.used.entry(level).or_default() } else { &mut self.only }
    }

    /// Behind the last of its kind.
    fn link(&mut self, place: NodeId) {
        let Node { level: key, delayed, .. } = self.store[place];
        let level = *self.level(key);
        let mut prev = if delayed { level.end() } else { level.last_fresh };
        if prev == NONE && self.many {
            prev = self.used.range(..key).next_back().map_or(NONE, |(_, level)| level.end());
        }
        let next = if prev == NONE { self.head } else { self.store[prev].next };
        *self.next_of(prev) = place;
        if next != NONE {
            self.store[next].prev = place;
        }
        let node = &mut self.store[place];
        (node.prev, node.next) = (prev, next);
        *self.level(key).last(delayed) = place;
    }

    fn unlink(&mut self, place: NodeId) {
        let Node { prev, next, level: key, delayed, .. } = self.store[place];
        *self.next_of(prev) = next;
        if next != NONE {
            self.store[next].prev = prev;
        }
        if *self.level(key).last(delayed) == place {
            let same = prev != NONE
                && (self.store[prev].level, self.store[prev].delayed) == (key, delayed);
            *self.level(key).last(delayed) = if same { prev } else { NONE };
        }
    }

    fn next_of(&mut self, prev: NodeId) -> &mut NodeId {
        if prev == NONE { &mut self.head } else { &mut self.store[prev].next }
    }

    /// A delayed one has left this list before, and must not leave it twice.
    fn forget_arrival(&mut self, place: NodeId) {
        let Node { older, newer, delayed, .. } = self.store[place];
        if !self.many || delayed {
            return;
        }
        *if older == NONE { &mut self.oldest } else { &mut self.store[older].newer } = newer;
        *if newer == NONE { &mut self.newest } else { &mut self.store[newer].older } = older;
    }
}

#[cfg(test)]
#[path = "priority_list_tests.rs"]
mod tests;
