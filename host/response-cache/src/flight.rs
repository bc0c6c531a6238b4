//! A flight: one execution, and the equal requests that wait for its result. Pure logic: followers
//! are any values, and calls come back with what has to be done.

use parking_lot::Mutex;
use std::collections::VecDeque;

/// An execution in flight and its followers.
pub struct Flight<F> {
    /// Priority of the leader: a request of another priority does not follow it.
    pub priority: u64,
    state: Mutex<FlightState<F>>,
}

struct FlightState<F> {
    /// By ticket, in order of arrival.
    followers: VecDeque<(u64, F)>,
    last_ticket: u64,
    /// The result was given out, or no follower was left to lead: none may join.
    landed: bool,
    /// A thread hands over; while it does, other ends of leaders only count.
    handing: bool,
    /// Leaders that ended meanwhile.
    ended: bool,
}

/// What follows from the end of a leader without a result.
#[derive(Debug, PartialEq, Eq)]
pub enum Handover<F> {
    /// This follower leads now. [`Flight::handed_over`] must follow once it was submitted.
    Lead(F),
    /// Nobody waits: the flight has ended.
    Ended,
    /// The thread that hands over goes on.
    Later,
}

impl<F> Flight<F> {
    pub fn new(priority: u64) -> Self {
        let state = FlightState {
            followers: VecDeque::new(),
            last_ticket: 0,
            landed: false,
            handing: false,
            ended: false,
        };
        Self { priority, state: Mutex::new(state) }
    }

    /// A ticket for [`Flight::join`].
    pub fn ticket(&self) -> u64 {
        let mut state = self.state.lock();
        state.last_ticket += 1;
        state.last_ticket
    }

    /// Adds a follower.
    ///
    /// # Errors
    /// The flight has landed: returns the follower.
    pub fn join(&self, ticket: u64, follower: F) -> Result<(), F> {
        let mut state = self.state.lock();
        if state.landed {
            return Err(follower);
        }
        state.followers.push_back((ticket, follower));
        Ok(())
    }

    /// Removes a follower that is cancelled; `None` if it has left.
    pub fn leave(&self, ticket: u64) -> Option<F> {
        let mut state = self.state.lock();
        let at = state.followers.iter().position(|(of, _)| *of == ticket)?;
        state.followers.remove(at).map(|(_, follower)| follower)
    }

    /// There is a result: no one joins any more. Returns those who waited for it.
    pub fn land(&self) -> Vec<F> {
        let mut state = self.state.lock();
        state.landed = true;
        state.followers.drain(..).map(|(_, follower)| follower).collect()
    }

    /// The leader ended without a result.
    pub fn leader_ended(&self) -> Handover<F> {
        let mut state = self.state.lock();
        if state.handing {
            state.ended = true;
            return Handover::Later;
        }
        next_leader(&mut state)
    }

    /// The follower of [`Handover::Lead`] was submitted; it may have ended by now.
    pub fn handed_over(&self) -> Handover<F> {
        let mut state = self.state.lock();
        state.handing = false;
        if !std::mem::take(&mut state.ended) {
            return Handover::Later;
        }
        next_leader(&mut state)
    }

    /// Requests that wait.
    pub fn followers(&self) -> usize {
        self.state.lock().followers.len()
    }
}

fn next_leader<F>(state: &mut FlightState<F>) -> Handover<F> {
    match state.followers.pop_front() {
        Some((_, follower)) => {
            state.handing = true;
            Handover::Lead(follower)
        }
        None => {
            state.landed = true;
            Handover::Ended
        }
    }
}

#[cfg(test)]
#[path = "flight_tests.rs"]
mod tests;
