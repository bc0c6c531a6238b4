//! The queue between frontends and instances of one model version: a batcher under a lock, and
//! threads that sleep and wake.
//!
//! **Locks.** The queue's lock is held for one step of the batcher: a submission, the decision
//! about a batch, a cancellation, a timeout. A step only records its effects: instances to notify
//! and requests to refuse ([`QueueEffects`]). They are carried out after the lock is released. So
//! are calls of response sinks and backends and the assembly of batches, since each of them may
//! take long, or submit another request to this queue. Three locks are taken under the queue's: a
//! request's, the response order's and the timer's. None of them is held while the queue's lock is
//! taken. The rate limiter's is a fourth, for instances with a demand only; the locks of the model's
//! counters are taken about once a second where late requests are refused.

mod any_batcher;
mod instances;
mod limited;
mod postponed;
mod shutdown;
mod standby;
mod submit;
mod take;
#[cfg(test)]
pub(crate) mod testing;
mod threads;
mod timeouts;

pub use any_batcher::SchedulingPolicy;
pub use take::RequestBatch;

use super::assembler::BatchAssembler;
use super::batcher::settings::PreparedSize;
use super::batcher::{QueueRefusal, WakeTarget};
use super::conflict_log::ConflictLog;
use super::delay_hook::DelayHook;
use super::inline::InlineInstance;
use super::limiter::{ExecutionGrant, GrantObserver, LimiterMember, LimiterWakes};
use super::refusal_errors::refusal_error;
use super::response_order::ResponseOrder;
use any_batcher::QueueBatcher;
use instances::QueueInstances;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use standby::StandbyInstances;
use std::sync::{Arc, Weak};
use std::time::Duration;
use threads::InstanceThreads;
use trtserver_base::error::Error;
use trtserver_base::timer::DeadlineTimer;
use trtserver_request::{InferRequest, ModelSignature, RequestSequence, Responder};

/// The queue of one model version: its waiting requests and the threads of its instances.
pub struct RequestQueue {
    state: Mutex<QueueState>,
    threads: InstanceThreads,
    /// Their copy threads, if they have some.
    copy_threads: InstanceThreads,
    assembler: BatchAssembler,
    /// Requests are executed one by one in the order of arrival, so that later ones neither join
    /// nor overtake a request.
    independent: bool,
    response_order: Option<Arc<ResponseOrder>>,
    /// Set if requests are batched without a delay: the most rows of a batch. An inline execution
    /// then waits for the end of its thread's turn, or until so many requests are queued.
    joined_rows: Option<usize>,
    /// Set if requests are refused that would wait too long: the wait that is still good.
    wait_target: Option<Duration>,
    signature: Arc<ModelSignature>,
    timer: &'static DeadlineTimer,
    me: Weak<RequestQueue>,
}

struct QueueState {
    batcher: QueueBatcher,
    instances: QueueInstances,
    standby: StandbyInstances,
    closed: bool,
    /// Why no request is accepted any more: an instance ended by a panic, or none is left in
    /// service.
    out_of_service: Option<Error>,
    /// When the timer calls next, `u64::MAX` = never.
    timer_at: u64,
    conflict_log: ConflictLog,
    delay_hook: Option<DelayHook>,
    /// Instances that have to ask for a batch. Empty between two steps.
    wakes: Vec<WakeTarget>,
    /// Requests that left without being executed. Empty between two steps.
    refused: Vec<(InferRequest, QueueRefusal)>,
    /// The grant of the batch that was just taken.
    granted: Option<Arc<ExecutionGrant>>,
    /// Whom the rate limiter has to tell. Empty between two steps.
    limiter_wakes: LimiterWakes,
}

/// What a step leaves to be done once the lock is released.
#[derive(Default)]
struct QueueEffects {
    notify: SmallVec<[usize; 2]>,
    refused: Vec<(InferRequest, QueueRefusal)>,
    limiter_wakes: LimiterWakes,
}

impl RequestQueue {
    /// A queue for `instances` instances. `in_order`: responses leave in the order of arrival.
    pub fn new(
        policy: SchedulingPolicy,
        signature: &Arc<ModelSignature>,
        instances: usize,
        in_order: bool,
        timer: &'static DeadlineTimer,
    ) -> Arc<Self> {
        Self::with_wait_target(policy, signature, instances, in_order, timer, None)
    }

    /// The same; with a `wait_target`, the wait that is still good, requests that would wait too
    /// long are refused on arrival.
    pub fn with_wait_target(
        policy: SchedulingPolicy,
        signature: &Arc<ModelSignature>,
        instances: usize,
        in_order: bool,
        timer: &'static DeadlineTimer,
        wait_target: Option<Duration>,
    ) -> Arc<Self> {
        let independent = match &policy {
            SchedulingPolicy::Dynamic(settings) => {
                settings.batching.is_none() && settings.levels == 0 && !settings.fair
            }
            SchedulingPolicy::Sequence(..) => false,
        };
        let joined_rows = policy.joined_rows();
        let (batcher, controls) = QueueBatcher::new(policy);
        let state = QueueState {
            batcher,
            instances: QueueInstances::new(instances),
            standby: StandbyInstances::default(),
            closed: false,
            out_of_service: None,
            timer_at: u64::MAX,
            conflict_log: ConflictLog::default(),
            delay_hook: DelayHook::from_environment(controls.is_some()),
            wakes: Vec::new(),
            refused: Vec::new(),
            granted: None,
            limiter_wakes: LimiterWakes::default(),
        };
        Arc::new_cyclic(|me| Self {
            state: Mutex::new(state),
            threads: InstanceThreads::new(instances),
            copy_threads: InstanceThreads::new(0),
            assembler: BatchAssembler::new(Arc::clone(signature), controls),
            independent,
            response_order: in_order.then(Arc::default),
            joined_rows,
            wait_target,
            signature: Arc::clone(signature),
            timer,
            me: Weak::clone(me),
        })
    }

    /// Network threads may run `instance` while its own thread sleeps.
    pub fn allow_inline(&self, instance: usize, inline: Weak<dyn InlineInstance>) {
        self.lock().instances.allow_inline(instance, inline);
    }

    /// Executions of `instance` need the resources of `limit`, which lives as long as the instance.
    pub fn limit_instance(&self, instance: usize, limit: &Arc<LimiterMember>) {
        let me: Weak<dyn GrantObserver> = self.me.clone();
        limit.observe(me, instance);
        self.lock().instances.set_limit(instance, Arc::downgrade(limit));
    }

    /// Instance `instance` may take batches from now on. Instances of the start need no such call;
    /// a further one has the next number, or the number of a removed instance whose thread has
    /// ended.
    pub fn add_instance(&self, instance: usize) {
        self.lock().instances.add(instance);
    }

    /// The sizes of batches that all instances are prepared for; empty: any.
    pub fn set_prepared_sizes(&self, sizes: Vec<PreparedSize>) {
        self.lock().batcher.set_prepared(sizes);
    }

    /// Responses leave in the order of arrival.
    pub fn is_ordered(&self) -> bool {
        self.response_order.is_some()
    }

    /// Gives a request that is not queued its place in the order of responses.
    pub fn order_response(&self, responder: &Responder) {
        if let Some(order) = &self.response_order {
            let _arrival = self.lock();
            responder.wrap_sink(|sink| order.enter(sink));
        }
    }

    /// Requests are executed one by one in the order of arrival.
    pub fn is_independent(&self) -> bool {
        self.independent
    }

    pub fn is_sequence(&self) -> bool {
        self.lock().batcher.is_sequence()
    }

    /// Sequences that have not ended.
    pub fn active_sequences(&self) -> usize {
        self.lock().batcher.active_sequences()
    }

    /// Whether `sequence` has begun and not ended.
    pub fn has_sequence(&self, sequence: &RequestSequence) -> bool {
        self.lock().batcher.has_sequence(sequence)
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Requests that are not yet executing.
    pub fn waiting(&self) -> usize {
        self.lock().batcher.waiting()
    }

    /// Instances in service.
    pub fn instances(&self) -> usize {
        self.lock().instances.in_service()
    }

    /// Calls `visit`, which must be quick, with each request that is not yet executing.
    pub fn visit_waiting(&self, visit: &mut dyn FnMut(&InferRequest)) {
        self.lock().batcher.visit_waiting(visit);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }

    /// Ends a step: releases the lock and carries out the effects.
    fn release(&self, mut state: MutexGuard<'_, QueueState>) {
        let effects = self.finish_step(&mut state, 0);
        drop(state);
        self.apply(effects);
    }

    /// Wakes instances and sets the timer, which does not call before `not_before`. To be applied
    /// when the lock is released.
    fn finish_step(&self, state: &mut QueueState, not_before: u64) -> QueueEffects {
        for wake in state.wakes.drain(..) {
            if !state.instances.wake(wake)
                && wake == WakeTarget::Any
                && let Some(instance) = state.standby.first_open()
                && state.batcher.closes_early()
            {
                self.copy_threads.condvar_for(instance).notify_one();
            }
        }
        if state.closed && state.batcher.waiting() == 0 {
            state.instances.wake_all();
        }
        if state.instances.any_limited() && state.batcher.waiting() == 0 {
            state.instances.wake_all_limited();
        }
        if let Some(at) = state.batcher.next_deadline()
            && at < state.timer_at
        {
            state.timer_at = at;
            self.timer.schedule(at.max(not_before), self.me.clone());
        }
        QueueEffects {
            notify: state.instances.take_woken(),
            refused: std::mem::take(&mut state.refused),
            limiter_wakes: std::mem::take(&mut state.limiter_wakes),
        }
    }

    fn apply(&self, effects: QueueEffects) {
        for instance in effects.notify {
            self.threads.condvar_for(instance).notify_one();
        }
        for (request, refusal) in effects.refused {
            let (error, reason) = refusal_error(refusal, &request);
            let _ = request.responder.fail(error, reason);
        }
        if !effects.limiter_wakes.is_empty() {
            effects.limiter_wakes.wake();
        }
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
