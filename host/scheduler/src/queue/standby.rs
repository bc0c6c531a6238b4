//! Batches for an instance that executes: a second thread of it, its *copy thread*, takes the next
//! batch while the own thread waits inside the backend, and copies its inputs to the device.
//!
//! The own thread allows it for one batch at a time, from `begin_standby` to `end_standby`. Meanwhile
//! a request that arrives wakes the copy thread if no instance is idle. A wake-up that the copy
//! thread does not use is not lost: after `end_standby` the own thread asks for a batch.

use super::limited::NextBatch;
use super::{QueueState, RequestBatch, RequestQueue};
use std::time::Duration;
use trtserver_base::clock::now_ns;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StandbyState {
    /// The copy thread may take a batch.
    Open,
    /// It has taken one.
    Taken,
    /// It has to end.
    Stopped,
}

/// The instances of a queue whose copy threads may take a batch, or have taken one.
#[derive(Default)]
pub(super) struct StandbyInstances {
    /// In the order in which they began: the run of the first probably ends first.
    entries: Vec<(usize, StandbyState)>,
}

impl StandbyInstances {
    fn state(&self, instance: usize) -> Option<StandbyState> {
        self.entries.iter().find(|entry| entry.0 == instance).map(|entry| entry.1)
    }

    fn set(&mut self, instance: usize, state: StandbyState) {
        match self.entries.iter_mut().find(|entry| entry.0 == instance) {
            Some(entry) => entry.1 = state,
            None => self.entries.push((instance, state)),
        }
    }

    fn remove(&mut self, instance: usize) -> Option<StandbyState> {
        let position = self.entries.iter().position(|entry| entry.0 == instance)?;
        Some(self.entries.remove(position).1)
    }

    /// The instance whose copy thread takes the next batch.
    pub(super) fn first_open(&self) -> Option<usize> {
        let open = |entry: &&(usize, StandbyState)| entry.1 == StandbyState::Open;
        self.entries.iter().find(open).map(|entry| entry.0)
    }

    /// `instance` is retired: its copy thread takes no further batch.
    pub(super) fn withdraw(&mut self, instance: usize) {
        if self.state(instance) == Some(StandbyState::Open) {
            self.remove(instance);
        }
    }
}

impl RequestQueue {
    /// `instance` begins to execute: until [`RequestQueue::end_standby`] its copy thread may take one
    /// batch.
    pub fn begin_standby(&self, instance: usize) {
        let mut state = self.lock();
        // A limited instance has one batch at a time.
        if state.instances.is_retired(instance) || state.instances.is_limited(instance) {
            return;
        }
        state.standby.set(instance, StandbyState::Open);
        // What arrived before woke another instance, or none.
        if state.batcher.closes_early() {
            self.copy_threads.condvar_for(instance).notify_one();
        }
    }

    /// `instance` has executed: its copy thread takes no batch any more. True if it has taken one,
    /// which comes next. Otherwise the caller asks for a batch at once.
    pub fn end_standby(&self, instance: usize) -> bool {
        self.lock().standby.remove(instance) == Some(StandbyState::Taken)
    }

    /// Ends the copy thread of `instance`.
    pub fn stop_standby(&self, instance: usize) {
        self.lock().standby.set(instance, StandbyState::Stopped);
        self.copy_threads.condvar_for(instance).notify_one();
    }

    /// Waits for a batch that arrives while `instance` executes, whose copy thread this is. It takes
    /// the batch only if no other instance could begin it, and no later request could join it unless
    /// its configured delay has passed. False when the thread has to end.
    pub fn take_standby(&self, instance: usize, batch: &mut RequestBatch) -> bool {
        batch.requests.clear();
        let woken = self.copy_threads.condvar_for(instance);
        let mut state = self.lock();
        loop {
            let mut until = None;
            match state.standby.state(instance) {
                Some(StandbyState::Stopped) => {
                    state.standby.remove(instance);
                    return false;
                }
                Some(StandbyState::Open) => {
                    let now = now_ns();
                    state.expire(now);
                    match state.next_standby(instance, now, batch) {
                        NextBatch::Taken(reason) => {
                            state.standby.set(instance, StandbyState::Taken);
                            self.taken(state, reason, batch);
                            return true;
                        }
                        NextBatch::Wait { until: at } => until = at.map(|at| (at, now)),
                        NextBatch::Limited => {}
                    }
                    if state.has_effects() {
                        self.release(state);
                        state = self.lock();
                        continue;
                    }
                }
                Some(StandbyState::Taken) | None => {}
            }
            match until {
                Some((at, now)) => {
                    let wait = Duration::from_nanos(at.saturating_sub(now));
                    woken.wait_for(&mut state, wait);
                }
                None => woken.wait(&mut state),
            }
        }
    }
}

impl QueueState {
    /// A thread that could take the next batch sleeps: of an idle instance, or a copy thread.
    pub(super) fn any_thread_sleeps(&self) -> bool {
        self.instances.any_idle() || self.standby.first_open().is_some()
    }

    fn next_standby(&mut self, instance: usize, now: u64, batch: &mut RequestBatch) -> NextBatch {
        if !self.batcher.closes_early() || self.instances.any_free_beside(instance) {
            return NextBatch::Wait { until: None };
        }
        self.next_batch(instance, now, &mut batch.entries)
    }
}

#[cfg(test)]
#[path = "standby_tests.rs"]
mod tests;
