//! The rate limiter (docs/protocol/v2.md §4.17): executions need resources, of which there is a
//! limited number.
//!
//! [`state`] decides, and says why no set of models can wait for each other; this module has its
//! lock. A queue asks before it hands out a batch to an instance with a demand, and carries out
//! [`LimiterWakes`] once its own lock is released. An [`ExecutionGrant`] holds the resources of a
//! batch; [`nested`] lends them while the batch waits for other models. Without
//! `--rate-limit=execution_count` there is no limiter, and instances have no [`LimiterMember`].
//!
//! The limiter's lock is shared by all models with demands. It is taken under a queue's lock and
//! never the other way round, once for each batch of such a model.

mod grant;
pub mod nested;
mod report;
mod resources;
mod state;

pub use grant::{ExecutionGrant, current_execution};
pub use report::{LimiterReport, ResourceHolder, ResourceReport, WaitingInstance};
pub use resources::{ResourceCount, ResourceDemand, ResourceScope};
pub use state::{InstanceLimits, LimitedName};

use parking_lot::Mutex;
use smallvec::SmallVec;
use state::{AskResult, GrantId, InstanceId, LimiterEvent, LimiterState};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use trtserver_base::clock::now_ns;
use trtserver_base::error::Result;

/// Told that an instance may take its batch.
pub trait GrantObserver: Send + Sync {
    fn execution_granted(&self, instance: usize);
}

/// Called when an execution has its resources again.
type ResumeCallback = Box<dyn FnOnce() + Send>;

/// The limiter of a server.
#[derive(Default)]
pub struct RateLimiter {
    locked: Mutex<LockedLimiter>,
}

#[derive(Default)]
struct LockedLimiter {
    state: LimiterState,
    observers: HashMap<InstanceId, (Weak<dyn GrantObserver>, usize)>,
    resuming: HashMap<GrantId, Vec<ResumeCallback>>,
}

/// What must be told once no lock is held.
#[derive(Default)]
#[must_use = "others wait to be told"]
pub struct LimiterWakes {
    granted: SmallVec<[(Weak<dyn GrantObserver>, usize); 1]>,
    resumed: Vec<ResumeCallback>,
}

impl LimiterWakes {
    pub fn is_empty(&self) -> bool {
        self.granted.is_empty() && self.resumed.is_empty()
    }

    pub fn append(&mut self, mut other: Self) {
        self.granted.append(&mut other.granted);
        self.resumed.append(&mut other.resumed);
    }

    /// Tells them. The caller holds no lock.
    pub fn wake(self) {
        for (observer, instance) in self.granted {
            if let Some(observer) = observer.upgrade() {
                observer.execution_granted(instance);
            }
        }
        self.resumed.into_iter().for_each(|resume| resume());
    }
}

impl LockedLimiter {
    fn take_wakes(&mut self) -> LimiterWakes {
        let mut wakes = LimiterWakes::default();
        for event in self.state.take_events() {
            match event {
                LimiterEvent::Granted(id) => wakes.granted.extend(self.observers.get(&id).cloned()),
                LimiterEvent::Resumed(grant) => {
                    wakes.resumed.extend(self.resuming.remove(&grant).unwrap_or_default());
                }
            }
        }
        wakes
    }
}

impl RateLimiter {
    /// `explicit`: the counts of `--rate-limit-resource`.
    pub fn new(explicit: Vec<ResourceCount>) -> Arc<Self> {
        let state = LimiterState::new(explicit);
        Arc::new(Self { locked: Mutex::new(LockedLimiter { state, ..Default::default() }) })
    }

    /// Admits an instance on `device` (a CPU is device 0). `None`: it has no demand.
    ///
    /// # Errors
    /// It could never execute; see [`LimiterState::add`].
    pub fn admit(
        self: &Arc<Self>,
        name: LimitedName,
        limits: &InstanceLimits,
        device: i32,
    ) -> Result<Option<LimiterMember>> {
        if limits.resources.iter().all(|resource| resource.count == 0) {
            return Ok(None);
        }
        let id = self.locked.lock().state.add(name, limits, device)?;
        Ok(Some(LimiterMember { limiter: Arc::clone(self), id }))
    }

    /// Resources with their holders, and the waiting instances, as they are now.
    pub fn report(&self) -> LimiterReport {
        LimiterReport::new(&self.locked.lock().state, now_ns())
    }

    fn end(&self, grant: GrantId) {
        let mut locked = self.locked.lock();
        locked.state.end(grant, now_ns());
        let wakes = locked.take_wakes();
        drop(locked);
        wakes.wake();
    }
}

/// An instance with a demand; it leaves the limiter when this is dropped.
pub struct LimiterMember {
    limiter: Arc<RateLimiter>,
    id: InstanceId,
}

/// The answer of the limiter to an instance that has a batch.
pub(crate) enum GrantAnswer {
    Granted(Arc<ExecutionGrant>),
    /// The observer is told. `new`: it did not wait before.
    Waiting {
        new: bool,
    },
}

impl LimiterMember {
    /// Tells `observer` of grants for its instance `instance`.
    pub(crate) fn observe(&self, observer: Weak<dyn GrantObserver>, instance: usize) {
        self.limiter.locked.lock().observers.insert(self.id, (observer, instance));
    }

    /// The instance has a batch. Nobody else is told of anything.
    pub(crate) fn ask(&self, now: u64) -> GrantAnswer {
        let mut locked = self.limiter.locked.lock();
        match locked.state.ask(self.id, now) {
            AskResult::Waiting { new } => GrantAnswer::Waiting { new },
            AskResult::Granted(grant) => {
                GrantAnswer::Granted(ExecutionGrant::new(Arc::clone(&self.limiter), grant))
            }
        }
    }

    /// Its execution has ended; `asks`: it has a further batch.
    pub(crate) fn end_and_ask(&self, ended: &ExecutionGrant, asks: bool, now: u64) -> LimiterWakes {
        let mut locked = self.limiter.locked.lock();
        locked.state.end_and_ask(ended.id, asks, now);
        locked.take_wakes()
    }

    /// It has no batch any more.
    pub(crate) fn withdraw(&self) -> LimiterWakes {
        let mut locked = self.limiter.locked.lock();
        locked.state.withdraw(self.id);
        locked.take_wakes()
    }

    /// There was no batch for what was granted.
    pub(crate) fn give_back(&self, grant: &ExecutionGrant) -> LimiterWakes {
        let mut locked = self.limiter.locked.lock();
        if grant.set_ended() {
            locked.state.give_back(self.id, grant.id);
        }
        locked.take_wakes()
    }
}

impl Drop for LimiterMember {
    fn drop(&mut self) {
        let mut locked = self.limiter.locked.lock();
        locked.state.remove(self.id);
        locked.observers.remove(&self.id);
        let wakes = locked.take_wakes();
        drop(locked);
        wakes.wake();
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
