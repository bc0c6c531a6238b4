//! Open gRPC calls of all connections together: their number is limited (`--max-open-calls`), and
//! with their headers they hold a part of the memory budget.

use super::{BudgetExhaustion, MemoryBudget, MemoryReservation, RefusalReason, request_memory};
use crate::error::{Code, Error};
use crate::ledger::LedgerHolder;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The part of the memory budget that open calls may hold: the rest is for messages and tensors.
const SHARE: usize = 4;

/// Limit on the open gRPC calls of all connections, by number and by bytes of their headers.
pub struct OpenCallLimit {
    budget: &'static MemoryBudget,
    max: AtomicUsize,
    open: AtomicUsize,
    bytes: AtomicUsize,
}

impl OpenCallLimit {
    pub const fn new(budget: &'static MemoryBudget) -> Self {
        let (open, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { budget, max: AtomicUsize::new(usize::MAX), open, bytes }
    }

    /// The limit of a server: at most `max` calls, whose memory is of the budget of this process.
    pub fn leak(max: usize) -> &'static Self {
        let limit = Self::new(request_memory());
        limit.set_max(max);
        Box::leak(Box::new(limit))
    }

    pub fn set_max(&self, max: usize) {
        self.max.store(max, Relaxed);
    }

    fn take_calls(&self, more: usize) -> Result<(), CallRefusal> {
        let max = self.max.load(Relaxed);
        let taken = add_within(&self.open, more, max);
        taken.map_err(|open| CallRefusal::Count { open, max })
    }

    fn take_bytes(&self, more: usize) -> Result<(), CallRefusal> {
        let share = self.budget.limit() / SHARE;
        let taken = add_within(&self.bytes, more, share);
        taken.map_err(|in_use| CallRefusal::Share { requested: more, in_use, share })
    }
}

/// Adds to a counter; fails with its value if the sum exceeds `limit`.
fn add_within(counter: &AtomicUsize, more: usize, limit: usize) -> Result<(), usize> {
    if more == 0 {
        return Ok(());
    }
    let add = |value: usize| value.checked_add(more).filter(|sum| *sum <= limit);
    counter.fetch_update(Relaxed, Relaxed, add).map(drop)
}

/// Why a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRefusal {
    Count {
        open: usize,
        max: usize,
    },
    /// Open calls hold their part of the budget.
    Share {
        requested: usize,
        in_use: usize,
        share: usize,
    },
    Budget(BudgetExhaustion),
}

impl CallRefusal {
    /// The error that the client sees. Counts the refusal.
    pub fn refuse(self) -> Error {
        let (reason, text) = match self {
            Self::Budget(exhausted) => return exhausted.refuse(),
            Self::Count { open, max } => (
                RefusalReason::OpenCalls,
                format!(
                    "too many calls are open: {open} of at most {max} over all connections \
                     (--max-open-calls); call again when others have ended"
                ),
            ),
            Self::Share { requested, in_use, share } => (
                RefusalReason::Budget,
                format!(
                    "memory for open calls is exhausted: {requested} bytes are needed, {in_use} of at \
                     most {share} bytes (a quarter of --max-request-memory) are in use; call again \
                     when others have ended"
                ),
            ),
        };
        request_memory().count_refusal(reason);
        Error::new(Code::ResourceExhausted, text)
    }
}

/// Calls of one connection, with their memory; given back on drop.
pub struct CallGrant {
    limit: &'static OpenCallLimit,
    calls: usize,
    memory: MemoryReservation,
}

impl CallGrant {
    pub fn empty(limit: &'static OpenCallLimit) -> Self {
        Self { limit, calls: 0, memory: limit.budget.empty(LedgerHolder::OpenCall) }
    }

    pub fn calls(&self) -> usize {
        self.calls
    }

    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// Grows to so many calls and bytes.
    ///
    /// # Errors
    /// They do not fit. The grant is unchanged.
    pub fn grow_to(&mut self, calls: usize, bytes: usize) -> Result<(), CallRefusal> {
        let more_calls = calls.saturating_sub(self.calls);
        let more_bytes = bytes.saturating_sub(self.bytes());
        self.limit.take_calls(more_calls)?;
        let drawn = self.limit.take_bytes(more_bytes).and_then(|()| {
            let drawn = self.memory.try_grow(more_bytes);
            drawn.map_err(|exhausted| {
                self.limit.bytes.fetch_sub(more_bytes, Relaxed);
                CallRefusal::Budget(exhausted)
            })
        });
        match drawn {
            Ok(()) => self.calls += more_calls,
            Err(_) => drop(self.limit.open.fetch_sub(more_calls, Relaxed)),
        }
        drawn
    }

    /// As [`CallGrant::grow_to`], whether they fit or not.
    pub fn grow_beyond(&mut self, calls: usize, bytes: usize) {
        let more_calls = calls.saturating_sub(self.calls);
        let more_bytes = bytes.saturating_sub(self.bytes());
        self.limit.open.fetch_add(more_calls, Relaxed);
        self.limit.bytes.fetch_add(more_bytes, Relaxed);
        self.memory.grow_beyond(more_bytes);
        self.calls += more_calls;
    }

    /// Gives back all but so many calls and bytes.
    pub fn shrink_to(&mut self, calls: usize, bytes: usize) {
        let surplus = self.calls.saturating_sub(calls);
        self.limit.open.fetch_sub(surplus, Relaxed);
        self.calls -= surplus;
        self.limit.bytes.fetch_sub(self.bytes().saturating_sub(bytes), Relaxed);
        self.memory.shrink_to(bytes);
    }
}

impl Drop for CallGrant {
    fn drop(&mut self) {
        self.shrink_to(0, 0);
    }
}
