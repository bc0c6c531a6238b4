//! The queue between front ends and instances: a batcher under the model's lock, and who sleeps and wakes.
//!
//! The lock is held for one step of the batcher. Requests that leave unexecuted are answered, instances
//! called and tensors added after it is released.

use super::assembler::{BatchAssembler, Controls};
use super::batcher::dynamic::DynamicBatcher;
use super::batcher::sequence::SequenceBatcher;
use super::batcher::settings::{DynamicSettings, SequenceSettings};
use super::batcher::{BatchDecision, BatchEntry, CloseReason, QueueTicket, Refusal, Wake};
use super::borrower::{self, Turn};
use super::conflict_log::ConflictLog;
use super::delay_hook::{self, DelayHook};
use super::refusal_errors::refusal_error;
use super::response_order::ResponseOrder;
use crate::clock::now_ns;
use crate::error::Error;
use crate::request::{CancelObserver, InferRequest, Sequence, Signature};
use crate::stats::FailureReason;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::timer::{self, DeadlineCallback};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Between two rings at least; only idle limits of microseconds would have more, while a request is executed.
const MIN_TIMER_INTERVAL_NS: u64 = 200_000;

/// How a version's requests wait.
pub enum SchedulingPolicy {
    /// One line for all instances.
    Dynamic(DynamicSettings),
    /// Sequences that stay with an instance.
    Sequence(SequenceSettings, Box<Controls>),
}

/// An instance that whoever brings a request may execute himself while its thread sleeps.
pub trait Lendable: Send + Sync {
    /// Its batches are short enough for that.
    fn is_quick(&self) -> bool;

    /// Executes on this thread what there is, and gives the instance back; see [`Queue::take_lent`].
    fn work(&self, now: u64);

    /// Waits until the instance may execute again, after a borrower has left answers that are owed.
    fn wait_for_room(&self);
}

/// An instance that this thread has borrowed.
struct Borrowed<'a> {
    queue: &'a Queue,
    instance: usize,
    lendable: Arc<dyn Lendable>,
    _turn: Turn,
    given_back: bool,
}

impl Borrowed<'_> {
    fn work(mut self, now: u64) {
        self.lendable.work(now);
        self.given_back = true;
    }
}

impl Drop for Borrowed<'_> {
    /// After a panic, as where an instance's own thread ends by one: nobody must wait for an instance that is gone.
    fn drop(&mut self) {
        if !self.given_back {
            let mut state = self.queue.lock();
            if state.lent[self.instance] {
                state.give_back(self.instance, true);
            }
            drop(state);
            self.queue.give_up();
        }
    }
}

/// See the module text.
pub struct Queue {
    state: Mutex<State>,
    bells: Box<[Bell]>,
    assembler: BatchAssembler,
    /// Requests leave one by one as they came, so that it makes no difference when the next one of a stream is read.
    one_by_one: bool,
    order: Option<Arc<ResponseOrder>>,
    signature: Arc<Signature>,
    me: Weak<Queue>,
}

#[derive(Default)]
struct Bell {
    /// What the instance's thread sleeps on.
    rung: Condvar,
    lendable: OnceLock<Weak<dyn Lendable>>,
}

struct State {
    batcher: Batcher,
    /// Instances asleep that nobody has called yet; the last to fall asleep is called first, since its
    /// caches are the warmest. A busy model calls nobody, which saves the system calls.
    idle: Vec<usize>,
    /// By instance: called and not awake yet.
    called: Box<[bool]>,
    /// By instance: executed by a thread that is not its own, which sleeps meanwhile.
    lent: Box<[bool]>,
    /// By instance: who borrowed it has left answers that are owed. What it takes next may depend on them.
    owes: Box<[bool]>,
    closed: bool,
    /// An instance is gone that should not be.
    given_up: bool,
    /// When the timer rings next, `u64::MAX` = not.
    alarm: u64,
    conflicts: ConflictLog,
    delay_hook: Option<DelayHook>,
    wakes: Vec<Wake>,
    gone: Vec<(InferRequest, Refusal)>,
}

enum Batcher {
    Dynamic(Box<DynamicBatcher<InferRequest>>),
    Sequence(Box<SequenceBatcher<InferRequest>>),
}

/// What an instance executes next; used again and again.
#[derive(Default)]
pub struct Batch {
    /// Null requests for idle sequence slots among them.
    pub requests: Vec<InferRequest>,
    pub close_reason: Option<CloseReason>,
    entries: Vec<BatchEntry<InferRequest>>,
}

/// Instances to call, and requests to refuse, once the lock is released.
#[derive(Default)]
struct After {
    calls: SmallVec<[usize; 2]>,
    gone: Vec<(InferRequest, Refusal)>,
}

impl Queue {
    /// A queue for `instances` instances. `in_order`: responses leave in the order of arrival.
    pub fn new(
        policy: SchedulingPolicy,
        signature: &Arc<Signature>,
        instances: usize,
        in_order: bool,
    ) -> Arc<Self> {
        let one_by_one = match &policy {
            SchedulingPolicy::Dynamic(settings) => {
                settings.batching.is_none() && settings.levels == 0
            }
            SchedulingPolicy::Sequence(..) => false,
        };
        let (batcher, controls) = match policy {
            SchedulingPolicy::Dynamic(settings) => {
                (Batcher::Dynamic(Box::new(DynamicBatcher::new(settings))), None)
            }
            SchedulingPolicy::Sequence(settings, controls) => {
                (Batcher::Sequence(Box::new(SequenceBatcher::new(settings))), Some(*controls))
            }
        };
        let state = State {
            batcher,
            idle: Vec::with_capacity(instances),
            called: vec![false; instances].into(),
            lent: vec![false; instances].into(),
            owes: vec![false; instances].into(),
            closed: false,
            given_up: false,
            alarm: u64::MAX,
            conflicts: ConflictLog::default(),
            delay_hook: DelayHook::from_environment(controls.is_some()),
            wakes: Vec::new(),
            gone: Vec::new(),
        };
        Arc::new_cyclic(|me| Self {
            state: Mutex::new(state),
            bells: (0..instances).map(|_| Bell::default()).collect(),
            assembler: BatchAssembler::new(Arc::clone(signature), controls),
            one_by_one,
            order: in_order.then(Arc::default),
            signature: Arc::clone(signature),
            me: Weak::clone(me),
        })
    }

    /// `instance` may be executed by others while it sleeps.
    pub fn lend(&self, instance: usize, lendable: Weak<dyn Lendable>) {
        let _ = self.bells[instance].lendable.set(lendable);
    }

    /// Queues a checked request, and executes it where that is faster than to wake an instance. The reply is answered
    /// whatever happens.
    pub fn submit(&self, request: InferRequest) {
        if let Err(error) = self.assembler.check(&request) {
            let _ = request.responder.fail(error, FailureReason::Other);
            return;
        }
        let now = now_ns();
        request.responder.queued(now);
        let mut state = self.lock();
        if state.closed {
            let given_up = state.given_up;
            drop(state);
            let error = if given_up { self.no_instance() } else { stopping() };
            let _ = request.responder.fail(error, FailureReason::Other);
            return;
        }
        if let Some(order) = &self.order {
            request.responder.wrap_sink(|sink| order.enter(sink));
        }
        let reply = Arc::clone(&request.responder);
        // Who reads a stream reads on while a request is executed, that others may join or overtake it.
        // And whoever has a deadline is told when it passes, which the thread that executes could not do.
        let may_borrow = (self.one_by_one || !request.streaming) && request.deadline_ns == 0;
        let id = request.sequence.start.then(|| request.sequence.id.clone());
        let State { batcher, wakes, gone, conflicts, .. } = &mut *state;
        let mut conflict = None;
        let ticket = match batcher {
            Batcher::Dynamic(batcher) => batcher.push(request, now, wakes),
            Batcher::Sequence(batcher) => batcher.push(request, now, wakes).map(|pushed| {
                conflict = pushed.conflict.then(|| conflicts.tell(now)).flatten();
                pushed.ticket
            }),
        };
        match ticket {
            Ok(ticket) => {
                // A caller who went away before the queue knew the request could not tell it.
                if reply.cancel_token.notify(self.me.clone(), ticket.0) {
                    batcher.cancel(ticket, now, gone, wakes);
                    state.close_up(now);
                }
            }
            Err(refusal) => gone.push(refusal),
        }
        let mut after = state.settle(|at| timer::schedule(at, self.me.clone()));
        let borrowed =
            if may_borrow { self.borrow(&mut state, &mut after.calls, now) } else { None };
        drop(state);
        self.follow(after);
        if let Some(untold) = conflict {
            let more = match untold {
                0 => String::new(),
                n => format!(" {n} more such conflicts of this model were not logged."),
            };
            tracing::warn!(
                "sequence {} for model '{}' has a conflict. The previous sequence did not end before \
                 this sequence start. Previous sequence will be terminated early.{more}",
                id.unwrap_or_default(),
                self.signature.model
            );
        }
        if let Some(borrowed) = borrowed {
            borrowed.work(now);
        }
    }

    /// One of the instances to be called, for this thread to execute instead.
    fn borrow(
        &self,
        state: &mut State,
        calls: &mut SmallVec<[usize; 2]>,
        now: u64,
    ) -> Option<Borrowed<'_>> {
        let instance = *calls.last()?;
        let lendable = self.bells[instance].lendable.get()?.upgrade()?;
        if !lendable.is_quick() {
            return None;
        }
        let turn = borrower::turn(now)?;
        calls.pop();
        state.called[instance] = false;
        state.lent[instance] = true;
        Some(Borrowed { queue: self, instance, lendable, _turn: turn, given_back: false })
    }

    /// Batch for `instance`, which this thread has borrowed. False when there is none now: the instance is given back.
    pub fn take_lent(&self, instance: usize, now: u64, batch: &mut Batch) -> bool {
        batch.requests.clear();
        let mut state = self.lock();
        self.expire(&mut state, now);
        match state.next_batch(instance, now, &mut batch.entries) {
            BatchDecision::Batch(closed) => {
                batch.close_reason = Some(closed);
                state.hand_on();
                self.release(state);
                self.assembler.fill(&mut batch.entries, &mut batch.requests);
                true
            }
            BatchDecision::Wait { until } => {
                // Only its own thread waits for a moment, or ends.
                let needed = until.is_some() || state.closed;
                state.give_back(instance, needed);
                self.release(state);
                false
            }
        }
    }

    /// Gives `instance` back before [`Queue::take_lent`] did. `owes`: answers to what it has executed are to come.
    pub fn give_back(&self, instance: usize, owes: bool) {
        let mut state = self.lock();
        state.owes[instance] = owes;
        let needed = owes || state.closed || state.batcher.waiting() > 0;
        state.give_back(instance, needed);
        self.release(state);
    }

    /// Waits for batch for `instance`, which executes nothing now. False when the queue is closed and empty.
    pub fn take(&self, instance: usize, batch: &mut Batch) -> bool {
        batch.requests.clear();
        let mut state = self.lock();
        loop {
            if std::mem::take(&mut state.owes[instance]) {
                drop(state);
                // The next step of a sequence reads the states that the answers write.
                if let Some(lendable) = self.bells[instance].lendable.get().and_then(Weak::upgrade)
                {
                    lendable.wait_for_room();
                }
                state = self.lock();
            }
            let now = now_ns();
            self.expire(&mut state, now);
            let formed = state.next_batch(instance, now, &mut batch.entries);
            if let BatchDecision::Batch(closed) = formed {
                batch.close_reason = Some(closed);
                state.hand_on();
                self.release(state);
                self.assembler.fill(&mut batch.entries, &mut batch.requests);
                return true;
            }
            if !state.gone.is_empty() || !state.wakes.is_empty() {
                self.release(state);
                state = self.lock();
                continue;
            }
            if state.closed && state.batcher.waiting() == 0 {
                return false;
            }
            let BatchDecision::Wait { until } = formed else { continue };
            state = self.sleep(state, instance, until.map(|until| until.saturating_sub(now)));
        }
    }

    /// Until somebody calls the instance or `ns` have passed.
    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        instance: usize,
        ns: Option<u64>,
    ) -> MutexGuard<'a, State> {
        state.idle.push(instance);
        let bell = &self.bells[instance].rung;
        match ns {
            None => {
                while !state.called[instance] {
                    state = bell.wait(state);
                }
            }
            // Waking too early does no harm here: the batcher is asked again.
            Some(ns) => {
                let waited = bell.wait_timeout(state, Duration::from_nanos(ns));
                state = waited.0;
                // Who has borrowed it has taken over what there was to look out for.
                while state.lent[instance] && !state.called[instance] {
                    state = bell.wait(state);
                }
            }
        }
        if !std::mem::take(&mut state.called[instance]) {
            state.idle.retain(|i| *i != instance);
        }
        state
    }

    fn expire(&self, state: &mut State, now: u64) {
        let State { batcher, gone, wakes, .. } = state;
        if batcher.next_deadline().is_some_and(|at| at <= now) {
            match batcher {
                Batcher::Dynamic(batcher) => batcher.expire(now, gone),
                Batcher::Sequence(batcher) => batcher.expire(now, gone, wakes),
            }
        }
    }

    fn release(&self, state: MutexGuard<'_, State>) {
        self.release_until(state, 0);
    }

    /// Does what the batcher asked for: sets the timer, releases the lock, then calls and refuses. The timer that is set
    /// here does not ring before `silent`.
    fn release_until(&self, mut state: MutexGuard<'_, State>, silent: u64) {
        let after = state.settle(|at| timer::schedule(at.max(silent), self.me.clone()));
        drop(state);
        self.follow(after);
    }

    fn follow(&self, after: After) {
        for instance in after.calls {
            self.bells[instance].rung.notify_one();
        }
        for (request, refusal) in after.gone {
            let (error, reason) = refusal_error(refusal, &request);
            let _ = request.responder.fail(error, reason);
        }
    }

    /// Sequences that have not ended.
    pub fn active_sequences(&self) -> usize {
        match &self.lock().batcher {
            Batcher::Dynamic(_) => 0,
            Batcher::Sequence(batcher) => batcher.known(),
        }
    }

    /// Whether it is one of those.
    pub fn has_sequence(&self, sequence: &Sequence) -> bool {
        match &self.lock().batcher {
            Batcher::Dynamic(_) => false,
            Batcher::Sequence(batcher) => batcher.knows(&sequence.id),
        }
    }

    /// No more requests come in; what waits is still executed.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.delay_hook = None;
        let State { batcher, wakes, .. } = &mut *state;
        match batcher {
            Batcher::Dynamic(batcher) => batcher.close(),
            Batcher::Sequence(batcher) => batcher.close(wakes),
        }
        state.wake_all();
        self.release(state);
    }

    /// An instance ended by a fault of the server: what waits is refused, and so is what comes.
    pub fn give_up(&self) {
        self.lock().given_up = true;
        self.close();
        let mut entries = Vec::new();
        let mut state = self.lock();
        for instance in 0..self.bells.len() {
            while let BatchDecision::Batch(_) = state.next_batch(instance, u64::MAX, &mut entries) {
            }
        }
        self.release(state);
        for entry in entries {
            if let BatchEntry::Request(request) = entry {
                let _ = request.responder.fail(self.no_instance(), FailureReason::Other);
            }
        }
    }

    /// What `instance` remembered is gone: sequences that it has begun cannot go on.
    pub fn lose(&self, instance: usize) {
        let mut state = self.lock();
        let now = now_ns();
        let State { batcher, gone, wakes, .. } = &mut *state;
        if let Batcher::Sequence(batcher) = batcher {
            batcher.lose(instance, now, gone, wakes);
        }
        self.release(state);
    }

    fn no_instance(&self) -> Error {
        Error::internal(format!(
            "model '{}' is out of service: an instance ended by a fault of the server; see its log",
            self.signature.model
        ))
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.lock().batcher.waiting()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn next_batch(
        &mut self,
        instance: usize,
        now: u64,
        entries: &mut Vec<BatchEntry<InferRequest>>,
    ) -> BatchDecision {
        if let Some(delay_hook) = self.delay_hook {
            let backlog = match &self.batcher {
                Batcher::Dynamic(_) => 0,
                Batcher::Sequence(batcher) => batcher.backlog(),
            };
            if !delay_hook.is_satisfied(self.batcher.waiting(), backlog) {
                let step = delay_hook::POLL_INTERVAL.as_nanos() as u64;
                return BatchDecision::Wait { until: Some(now + step) };
            }
            self.delay_hook = None;
        }
        match &mut self.batcher {
            Batcher::Dynamic(batcher) => batcher.next_batch(now, entries),
            Batcher::Sequence(batcher) => batcher.next_batch(instance, now, entries),
        }
    }

    /// After a batch was taken: somebody else sees to what is left of a shared line.
    fn hand_on(&mut self) {
        let waiting = self.batcher.waiting();
        if waiting > 0 && matches!(self.batcher, Batcher::Dynamic(_)) {
            self.wakes.push(Wake::Any);
        }
    }

    /// After requests have left a shared line, or changed places in it: those that stay may make a batch now, and the
    /// instances asleep look out for a later moment.
    fn close_up(&mut self, now: u64) {
        if let Batcher::Dynamic(batcher) = &mut self.batcher
            && !self.idle.is_empty()
            && batcher.closes(now)
        {
            self.wakes.push(Wake::Any);
        }
    }

    /// A borrowed instance is free again; `needed`: its thread has something to do.
    fn give_back(&mut self, instance: usize, needed: bool) {
        self.lent[instance] = false;
        self.idle.push(instance);
        if needed {
            self.wakes.push(Wake::Instance(instance));
        }
    }

    fn wake_all(&mut self) {
        self.wakes.extend((0..self.called.len()).map(Wake::Instance));
    }

    fn settle(&mut self, set_timer: impl FnOnce(u64)) -> After {
        if self.closed && self.batcher.waiting() == 0 {
            self.wake_all();
        }
        let mut calls = SmallVec::new();
        for wake in self.wakes.drain(..) {
            let position = match wake {
                Wake::Any => self.idle.len().checked_sub(1),
                Wake::Instance(instance) => self.idle.iter().position(|i| *i == instance),
            };
            if let Some(position) = position {
                let instance = self.idle.remove(position);
                self.called[instance] = true;
                calls.push(instance);
            }
        }
        if let Some(at) = self.batcher.next_deadline()
            && at < self.alarm
        {
            self.alarm = at;
            set_timer(at);
        }
        After { calls, gone: std::mem::take(&mut self.gone) }
    }
}

impl Batcher {
    fn cancel(
        &mut self,
        ticket: QueueTicket,
        now: u64,
        gone: &mut Vec<(InferRequest, Refusal)>,
        wakes: &mut Vec<Wake>,
    ) {
        match self {
            Batcher::Dynamic(batcher) => {
                gone.extend(batcher.cancel(ticket).map(|request| (request, Refusal::Cancelled)));
            }
            Batcher::Sequence(batcher) => batcher.cancel(ticket, now, gone, wakes),
        }
    }

    fn next_deadline(&self) -> Option<u64> {
        match self {
            Batcher::Dynamic(batcher) => batcher.next_deadline(),
            Batcher::Sequence(batcher) => batcher.next_deadline(),
        }
    }

    fn waiting(&self) -> usize {
        match self {
            Batcher::Dynamic(batcher) => batcher.waiting(),
            Batcher::Sequence(batcher) => batcher.waiting(),
        }
    }
}

impl CancelObserver for Queue {
    fn cancelled(&self, ticket: u64) {
        let mut state = self.lock();
        let now = now_ns();
        let State { batcher, gone, wakes, .. } = &mut *state;
        batcher.cancel(QueueTicket(ticket), now, gone, wakes);
        state.close_up(now);
        self.release(state);
    }
}

impl DeadlineCallback for Queue {
    fn on_deadline(&self) {
        let mut state = self.lock();
        state.alarm = u64::MAX;
        let now = now_ns();
        self.expire(&mut state, now);
        state.close_up(now);
        self.release_until(state, now + MIN_TIMER_INTERVAL_NS);
    }
}

fn stopping() -> Error {
    Error::unavailable(
        "Server is stopping, scheduler for model has stopped accepting new inference requests",
    )
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
