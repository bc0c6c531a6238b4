//! Turns of clients within a priority level: start-time fair queueing.
//!
//! A request's turn is the number of the row at which the requests of its client before it end, in
//! rows divided by the client's weight; or the turn that is served now, if that is later: a client
//! gets no credit for the time in which it sent nothing. Requests are served by turn, those of one
//! turn by arrival. So clients with a backlog get rows in the proportion of their weights, and one
//! without a backlog is served next, whatever the backlogs of others are.

use std::collections::HashMap;

/// Turns of one row for a client with weight 1.
const ROW: u64 = 1 << 20;

/// Turns of clients that are kept although they may have passed.
const SLACK: usize = 64;

/// Levels and clients that are looked at for the number of requests ahead, which so takes a bounded
/// time.
const COUNTED: usize = 64;

/// The client of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientShare {
    pub key: u64,
    pub weight: u32,
}

/// All levels that have requests.
#[derive(Debug, Default)]
pub struct FairTurns {
    levels: HashMap<u64, LevelTurns>,
}

#[derive(Debug, Default)]
struct LevelTurns {
    /// Waiting requests.
    len: usize,
    /// The latest turn that was served.
    served: u64,
    /// Where the last request of each client ends, and the client's weight.
    ends: HashMap<u64, (u64, u32)>,
}

impl FairTurns {
    /// The turn of a request that joins `level`.
    pub fn join(&mut self, level: u64, client: ClientShare, rows: u32) -> u64 {
        let level = self.levels.entry(level).or_default();
        level.len += 1;
        if level.ends.len() > 2 * level.len + SLACK {
            let served = level.served;
            level.ends.retain(|_, (end, _)| *end > served);
        }
        let weight = client.weight.max(1);
        let last = level.ends.entry(client.key).or_default();
        let turn = level.served.max(last.0);
        let length = u64::from(rows).saturating_mul(ROW) / u64::from(weight);
        *last = (turn.saturating_add(length.max(1)), weight);
        turn
    }

    /// A request of this turn is executed.
    pub fn serve(&mut self, level: u64, turn: u64) {
        if let Some(level) = self.levels.get_mut(&level) {
            level.served = level.served.max(turn);
        }
    }

    /// A request has left `level`.
    pub fn leave(&mut self, level: u64) {
        if let Some(of) = self.levels.get_mut(&level) {
            of.len -= 1;
            if of.len == 0 {
                self.levels.remove(&level);
            }
        }
    }

    /// About how many requests are served before one of client `key` that joins `level` now: those
    /// of the levels before it, and the part of its own level that has earlier turns. Of many levels
    /// and clients some are counted.
    pub fn ahead(&self, level: u64, key: u64) -> usize {
        let before = self.levels.iter().take(COUNTED).filter(|(of, _)| **of < level);
        let before = before.map(|(_, level)| level.len).sum::<usize>();
        before + self.levels.get(&level).map_or(0, |level| level.ahead(key))
    }

    /// Requests waiting in a level.
    pub fn len(&self, level: u64) -> usize {
        self.levels.get(&level).map_or(0, |level| level.len)
    }
}

impl LevelTurns {
    fn ahead(&self, key: u64) -> usize {
        // What clients have ahead of the turn that is served now, in turns.
        let left = |end: u64| end.saturating_sub(self.served);
        let own = self.ends.get(&key).map_or(0, |(end, _)| left(*end));
        let (mut earlier, mut all) = (0.0, 0.0);
        for (end, weight) in self.ends.values().take(COUNTED) {
            earlier += left(*end).min(own) as f64 * f64::from(*weight);
            all += left(*end) as f64 * f64::from(*weight);
        }
        if all > 0.0 { (self.len as f64 * earlier / all).round() as usize } else { 0 }
    }
}

#[cfg(test)]
#[path = "fair_turns_tests.rs"]
mod tests;
