//! Memory budget: a limit on the bytes that requests and responses hold in this process
//! (`--max-request-memory`).
//!
//! Bytes are drawn from the budget before memory is allocated, and given back when the memory is
//! freed: a [`MemoryReservation`] is owned by the buffer that it pays for. What does not fit waits
//! for a short time, first come first served, and is then refused. Small messages are not drawn
//! individually: what a connection may hold of them is bounded by its buffers. A reservation enters
//! its bytes in the ledger, under the model and the use that its tag names.

mod available;
mod open_calls;
mod reserved_bytes;
mod waiters;

pub use available::{address_space_limit, available_memory};
pub use open_calls::{CallGrant, OpenCallLimit};
pub use reserved_bytes::charge_bytes;

use crate::error::{Code, Error};
use crate::ledger::{LedgerHolder, MemoryTag};
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use waiters::BudgetWaiters;

/// Messages up to this size are not drawn from the budget individually.
pub const SMALL: usize = 64 << 10;
/// How long a request waits for memory before it is refused.
pub const MAX_WAIT: Duration = Duration::from_millis(250);

/// Process-wide: every tensor is drawn from it where it is allocated, also in functions that
/// backends call.
static BUDGETS: ProcessBudgets = ProcessBudgets {
    requests: MemoryBudget::new(usize::MAX),
    models: MemoryBudget::new(usize::MAX),
};

struct ProcessBudgets {
    /// Without a limit until the server sets one.
    requests: MemoryBudget,
    /// Memory of loaded models that is not of requests: counted, not limited.
    models: MemoryBudget,
}

/// The budget of this process.
pub fn request_memory() -> &'static MemoryBudget {
    &BUDGETS.requests
}

/// Memory of loaded models that is not of requests. It has no limit.
pub fn model_memory() -> &'static MemoryBudget {
    &BUDGETS.models
}

/// Why a request was refused, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The budget was exhausted.
    Budget,
    /// One message exceeded its own limit.
    MessageSize,
    /// The system had no memory.
    Allocation,
    /// Too many calls were open.
    OpenCalls,
}

impl RefusalReason {
    pub const ALL: [Self; 4] = [Self::Budget, Self::MessageSize, Self::Allocation, Self::OpenCalls];

    pub fn name(self) -> &'static str {
        match self {
            Self::Budget => "memory_budget",
            Self::MessageSize => "message_size",
            Self::Allocation => "allocation",
            Self::OpenCalls => "open_calls",
        }
    }
}

/// The limit on request and response memory of this process, and its use, in bytes.
pub struct MemoryBudget {
    limit: AtomicUsize,
    in_use: AtomicUsize,
    peak: AtomicUsize,
    waiters: BudgetWaiters,
    counts_address_space: AtomicBool,
    refusals: [AtomicU64; RefusalReason::ALL.len()],
}

impl MemoryBudget {
    pub const fn new(limit: usize) -> Self {
        Self {
            limit: AtomicUsize::new(limit),
            in_use: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            waiters: BudgetWaiters::new(),
            counts_address_space: AtomicBool::new(false),
            refusals: [const { AtomicU64::new(0) }; RefusalReason::ALL.len()],
        }
    }

    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Blocks are to be reserved as a whole before they are mapped, because address space is
    /// limited (RLIMIT_AS).
    pub fn counts_address_space(&self) -> bool {
        self.counts_address_space.load(Ordering::Relaxed)
    }

    pub fn set_counts_address_space(&self, counts: bool) {
        self.counts_address_space.store(counts, Ordering::Relaxed);
    }

    pub fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// The most that was ever in use.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    pub fn refusals(&self, reason: RefusalReason) -> u64 {
        self.refusals[reason as usize].load(Ordering::Relaxed)
    }

    /// Counts a refused request.
    pub fn count_refusal(&self, reason: RefusalReason) {
        self.refusals[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A reservation of no bytes, to be grown.
    pub fn empty(&'static self, tag: impl Into<MemoryTag>) -> MemoryReservation {
        MemoryReservation { budget: self, bytes: 0, tag: tag.into() }
    }

    /// Reserves `bytes` at once.
    ///
    /// # Errors
    /// They do not fit now.
    pub fn try_reserve(
        &'static self,
        bytes: usize,
        tag: impl Into<MemoryTag>,
    ) -> Result<MemoryReservation, BudgetExhaustion> {
        let mut reservation = self.empty(tag);
        reservation.try_grow(bytes)?;
        Ok(reservation)
    }

    /// As [`MemoryBudget::try_reserve`], but up to [`SMALL`] bytes are not drawn.
    ///
    /// # Errors
    /// They do not fit now.
    pub fn try_reserve_large(
        &'static self,
        bytes: usize,
        tag: impl Into<MemoryTag>,
    ) -> Result<MemoryReservation, BudgetExhaustion> {
        self.try_reserve(if bytes > SMALL { bytes } else { 0 }, tag)
    }

    /// Reserves `bytes`; waits for at most [`MAX_WAIT`] until they fit. Dropping the future gives
    /// up the place in the queue.
    ///
    /// # Errors
    /// They did not fit in time, or never can.
    pub async fn reserve(
        &'static self,
        bytes: usize,
        tag: impl Into<MemoryTag>,
    ) -> Result<MemoryReservation, BudgetExhaustion> {
        let mut reservation = self.empty(tag);
        reservation.grow(bytes).await?;
        Ok(reservation)
    }

    fn ceiling(&self, holder: LedgerHolder) -> usize {
        let limit = self.limit();
        if holder.is_request() { limit - limit / 8 } else { limit }
    }

    fn exhausted(&self, bytes: usize, holder: LedgerHolder) -> BudgetExhaustion {
        let (limit, reserved) = (self.limit(), self.limit() - self.ceiling(holder));
        BudgetExhaustion { requested: bytes, in_use: self.in_use(), limit, reserved }
    }

    /// Adds `bytes` if they fit.
    fn take(&self, bytes: usize, tag: MemoryTag) -> bool {
        let ceiling = self.ceiling(tag.holder);
        let add = |in_use: usize| in_use.checked_add(bytes).filter(|sum| *sum <= ceiling);
        // SeqCst orders this after `BudgetWaiters::enter`, see there.
        match self.in_use.fetch_update(Ordering::SeqCst, Ordering::Relaxed, add) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                tag.add(bytes);
                true
            }
            Err(_) => false,
        }
    }

    /// Adds `bytes`, whether they fit or not.
    fn take_beyond(&self, bytes: usize, tag: MemoryTag) {
        let before = self.in_use.fetch_add(bytes, Ordering::SeqCst);
        self.peak.fetch_max(before + bytes, Ordering::Relaxed);
        tag.add(bytes);
    }

    fn give_back(&'static self, bytes: usize, tag: MemoryTag) {
        if bytes > 0 {
            tag.remove(bytes);
            self.in_use.fetch_sub(bytes, Ordering::SeqCst);
            self.waiters.serve(self);
        }
    }
}

/// Bytes drawn from a budget, given back on drop.
pub struct MemoryReservation {
    budget: &'static MemoryBudget,
    bytes: usize,
    tag: MemoryTag,
}

impl MemoryReservation {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves `more` bytes in addition, at once.
    ///
    /// # Errors
    /// They do not fit now. The reservation is unchanged.
    pub fn try_grow(&mut self, more: usize) -> Result<(), BudgetExhaustion> {
        if !self.budget.take(more, self.tag) {
            return Err(self.budget.exhausted(more, self.tag.holder));
        }
        self.bytes += more;
        Ok(())
    }

    /// As [`MemoryReservation::try_grow`], but waits for at most [`MAX_WAIT`] until the bytes fit.
    /// Resolves to an error if they did not fit in time, or never can; the reservation is then
    /// unchanged.
    pub fn grow(&mut self, more: usize) -> ReservationGrowth<'_> {
        // First come, first served: it waits behind earlier reservations, even if it would fit.
        if self.budget.waiters.is_empty() && self.try_grow(more).is_ok() {
            return ReservationGrowth::done();
        }
        ReservationGrowth(Some(Box::pin(self.wait_and_grow(more))))
    }

    async fn wait_and_grow(&mut self, more: usize) -> Result<(), BudgetExhaustion> {
        if more > self.budget.ceiling(self.tag.holder) {
            return Err(self.budget.exhausted(more, self.tag.holder));
        }
        match self.budget.waiters.wait(self.budget, more, self.tag).await {
            Some(granted) => {
                self.merge(granted);
                Ok(())
            }
            None => Err(self.budget.exhausted(more, self.tag.holder)),
        }
    }

    /// Reserves `more` bytes in addition, whether they fit or not: for little memory whose use is
    /// limited otherwise.
    pub fn grow_beyond(&mut self, more: usize) {
        if more > 0 {
            self.budget.take_beyond(more, self.tag);
            self.bytes += more;
        }
    }

    pub fn tag(&self) -> MemoryTag {
        self.tag
    }

    /// Enters the bytes under another tag, once the model or the use is known.
    pub fn set_tag(&mut self, tag: impl Into<MemoryTag>) {
        let tag = tag.into();
        if tag != self.tag && self.bytes > 0 {
            self.tag.remove(self.bytes);
            tag.add(self.bytes);
        }
        self.tag = tag;
    }

    /// Gives back all but `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.bytes.saturating_sub(bytes);
        self.bytes -= surplus;
        self.budget.give_back(surplus, self.tag);
    }

    /// Takes over the bytes of `other`, which must be of the same budget.
    pub fn merge(&mut self, mut other: Self) {
        debug_assert!(std::ptr::eq(self.budget, other.budget));
        other.set_tag(self.tag);
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Splits off up to `bytes`, so that two buffers can be freed at different times.
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { budget: self.budget, bytes, tag: self.tag }
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes, self.tag);
    }
}

impl fmt::Debug for MemoryReservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reservation").field(&self.bytes).finish()
    }
}

/// The future of [`MemoryReservation::grow`]. Waiting is boxed: the futures of requests that need
/// not wait have no space for it, and what fits at once is not allocated.
pub struct ReservationGrowth<'a>(Option<Waiting<'a>>);

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<(), BudgetExhaustion>> + Send + 'a>>;

impl ReservationGrowth<'_> {
    /// Nothing is missing.
    pub fn done() -> Self {
        Self(None)
    }
}

impl Future for ReservationGrowth<'_> {
    type Output = Result<(), BudgetExhaustion>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Some(wait) => wait.as_mut().poll(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// The budget cannot provide the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetExhaustion {
    pub requested: usize,
    pub in_use: usize,
    pub limit: usize,
    /// Part of the limit that is not for this purpose.
    pub reserved: usize,
}

impl fmt::Display for BudgetExhaustion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requested, in_use, limit, reserved } = self;
        write!(
            f,
            "memory for requests is exhausted: {requested} bytes are needed, {in_use} of at most {limit} bytes \
             (--max-request-memory) are in use"
        )?;
        match reserved {
            0 => Ok(()),
            _ => write!(f, ", {reserved} of them only by responses"),
        }
    }
}

impl std::error::Error for BudgetExhaustion {}

impl BudgetExhaustion {
    /// The error that the client sees. Counts the refusal.
    pub fn refuse(self) -> Error {
        request_memory().count_refusal(RefusalReason::Budget);
        Error::new(Code::ResourceExhausted, self.to_string())
    }
}

/// The refusal of a request for which the system has no memory: `what` needed `bytes`. Counts it.
pub fn out_of_memory(what: &str, bytes: usize) -> Error {
    request_memory().count_refusal(RefusalReason::Allocation);
    Error::new(Code::ResourceExhausted, format!("out of memory for {what} of {bytes} bytes"))
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
