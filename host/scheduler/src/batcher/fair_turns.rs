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
    /// Where the last request of each client ends.
    ends: HashMap<u64, u64>,
}

impl FairTurns {
    /// The turn of a request that joins `level`.
    pub fn join(&mut self, level: u64, client: ClientShare, rows: u32) -> u64 {
        let level = self.levels.entry(level).or_default();
        level.len += 1;
        if level.ends.len() > 2 * level.len + SLACK {
            let served = level.served;
            level.ends.retain(|_, end| *end > served);
        }
        let end = level.ends.entry(client.key).or_default();
        let turn = level.served.max(*end);
        let length = u64::from(rows).saturating_mul(ROW) / u64::from(client.weight.max(1));
        *end = turn.saturating_add(length.max(1));
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

    /// Requests waiting in a level.
    pub fn len(&self, level: u64) -> usize {
        self.levels.get(&level).map_or(0, |level| level.len)
    }
}

#[cfg(test)]
#[path = "fair_turns_tests.rs"]
mod tests;
