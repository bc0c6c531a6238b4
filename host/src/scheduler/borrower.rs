//! Threads that may execute a model themselves: those of the network, while an instance sleeps whose batches are short.
//!
//! It saves two changes of threads for each request. That a model may be slow against all expectation is what the
//! rest is for: one thread fewer executes at a time than there are, and a thread that is held up for longer than
//! [`TOLERATED`] is noticed by the watch, a thread that sleeps when nobody executes.

use crate::clock::now_ns;
use crate::sync::{Mutex, MutexGuard};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::Thread;
use std::time::Duration;

/// So long a thread may be held up before somebody else takes over what only it was looking after.
const TOLERATED: Duration = Duration::from_millis(2);
/// The watch sleeps when it saw nobody execute in so many looks.
const QUIET_LOOKS: u32 = 10;

/// A group of threads that may execute.
pub struct Borrowers {
    /// How many more may do so now.
    free: AtomicUsize,
    /// One for each thread that has executed.
    places: Mutex<Vec<Weak<Place>>>,
    watch: OnceLock<Option<Thread>>,
    watch_sleeps: AtomicBool,
    /// Wakes another thread of the group; called when one is held up.
    rescue: Box<dyn Fn() + Send + Sync>,
}

/// Since when a thread executes, 0 = it does not. On a cache line of its own: it is written twice for each request.
#[derive(Default)]
#[repr(align(128))]
struct Place {
    since_ns: AtomicU64,
}

/// What a thread knows of its group.
struct Member {
    group: Arc<Borrowers>,
    place: Option<Arc<Place>>,
}

thread_local! {
    /// Absent in threads of no group, and while this one executes: what an answer brings about is for others.
    static MEMBER: RefCell<Option<Member>> = const { RefCell::new(None) };
}

/// The right of this thread to execute now.
pub struct Turn(Option<(Member, Arc<Place>)>);

impl Borrowers {
    /// A group of `threads` threads, at least two. `rescue` has one of those that do not execute look after the others' work.
    pub fn new(threads: usize, rescue: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            free: AtomicUsize::new(threads.saturating_sub(1)),
            places: Mutex::default(),
            watch: OnceLock::new(),
            watch_sleeps: AtomicBool::new(false),
            rescue: Box::new(rescue),
        })
    }

    /// This thread belongs to the group from now on.
    pub fn join(self: &Arc<Self>) {
        let member = Member { group: Arc::clone(self), place: None };
        MEMBER.with_borrow_mut(|mine| *mine = Some(member));
    }

    fn place(self: &Arc<Self>) -> Option<Arc<Place>> {
        let watch = self.watch.get_or_init(|| {
            let group = Arc::downgrade(self);
            let watch = std::thread::Builder::new().name("net-watch".into());
            match watch.spawn(move || look_after(&group)) {
                Ok(watch) => Some(watch.thread().clone()),
                Err(e) => {
                    tracing::warn!(
                        "models run on threads of their own only: no further thread: {e}"
                    );
                    None
                }
            }
        });
        watch.as_ref()?;
        let place = Arc::<Place>::default();
        self.places().push(Arc::downgrade(&place));
        Some(place)
    }

    fn places(&self) -> MutexGuard<'_, Vec<Weak<Place>>> {
        self.places.lock()
    }

    fn take_permit(&self) -> bool {
        let less = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, less).is_ok()
    }

    fn wake_watch(&self) {
        if self.watch_sleeps.load(Ordering::SeqCst)
            && self.watch_sleeps.swap(false, Ordering::SeqCst)
            && let Some(Some(watch)) = self.watch.get()
        {
            watch.unpark();
        }
    }

    /// One look of the watch. `seen` is what was found before, by place.
    fn look(&self, now: u64, seen: &mut Vec<u64>) -> bool {
        let mut places = self.places();
        let before = places.len();
        places.retain(|place| place.strong_count() > 0);
        if places.len() != before {
            seen.clear();
        }
        seen.resize(places.len(), 0);
        let mut anybody = false;
        for (place, seen) in places.iter().zip(seen) {
            let Some(place) = place.upgrade() else { continue };
            let since = place.since_ns.load(Ordering::SeqCst);
            anybody |= since != 0;
            let long = now.saturating_sub(since) >= TOLERATED.as_nanos() as u64;
            if since != 0 && long && *seen != since {
                *seen = since;
                (self.rescue)();
            }
        }
        anybody
    }
}

/// What the watch does as long as the group exists.
fn look_after(group: &Weak<Borrowers>) {
    let mut seen = Vec::new();
    let mut quiet = 0;
    while let Some(group) = group.upgrade() {
        quiet = if group.look(now_ns(), &mut seen) { 0 } else { quiet + 1 };
        if quiet < QUIET_LOOKS {
            drop(group);
            std::thread::sleep(TOLERATED);
            continue;
        }
        quiet = 0;
        group.watch_sleeps.store(true, Ordering::SeqCst);
        // Who began before he could see that is seen now.
        if group.look(now_ns(), &mut seen) {
            group.watch_sleeps.store(false, Ordering::SeqCst);
            continue;
        }
        drop(group);
        std::thread::park();
    }
}

/// Whether this thread may execute now, until the turn is dropped.
pub fn turn(now: u64) -> Option<Turn> {
    let mut member = MEMBER.try_with(|mine| mine.try_borrow_mut().ok()?.take()).ok()??;
    if member.place.is_none() {
        member.place = member.group.place();
    }
    let place = member.place.clone();
    let Some(place) = place.filter(|_| member.group.take_permit()) else {
        give_back(member);
        return None;
    };
    place.since_ns.store(now, Ordering::SeqCst);
    member.group.wake_watch();
    Some(Turn(Some((member, place))))
}

fn give_back(member: Member) {
    let _ = MEMBER.try_with(|mine| mine.try_borrow_mut().map(|mut mine| *mine = Some(member)));
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((member, place)) = self.0.take() {
            place.since_ns.store(0, Ordering::Release);
            member.group.free.fetch_add(1, Ordering::Release);
            give_back(member);
        }
    }
}

#[cfg(test)]
#[path = "borrower_tests.rs"]
mod tests;
