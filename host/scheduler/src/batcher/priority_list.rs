//! Queued requests in the order of service: by priority level, within a level by arrival, or by the
//! turns of clients, then the requests of that level that timed out with action `Delay`.
//!
//! One linked list through all levels, so that a scan follows `next`. A level only knows the ends
//! of its two parts. Levels exist while they have requests, because a model may declare 2^64-1 of
//! them.

use super::fair_turns::FairTurns;
use super::slab::{NONE, NodeId, RequestSlab, SlabNode};
use super::{ClientShare, QueueTicket};
use std::collections::BTreeMap;

/// Levels that are looked at for the number of requests ahead, which so takes a bounded time.
const COUNTED_LEVELS: usize = 64;

#[derive(Debug)]
pub struct PriorityList<T> {
    store: RequestSlab<T>,
    head: NodeId,
    /// The level of a model without levels, which saves the map.
    only: PriorityLevel,
    used: BTreeMap<PlaceKey, PriorityLevel>,
    has_levels: bool,
    /// Clients are served in turn.
    fair: Option<Box<FairTurns>>,
    /// Ends of the list by arrival, without delayed requests. Only for models with levels.
    oldest: NodeId,
    newest: NodeId,
}

/// A level, and the turn of a client within it: 0 where they are not told apart, the last one for
/// delayed requests where they are.
type PlaceKey = (u64, u64);

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
    /// `has_levels`: the model has levels; otherwise all requests are of one level. `fair`: clients
    /// are served in turn.
    pub fn new(has_levels: bool, fair: bool) -> Self {
        Self {
            store: RequestSlab::default(),
            head: NONE,
            only: PriorityLevel::default(),
            used: BTreeMap::new(),
            has_levels: has_levels || fair,
            fair: fair.then(Box::default),
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
        match &self.fair {
            Some(fair) => fair.len(level),
            None if self.has_levels => self.used.get(&(level, 0)).map_or(0, |level| level.len),
            None => self.only.len,
        }
    }

    /// How many requests are served before one of `client` that joins `level` now. Of many levels
    /// the first are counted.
    pub fn ahead(&self, level: u64, client: u64) -> usize {
        match &self.fair {
            Some(fair) => fair.ahead(level, client),
            None if self.has_levels => {
                let before = self.used.range(..=(level, u64::MAX)).take(COUNTED_LEVELS);
                before.map(|(_, level)| level.len).sum()
            }
            None => self.len(),
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

    /// `client`: whose it is, and how many rows it has.
    pub fn push(
        &mut self,
        item: T,
        level: u64,
        enqueued: u64,
        client: impl FnOnce(&T) -> (ClientShare, u32),
    ) -> Result<NodeId, T> {
        let place = self.store.insert(item, level, enqueued)?;
        if let Some(fair) = &mut self.fair
            && let Some((client, rows)) = self.store.item(place).map(client)
        {
            self.store[place].turn = fair.join(level, client, rows);
        }
        let key = self.key(place);
        self.level(key).len += 1;
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
        self.shrink_level(place);
        if let Some(fair) = &mut self.fair {
            fair.leave(self.store[place].level);
        }
        self.store.remove(place)
    }

    /// The request at `place` is about to be executed.
    pub fn serve(&mut self, place: NodeId) {
        if let Some(fair) = &mut self.fair
            && !self.store[place].delayed
        {
            fair.serve(self.store[place].level, self.store[place].turn);
        }
    }

    fn key(&self, place: NodeId) -> PlaceKey {
        (self.store[place].level, self.store[place].turn)
    }

    fn shrink_level(&mut self, place: NodeId) {
        let key = self.key(place);
        let level = self.level(key);
        level.len -= 1;
        if level.len == 0 && self.has_levels {
            self.used.remove(&key);
        }
    }

    /// Moves a request that timed out behind all others of its level, for good.
    pub fn move_behind(&mut self, place: NodeId) {
        self.unlink(place);
        self.forget_arrival(place);
        let node = &mut self.store[place];
        (node.timed, node.delayed) = (false, true);
        if self.fair.is_some() {
            self.shrink_level(place);
            self.store[place].turn = u64::MAX;
            let key = self.key(place);
            self.level(key).len += 1;
        }
        self.link(place);
    }

    fn level(&mut self, key: PlaceKey) -> &mut PriorityLevel {
        if self.has_levels { self.used.entry(key).or_default() } else { &mut self.only }
    }

    /// Links a node behind the last one of its level and part.
    fn link(&mut self, place: NodeId) {
        let (key, delayed) = (self.key(place), self.store[place].delayed);
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
        let key = self.key(place);
        let SlabNode { prev, next, delayed, .. } = self.store[place];
        *self.next_link(prev) = next;
        if next != NONE {
            self.store[next].prev = prev;
        }
        if *self.level(key).last(delayed) == place {
            let same = prev != NONE && (self.key(prev), self.store[prev].delayed) == (key, delayed);
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
