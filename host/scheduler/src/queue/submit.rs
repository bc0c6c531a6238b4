//! Submission: a frontend's request enters the queue, and the thread may run an instance inline.

use super::{QueueState, RequestQueue};
use crate::conflict_log;
use crate::inline::{self, InlineInstance, InlinePermit, InlineRun, PostponedRun};
use crate::late_refusal::{LateArrival, WaitLimits, find_late};
use crate::refusal_errors::late_error;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::clock::now_ns;
use trtserver_base::error::Error;
use trtserver_base::stats::FailureReason;
use trtserver_request::InferRequest;

impl RequestQueue {
    /// Queues a checked request, and runs an idle instance inline where that is allowed. The
    /// request gets its final response whatever happens.
    pub fn submit(&self, mut request: InferRequest) {
        if let Err(error) = self.assembler.check(&request) {
            let _ = request.responder.fail(error, FailureReason::Refused);
            return;
        }
        let now = now_ns();
        request.responder.queued(now);
        if let Some(turn) = &mut request.client {
            turn.begin(now);
        }
        let mut state = self.lock();
        if state.closed {
            let error = state.out_of_service.clone().unwrap_or_else(stopping_error);
            drop(state);
            let _ = request.responder.fail(error, FailureReason::Other);
            return;
        }
        if let Some(target) = self.wait_target
            && let Some(late) = self.find_late(&state, &request, target, now)
        {
            drop(state);
            let error = late_error(&late, &request);
            let _ = request.responder.fail(error, FailureReason::Late);
            return;
        }
        if let Some(order) = &self.response_order {
            request.responder.wrap_sink(|sink| order.enter(sink));
        }
        let responder = Arc::clone(&request.responder);
        // The reader of a stream must keep reading where later requests may join or overtake this
        // one. Only a network thread that is not executing can cancel a request whose deadline
        // passes, or send what a backend waits for. Tensors of a device are copied by the
        // instance's thread, which waits for the copy.
        let may_run_inline = (self.independent || !request.streaming)
            && request.deadline_ns == 0
            && !request.context().may_wait()
            && !request.context().waits_for_device();
        let sequence = request.sequence.start.then(|| request.sequence.id.clone());
        let QueueState { batcher, wakes, refused, conflict_log, .. } = &mut *state;
        let mut conflict = None;
        if let Some(pushed) = batcher.push(request, now, refused, wakes) {
            if pushed.conflict {
                conflict = conflict_log.admit(now);
            }
            // The client disconnected before the cancel token knew the queue, so its cancellation
            // did not reach the queue.
            if responder.cancel_token.notify(self.me.clone(), pushed.ticket.0) {
                batcher.cancel(pushed.ticket, now, refused, wakes);
                state.wake_if_batch_ready(now);
            }
        }
        let mut effects = self.finish_step(&mut state, 0);
        let inline = if may_run_inline {
            self.start_inline(&mut state, &mut effects.notify, now)
        } else {
            None
        };
        drop(state);
        self.apply(effects);
        if let Some(suppressed) = conflict {
            conflict_log::warn_conflict(
                &self.signature.model,
                &sequence.unwrap_or_default(),
                suppressed,
            );
        }
        match inline {
            None => {}
            Some(InlineStart::Now(instance, run)) => instance.run(run, now),
            Some(InlineStart::Postponed(run)) => inline::postpone(run),
        }
    }

    /// Why `request` is refused because it would wait too long.
    #[cold]
    fn find_late(
        &self,
        state: &QueueState,
        request: &InferRequest,
        target: Duration,
        now: u64,
    ) -> Option<LateArrival> {
        if request.warmup {
            return None;
        }
        let arrival = state.batcher.arrival(request, self.signature.max_batch_size)?;
        let instances = state.instances.in_service();
        let estimate = request.context().stats.as_ref()?.service_estimate(now, instances);
        let left = |deadline: u64| Duration::from_nanos(deadline.saturating_sub(now));
        let limits = WaitLimits {
            target,
            timeout_us: request.timeout_us,
            answer_within: (request.deadline_ns != 0).then(|| left(request.deadline_ns)),
        };
        let is_busy = !state.instances.any_free();
        find_late(&estimate, &arrival, (instances, is_busy), &limits)
    }

    /// The last of the instances to notify, for this thread to run instead: now, or at the end of
    /// its turn.
    fn start_inline(
        &self,
        state: &mut QueueState,
        notify: &mut SmallVec<[usize; 2]>,
        now: u64,
    ) -> Option<InlineStart<'_>> {
        if let Some(ordinal) = self.find_due_instance(state, now) {
            let (instance, run) = self.start_postponed(state, ordinal, now)?;
            return Some(InlineStart::Now(instance, run));
        }
        let ordinal = *notify.last()?;
        let instance = state.instances.inline(ordinal)?.upgrade()?;
        if !instance.is_fast() {
            return None;
        }
        if let Some(run) = self.postpone(state, &*instance, ordinal, now) {
            notify.pop();
            return Some(InlineStart::Postponed(run));
        }
        let permit = InlinePermit::try_acquire(now)?;
        notify.pop();
        state.instances.start_inline(ordinal);
        Some(InlineStart::Now(instance, InlineRun::new(self, ordinal, permit)))
    }
}

/// What the submitting thread does for an instance after it has released the queue's lock.
enum InlineStart<'a> {
    Now(Arc<dyn InlineInstance>, InlineRun<'a>),
    Postponed(PostponedRun),
}

fn stopping_error() -> Error {
    Error::unavailable(
        "Server is stopping, scheduler for model has stopped accepting new inference requests",
    )
}
