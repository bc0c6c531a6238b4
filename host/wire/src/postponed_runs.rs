//! Inline runs that a network thread has put off to the end of its turn
//! (`scheduler/src/inline/postponement.rs`): when they are executed.
//!
//! A turn ends when the thread has polled all tasks that were ready, so that it has read what had
//! arrived on its connections, and has looked at its sockets once more. The runtime resumes a task
//! that has yielded then. Calls that arrived in one read of an HTTP/2 connection are polled in one
//! task (`grpc/first_poll.rs`), which executes the runs itself: the responses leave in one write.
//!
//! Where the thread is held up before, the inline watchdog calls [`PostponedRuns::rescue`], which
//! leaves the batches to the threads of the instances.

use parking_lot::Mutex;
use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use trtserver_scheduler::inline::PostponedRun;

/// The runs that one thread has put off. On a cache line of its own, since it is written with each
/// batch.
#[derive(Default)]
#[repr(align(128))]
pub struct ThreadRuns {
    runs: Mutex<Vec<PostponedRun>>,
    /// A task will execute them.
    scheduled: AtomicBool,
}

impl ThreadRuns {
    /// Executes the runs. Those behind a slow one can be rescued meanwhile; one that panics leaves
    /// the others to the threads of their instances.
    pub fn execute(&self) {
        let _rest = LeftRuns(self);
        loop {
            let next = self.runs.lock().pop();
            let Some(run) = next else { return };
            run.execute();
        }
    }

    /// Leaves the runs to the threads of the instances.
    fn leave(&self) {
        let left = std::mem::take(&mut *self.runs.lock());
        drop(left);
    }

    async fn execute_at_end_of_turn(self: Arc<Self>) {
        tokio::task::yield_now().await;
        self.scheduled.store(false, Ordering::Release);
        self.execute();
    }
}

/// What is left if a run panics.
struct LeftRuns<'a>(&'a ThreadRuns);

impl Drop for LeftRuns<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.leave();
        }
    }
}

thread_local! {
    /// This thread's entry in [`PostponedRuns`].
    static RUNS: OnceCell<Arc<ThreadRuns>> = const { OnceCell::new() };
    /// The task that is being polled has to execute runs of this thread.
    static COLLECTED: Cell<bool> = const { Cell::new(false) };
}

/// The task that this thread polls has put off a run that it has to execute itself.
pub fn has_collected() -> bool {
    COLLECTED.get()
}

/// This thread's runs, if the calling task has to execute them.
pub fn take_collected() -> Option<Arc<ThreadRuns>> {
    COLLECTED.take().then(|| RUNS.with(|runs| runs.get().cloned())).flatten()
}

/// Puts off `run` to the end of this thread's turn. `is_collected`: the task that is being polled
/// executes it.
pub fn postpone(run: PostponedRun, is_collected: bool) {
    let Some(runs) = RUNS.with(|runs| runs.get().cloned()) else { return };
    runs.runs.lock().push(run);
    if is_collected {
        COLLECTED.set(true);
    } else if !runs.scheduled.swap(true, Ordering::AcqRel) {
        tokio::spawn(runs.execute_at_end_of_turn());
    }
}

/// The runs of all network threads.
#[derive(Default)]
pub struct PostponedRuns(Mutex<Vec<Weak<ThreadRuns>>>);

impl PostponedRuns {
    /// Adds this thread.
    pub fn register_thread(&self) {
        let runs = RUNS.with(|runs| Arc::downgrade(runs.get_or_init(Arc::default)));
        let mut all = self.0.lock();
        all.retain(|runs| runs.strong_count() > 0);
        all.push(runs);
    }

    /// Leaves what any thread has put off to the threads of the instances. Called when a thread is
    /// held up.
    pub fn rescue(&self) {
        for runs in self.0.lock().iter().filter_map(Weak::upgrade) {
            runs.leave();
        }
    }
}

#[cfg(test)]
#[path = "postponed_runs_tests.rs"]
mod tests;
