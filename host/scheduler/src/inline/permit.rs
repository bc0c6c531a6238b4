//! Permits: which threads may run instances inline, and how many at a time.
//!
//! There is one permit fewer than network threads, so that one of them always serves connections.

use super::PostponedRun;
use super::watchdog::{InlineActivity, InlineWatchdog};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The permits of a group of threads.
pub struct InlinePermits {
    free: AtomicUsize,
    watchdog: InlineWatchdog,
    /// Executes a run at the end of the calling thread's turn. `None`: none is postponed.
    postpone: Option<PostponeHook>,
}

type PostponeHook = Box<dyn Fn(PostponedRun) + Send + Sync>;

/// A thread's membership in its group.
struct PermitMember {
    permits: Arc<InlinePermits>,
    /// `None` until its first permit.
    activity: Option<Arc<InlineActivity>>,
}

thread_local! {
    /// `None` in threads of no group, and in a thread that has a permit, so that inline runs do not
    /// nest.
    static MEMBER: RefCell<Option<PermitMember>> = const { RefCell::new(None) };
}

/// The right of this thread to run an instance now; returned when dropped.
pub struct InlinePermit(Option<(PermitMember, Arc<InlineActivity>)>);

impl InlinePermits {
    /// Permits for a group of `threads` threads, at least two. `wake_idle_thread` makes a sleeping
    /// one poll the sockets of one that is held up.
    pub fn new(threads: usize, wake_idle_thread: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            free: AtomicUsize::new(threads.saturating_sub(1)),
            watchdog: InlineWatchdog::new(wake_idle_thread),
            postpone: None,
        })
    }

    /// The same for threads that postpone runs: `postpone` sees to it that a run is executed at the
    /// end of the calling thread's turn, and dropped if that is held up.
    pub fn postponing(
        threads: usize,
        wake_idle_thread: impl Fn() + Send + Sync + 'static,
        postpone: impl Fn(PostponedRun) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            free: AtomicUsize::new(threads.saturating_sub(1)),
            watchdog: InlineWatchdog::new(wake_idle_thread),
            postpone: Some(Box::new(postpone)),
        })
    }

    /// Adds this thread to the group.
    pub fn register_thread(self: &Arc<Self>) {
        let member = PermitMember { permits: Arc::clone(self), activity: None };
        MEMBER.with_borrow_mut(|current| *current = Some(member));
    }

    fn take(&self) -> bool {
        let less = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, less).is_ok()
    }
}

/// Whether this thread may postpone a run: it is a network thread that executes nothing, and a
/// permit is free now.
pub(crate) fn can_postpone() -> bool {
    let can = |member: &PermitMember| {
        member.permits.postpone.is_some() && member.permits.free.load(Ordering::Relaxed) > 0
    };
    let member = |current: &RefCell<Option<PermitMember>>| {
        current.try_borrow().is_ok_and(|member| member.as_ref().is_some_and(can))
    };
    MEMBER.try_with(member).unwrap_or(false)
}

/// Executes `run` at the end of this thread's turn. To be called without locks.
pub(crate) fn postpone(run: PostponedRun) {
    let permits = |current: &RefCell<Option<PermitMember>>| {
        let current = current.try_borrow().ok()?;
        current.as_ref().map(|member| Arc::clone(&member.permits))
    };
    let permits = MEMBER.try_with(permits).ok().flatten();
    // Without a hook the run is dropped, so that the instance's own thread executes.
    if let Some(hook) = permits.as_ref().and_then(|permits| permits.postpone.as_ref()) {
        hook(run);
    }
}

impl InlinePermit {
    /// `None` in a thread that is in no group or has a permit already, and while all permits are
    /// taken.
    pub fn try_acquire(now: u64) -> Option<Self> {
        let member = MEMBER.try_with(|current| current.try_borrow_mut().ok()?.take());
        let mut member = member.ok()??;
        if member.activity.is_none() {
            member.activity = member.permits.watchdog.watch(&member.permits, |p| &p.watchdog);
        }
        let activity = member.activity.clone();
        let Some(activity) = activity.filter(|_| member.permits.take()) else {
            member.put_back();
            return None;
        };
        member.permits.watchdog.begin(&activity, now);
        Some(Self(Some((member, activity))))
    }
}

impl PermitMember {
    fn put_back(self) {
        let put = |current: &RefCell<Option<Self>>| {
            current.try_borrow_mut().map(|mut current| *current = Some(self))
        };
        let _ = MEMBER.try_with(put);
    }
}

impl Drop for InlinePermit {
    fn drop(&mut self) {
        if let Some((member, activity)) = self.0.take() {
            activity.end();
            member.permits.free.fetch_add(1, Ordering::Release);
            member.put_back();
        }
    }
}

#[cfg(test)]
#[path = "permit_tests.rs"]
mod tests;
