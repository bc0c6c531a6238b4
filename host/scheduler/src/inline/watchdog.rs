//! Watchdog: notices a network thread that an inline execution holds up, and wakes an idle one to
//! take over its sockets.
//!
//! It is a thread that sleeps while nothing is executed inline, so that an idle server has no
//! periodic wake-ups.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::Thread;
use std::time::Duration;
use trtserver_base::clock::now_ns;

/// A thread that executes for longer than this is held up.
pub(super) const STALL_LIMIT: Duration = Duration::from_millis(2);
/// The watchdog sleeps after this many checks without an inline execution.
pub(super) const IDLE_CHECKS: u32 = 10;

/// The watchdog thread, and the network threads that execute inline.
pub(super) struct InlineWatchdog {
    /// One for each thread that has executed.
    activities: Mutex<Vec<Weak<InlineActivity>>>,
    /// `None`: no thread could be started.
    thread: OnceLock<Option<Thread>>,
    asleep: AtomicBool,
    /// Wakes an idle network thread.
    wake_idle_thread: Box<dyn Fn() + Send + Sync>,
}

/// Since when a thread executes, 0 = it does not. On a cache line of its own, since it is written
/// twice for each request.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct InlineActivity {
    since_ns: AtomicU64,
}

impl InlineActivity {
    pub(super) fn end(&self) {
        self.since_ns.store(0, Ordering::Release);
    }
}

impl InlineWatchdog {
    pub(super) fn new(wake_idle_thread: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            activities: Mutex::default(),
            thread: OnceLock::new(),
            asleep: AtomicBool::new(false),
            wake_idle_thread: Box::new(wake_idle_thread),
        }
    }

    /// The activity of a further thread to watch, or `None` where threads cannot be watched.
    /// `owner` holds this watchdog, which ends with it.
    pub(super) fn watch<O: Send + Sync + 'static>(
        &self,
        owner: &Arc<O>,
        watchdog: fn(&O) -> &InlineWatchdog,
    ) -> Option<Arc<InlineActivity>> {
        let thread = self.thread.get_or_init(|| {
            let owner = Arc::downgrade(owner);
            let thread = std::thread::Builder::new().name("net-watchdog".into());
            match thread.spawn(move || run_watchdog(&owner, watchdog)) {
                Ok(thread) => Some(thread.thread().clone()),
                Err(e) => {
                    tracing::warn!("no inline execution: the watchdog thread did not start: {e}");
                    None
                }
            }
        });
        thread.as_ref()?;
        let activity = Arc::<InlineActivity>::default();
        self.activities.lock().push(Arc::downgrade(&activity));
        Some(activity)
    }

    /// The thread of `activity` executes from now on.
    pub(super) fn begin(&self, activity: &InlineActivity, now: u64) {
        activity.since_ns.store(now, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst)
            && self.asleep.swap(false, Ordering::SeqCst)
            && let Some(Some(thread)) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Wakes an idle thread for each one that is newly held up. True while any thread executes.
    /// `stalled` has the starts of the executions that were found before, by activity.
    fn check(&self, now: u64, stalled: &mut Vec<u64>) -> bool {
        let mut activities = self.activities.lock();
        let before = activities.len();
        activities.retain(|activity| activity.strong_count() > 0);
        if activities.len() != before {
            stalled.clear();
        }
        stalled.resize(activities.len(), 0);
        let mut active = false;
        for (activity, stalled) in activities.iter().zip(stalled) {
            let Some(activity) = activity.upgrade() else { continue };
            let since = activity.since_ns.load(Ordering::SeqCst);
            active |= since != 0;
            let long = now.saturating_sub(since) >= STALL_LIMIT.as_nanos() as u64;
            if since != 0 && long && *stalled != since {
                *stalled = since;
                (self.wake_idle_thread)();
            }
        }
        active
    }
}

/// The watchdog thread, for as long as `owner` exists.
fn run_watchdog<O>(owner: &Weak<O>, watchdog: fn(&O) -> &InlineWatchdog) {
    let mut stalled = Vec::new();
    let mut idle = 0;
    while let Some(owner) = owner.upgrade() {
        let this = watchdog(&owner);
        idle = if this.check(now_ns(), &mut stalled) { 0 } else { idle + 1 };
        if idle < IDLE_CHECKS {
            drop(owner);
            std::thread::sleep(STALL_LIMIT);
            continue;
        }
        idle = 0;
        this.asleep.store(true, Ordering::SeqCst);
        // A thread stored its start, then read `asleep` as false, and does not unpark us: the
        // second check sees that start.
        if this.check(now_ns(), &mut stalled) {
            this.asleep.store(false, Ordering::SeqCst);
            continue;
        }
        drop(owner);
        std::thread::park();
    }
}
