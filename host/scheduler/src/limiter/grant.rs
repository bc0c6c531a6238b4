//! The resources of one execution: held from when its batch is taken until its last response and
//! its instance's next step.

use super::state::GrantId;
use super::{LimiterWakes, RateLimiter};
use crate::limiter::LimiterMember;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use trtserver_base::stats::ExecutionHold;

/// All its requests have their final response.
const FINISHED: u8 = 1;
/// Its instance is about to ask for the next batch.
const RETURNED: u8 = 2;
/// Its resources are given back.
const ENDED: u8 = 4;

/// Resources of a batch. They are given back when the batch is finished: by its instance, which asks
/// for the next batch in the same step and so keeps its turn, or by the last response if that comes
/// later; at the latest when this is dropped.
pub struct ExecutionGrant {
    limiter: Arc<RateLimiter>,
    pub(super) id: GrantId,
    stage: AtomicU8,
}

impl ExecutionGrant {
    pub(super) fn new(limiter: Arc<RateLimiter>, id: GrantId) -> Arc<Self> {
        Arc::new(Self { limiter, id, stage: AtomicU8::new(0) })
    }

    /// The instance has executed the batch. If it is finished its resources are given back;
    /// `asks`: the instance has a further batch.
    pub(crate) fn returned(
        self: Arc<Self>,
        limit: &LimiterMember,
        asks: bool,
        now: u64,
    ) -> LimiterWakes {
        let before = self.stage.fetch_or(RETURNED, Ordering::AcqRel);
        // Without an execution that could finish it: it was not begun.
        let finished = before & FINISHED != 0 || Arc::strong_count(&self) == 1;
        if finished && self.set_ended() {
            return limit.end_and_ask(&self, asks, now);
        }
        LimiterWakes::default()
    }

    /// True for the caller that has to give the resources back.
    pub(super) fn set_ended(&self) -> bool {
        self.stage.fetch_or(ENDED, Ordering::AcqRel) & ENDED == 0
    }

    pub(super) fn limiter(&self) -> &Arc<RateLimiter> {
        &self.limiter
    }
}

impl ExecutionHold for ExecutionGrant {
    fn finished(&self) {
        let before = self.stage.fetch_or(FINISHED, Ordering::AcqRel);
        if before & RETURNED != 0 && self.set_ended() {
            self.limiter.end(self.id);
        }
    }
}

impl Drop for ExecutionGrant {
    fn drop(&mut self) {
        if self.set_ended() {
            self.limiter.end(self.id);
        }
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<ExecutionGrant>>> = const { RefCell::new(None) };
}

/// This thread executes the batch of a grant until this is dropped.
pub struct CurrentExecution(Option<Arc<ExecutionGrant>>);

impl ExecutionGrant {
    /// This thread executes its batch until what is returned is dropped.
    pub fn enter(self: &Arc<Self>) -> CurrentExecution {
        CurrentExecution(CURRENT.replace(Some(Arc::clone(self))))
    }
}

impl Drop for CurrentExecution {
    fn drop(&mut self) {
        drop(CURRENT.replace(self.0.take()));
    }
}

/// The grant of the batch that this thread executes.
pub fn current_execution() -> Option<Arc<ExecutionGrant>> {
    CURRENT.with_borrow(Clone::clone)
}
