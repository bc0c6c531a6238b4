//! Ids of cancelled or lost sequences: later requests are refused until a START, or until the idle
//! limit has passed.

use std::collections::{BTreeMap, HashMap};
use trtserver_request::CorrelationId;

/// Limits memory where the idle limit is very long. Requests of an id that was evicted are refused
/// as well, since the sequence does not exist.
const MAX_IDS: usize = 16_384;

#[derive(Debug)]
pub struct RefusedIds {
    idle_ns: u64,
    /// When the id expires, and a number that makes this unique.
    by_id: HashMap<CorrelationId, (u64, u64)>,
    by_time: BTreeMap<(u64, u64), CorrelationId>,
    next: u64,
}

impl RefusedIds {
    pub fn new(idle_ns: u64) -> Self {
        Self { idle_ns, by_id: HashMap::new(), by_time: BTreeMap::new(), next: 0 }
    }

    pub fn remember(&mut self, id: CorrelationId, now: u64) {
        self.forget(&id);
        if self.by_time.len() >= MAX_IDS
            && let Some((_, oldest)) = self.by_time.pop_first()
        {
            self.by_id.remove(&oldest);
        }
        let place = (now.saturating_add(self.idle_ns), self.next);
        self.next += 1;
        self.by_id.insert(id.clone(), place);
        self.by_time.insert(place, id);
    }

    /// True for a remembered id, which is then remembered anew.
    pub fn refuses(&mut self, id: &CorrelationId, now: u64) -> bool {
        let known = self.by_id.contains_key(id);
        if known {
            self.remember(id.clone(), now);
        }
        known
    }

    pub fn forget(&mut self, id: &CorrelationId) {
        if let Some(place) = self.by_id.remove(id) {
            self.by_time.remove(&place);
        }
    }

    pub fn expire(&mut self, now: u64) {
        while let Some(first) = self.by_time.first_entry()
            && first.key().0 <= now
        {
            self.by_id.remove(&first.remove());
        }
    }

    pub fn next_deadline(&self) -> Option<u64> {
        self.by_time.keys().next().map(|place| place.0).filter(|time| *time < u64::MAX)
    }
}

#[cfg(test)]
#[path = "refused_ids_tests.rs"]
mod tests;
