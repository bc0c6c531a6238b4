//! The states of a queue's instances. All transitions happen under the queue's lock.
//!
//! ```text
//!                 wake                 start_inline
//!     ┌─ Idle ────────────▶ Waking ─────────────────▶ Inline
//!     │   ▲ ▲                │  ▲                      │ │ │
//!     │   │ │           woke │  └───────── Wake ───────┘ │ │
//!     │   │ └────────────────┼──────────── Sleep ────────┘ │
//!     │   │ sleep            ▼                             │
//!     │   └───────────── Running ◀── woke ── Draining ◀────┘
//!     │ woke (timeout)       ▲                       Drain
//!     └──────────────────────┘             (the results of finish_inline)
//! ```
//!
//! - `Running`: the own thread is awake; it opens the instance, executes, or asks for a batch.
//! - `Idle`: the own thread sleeps until it is woken, or until a time that the batcher gave.
//! - `Waking`: the own thread is notified, but does not hold the queue's lock yet.
//! - `Inline`: a network thread runs the instance; the own thread sleeps, or waits for the run to
//!   end.
//! - `Limited`: as `Idle`, until the rate limiter grants a batch (not drawn: entered from `Running`
//!   and `Inline`, left to `Waking`).
//! - `Postponed`: a network thread will run it at the end of its turn; the own thread sleeps (not
//!   drawn: entered from `Waking`, left to `Inline` or `Waking`).
//! - `Draining`: as `Waking`, after an inline run that left outstanding requests: they come first.

use crate::batcher::WakeTarget;
use crate::inline::InlineInstance;
use crate::limiter::LimiterMember;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// State of one instance of a queue; the diagram of this module shows the transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstanceState {
    Running,
    Idle,
    Limited,
    Waking,
    Postponed,
    Inline,
    Draining,
}

/// What an instance does after an inline run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterInline {
    /// There is no batch.
    Sleep,
    /// The instance's own thread continues.
    Wake,
    /// Its own thread waits for the outstanding requests, then continues.
    Drain,
    /// There is a batch, and no grant for it.
    Limit,
}

struct QueueInstance {
    state: InstanceState,
    /// When it became `Postponed`.
    postponed_ns: u64,
    /// It executes no further batch.
    retired: bool,
    /// Set if network threads may run it.
    inline: Option<Weak<dyn InlineInstance>>,
    /// Set if its executions need resources.
    limit: Option<Weak<LimiterMember>>,
}

impl QueueInstance {
    fn new() -> Self {
        Self {
            state: InstanceState::Running,
            postponed_ns: 0,
            retired: false,
            inline: None,
            limit: None,
        }
    }
}

pub(super) struct QueueInstances {
    all: Vec<QueueInstance>,
    /// Numbers of the `Idle` instances. The last one to fall asleep is woken first, since its
    /// caches are the warmest.
    idle: Vec<usize>,
    /// Number of the `Limited` instances.
    limited: usize,
    /// Number of the `Postponed` instances.
    postponed: usize,
    /// Instances that became `Waking` or `Draining` in this step; their threads have to be
    /// notified.
    woken: SmallVec<[usize; 2]>,
}

impl QueueInstances {
    /// All of them `Running`.
    pub(super) fn new(count: usize) -> Self {
        Self {
            all: (0..count).map(|_| QueueInstance::new()).collect(),
            idle: Vec::with_capacity(count),
            limited: 0,
            postponed: 0,
            woken: SmallVec::new(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Makes `instance` `Running`: an instance of the start, a new one, or a retired one whose
    /// thread has ended and whose number is used again.
    pub(super) fn add(&mut self, instance: usize) {
        match self.all.get_mut(instance) {
            Some(place) if place.retired => *place = QueueInstance::new(),
            Some(_) => {}
            None => self.all.push(QueueInstance::new()),
        }
    }

    pub(super) fn allow_inline(&mut self, instance: usize, inline: Weak<dyn InlineInstance>) {
        self.all[instance].inline = Some(inline);
    }

    pub(super) fn inline(&self, instance: usize) -> Option<&Weak<dyn InlineInstance>> {
        self.all[instance].inline.as_ref()
    }

    pub(super) fn set_limit(&mut self, instance: usize, limit: Weak<LimiterMember>) {
        self.all[instance].limit = Some(limit);
    }

    /// Its part of the rate limiter; `None` if its executions need no resources.
    pub(super) fn limit(&self, instance: usize) -> Option<Arc<LimiterMember>> {
        self.all[instance].limit.as_ref().and_then(Weak::upgrade)
    }

    pub(super) fn is_limited(&self, instance: usize) -> bool {
        self.all[instance].limit.is_some()
    }

    pub(super) fn any_limited(&self) -> bool {
        self.limited > 0
    }

    /// There is a batch, and no grant for it: `Running` to `Limited`.
    pub(super) fn sleep_limited(&mut self, instance: usize) {
        self.change(instance, InstanceState::Running, InstanceState::Limited);
        self.limited += 1;
    }

    /// `Limited` to `Waking`: there is a grant, or nothing left to wait for.
    pub(super) fn wake_limited(&mut self, instance: usize) {
        if self.all[instance].state == InstanceState::Limited {
            self.change(instance, InstanceState::Limited, InstanceState::Waking);
            self.limited -= 1;
            self.woken.push(instance);
        }
    }

    pub(super) fn wake_all_limited(&mut self) {
        for instance in 0..self.all.len() {
            self.wake_limited(instance);
        }
    }

    pub(super) fn state(&self, instance: usize) -> InstanceState {
        self.all[instance].state
    }

    /// `instance` executes no further batch; false if it was retired already.
    pub(super) fn retire(&mut self, instance: usize) -> bool {
        !std::mem::replace(&mut self.all[instance].retired, true)
    }

    pub(super) fn is_retired(&self, instance: usize) -> bool {
        self.all[instance].retired
    }

    pub(super) fn in_service(&self) -> usize {
        self.all.iter().filter(|instance| !instance.retired).count()
    }

    pub(super) fn any_in_service(&self) -> bool {
        self.all.iter().any(|instance| !instance.retired)
    }

    /// Another instance asks for a batch at once, or sleeps.
    pub(super) fn any_free_beside(&self, instance: usize) -> bool {
        use InstanceState::{Draining, Idle, Postponed, Waking};
        let mut others = self.all.iter().enumerate().filter(|(other, _)| *other != instance);
        others.any(|(_, other)| {
            !other.retired && matches!(other.state, Idle | Waking | Postponed | Draining)
        })
    }

    /// An instance executes nothing, and takes the next batch.
    pub(super) fn any_free(&self) -> bool {
        use InstanceState::{Idle, Postponed, Waking};
        self.all.iter().any(|of| !of.retired && matches!(of.state, Idle | Waking | Postponed))
    }

    pub(super) fn any_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    #[cfg(test)]
    pub(super) fn idle_count(&self) -> usize {
        self.idle.len()
    }

    /// Notifications of this step.
    pub(super) fn take_woken(&mut self) -> SmallVec<[usize; 2]> {
        std::mem::take(&mut self.woken)
    }

    /// The own thread found no batch: `Running` to `Idle`.
    pub(super) fn sleep(&mut self, instance: usize) {
        self.change(instance, InstanceState::Running, InstanceState::Idle);
        self.idle.push(instance);
    }

    /// `Idle` to `Waking`, for one instance at most. An instance in another state asks for a batch
    /// by itself: if one is `Postponed`, no other is woken. False if there is neither.
    pub(super) fn wake(&mut self, wake: WakeTarget) -> bool {
        if wake == WakeTarget::Any && self.postponed().is_some() {
            return true;
        }
        self.wake_idle(wake)
    }

    fn wake_idle(&mut self, wake: WakeTarget) -> bool {
        let position = match wake {
            WakeTarget::Any => self.idle.len().checked_sub(1),
            WakeTarget::Instance(instance) => self.idle.iter().position(|i| *i == instance),
        };
        if let Some(position) = position {
            let instance = self.idle.remove(position);
            self.change(instance, InstanceState::Idle, InstanceState::Waking);
            self.woken.push(instance);
        }
        position.is_some()
    }

    pub(super) fn wake_all(&mut self) {
        while self.any_idle() {
            self.wake_idle(WakeTarget::Any);
        }
    }

    /// The own thread is awake, by a notification or a timeout: `Waking`, `Draining` or `Idle` to
    /// `Running`. True when it has to wait for outstanding requests first.
    pub(super) fn woke(&mut self, instance: usize) -> bool {
        let before = self.all[instance].state;
        debug_assert!(!matches!(before, InstanceState::Running | InstanceState::Inline));
        if before == InstanceState::Idle {
            self.idle.retain(|i| *i != instance);
        }
        if before == InstanceState::Limited {
            self.limited -= 1;
        }
        if before == InstanceState::Postponed {
            self.postponed -= 1;
        }
        self.all[instance].state = InstanceState::Running;
        before == InstanceState::Draining
    }

    /// The thread that woke the instance runs it instead of notifying it: `Waking` to `Inline`.
    pub(super) fn start_inline(&mut self, instance: usize) {
        self.change(instance, InstanceState::Waking, InstanceState::Inline);
    }

    /// The thread that woke the instance will run it at the end of its turn: `Waking` to
    /// `Postponed`.
    pub(super) fn postpone(&mut self, instance: usize, now: u64) {
        self.change(instance, InstanceState::Waking, InstanceState::Postponed);
        self.all[instance].postponed_ns = now;
        self.postponed += 1;
    }

    /// An instance in service that is `Postponed`, and since when.
    pub(super) fn postponed(&self) -> Option<(usize, u64)> {
        if self.postponed == 0 {
            return None;
        }
        let mut all = self.all.iter().enumerate();
        let (ordinal, found) = all.find(|(_, instance)| {
            !instance.retired && instance.state == InstanceState::Postponed
        })?;
        Some((ordinal, found.postponed_ns))
    }

    /// A network thread begins the postponed run: `Postponed` to `Inline`.
    pub(super) fn start_postponed(&mut self, instance: usize) {
        self.change(instance, InstanceState::Postponed, InstanceState::Inline);
        self.postponed -= 1;
    }

    /// The own thread executes what was postponed: `Postponed` to `Waking`.
    pub(super) fn hand_over_postponed(&mut self, instance: usize) {
        self.change(instance, InstanceState::Postponed, InstanceState::Waking);
        self.postponed -= 1;
        self.woken.push(instance);
    }

    /// An inline run has ended: `Inline` to `Idle`, `Waking`, `Draining` or `Limited`.
    pub(super) fn finish_inline(&mut self, instance: usize, after: AfterInline) {
        let (next, list) = match after {
            AfterInline::Sleep => (InstanceState::Idle, None),
            AfterInline::Wake => (InstanceState::Waking, Some(&mut self.woken)),
            AfterInline::Drain => (InstanceState::Draining, Some(&mut self.woken)),
            AfterInline::Limit => {
                self.limited += 1;
                return self.change(instance, InstanceState::Inline, InstanceState::Limited);
            }
        };
        match list {
            Some(woken) => woken.push(instance),
            None => self.idle.push(instance),
        }
        self.change(instance, InstanceState::Inline, next);
    }

    fn change(&mut self, instance: usize, from: InstanceState, to: InstanceState) {
        let state = &mut self.all[instance].state;
        debug_assert_eq!(*state, from, "instance {instance} to {to:?}");
        *state = to;
    }
}

#[cfg(test)]
#[path = "instances_tests.rs"]
mod tests;
