//! Low priority of the threads that load models while others serve. They get a niceness, which is
//! taken back before an instance serves. A process may take it back only with CAP_SYS_NICE or a
//! RLIMIT_NICE of 20; without, loads run at normal priority, because instances and the threads of
//! their frameworks would keep the niceness for good.

use parking_lot::Mutex;
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::gettid;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Niceness while a model is loaded: a fifth of the CPU time of a serving thread that competes for
/// the core. Configurations do not set this value, so that it identifies threads that were started
/// during a load.
const LOAD_NICE: i32 = 7;

/// Process-wide, as thread ids and the right to a niceness are.
static PRIORITIES: LoadPriorities =
    LoadPriorities { loading: Mutex::new(BTreeSet::new()), restorable: OnceLock::new() };

struct LoadPriorities {
    /// Threads that load now.
    loading: Mutex<BTreeSet<i32>>,
    /// Whether a niceness can be taken back.
    restorable: OnceLock<bool>,
}

/// This thread loads a model at low priority until the value is dropped. Threads that it starts
/// inherit the priority.
pub struct LowPriority {
    /// Niceness of the thread afterwards.
    after: i32,
}

impl LowPriority {
    /// `None` where the priority could not be taken back.
    pub fn begin() -> Option<Self> {
        let after = nice();
        let low = is_restorable() && after < LOAD_NICE;
        low.then(|| Self::for_this_thread(after))
    }

    /// For a thread that a thread with low priority has started; `after`: its niceness when it
    /// serves. `None` for other threads.
    pub fn inherited(after: i32) -> Option<Self> {
        is_low().then(|| Self::for_this_thread(after))
    }

    fn for_this_thread(after: i32) -> Self {
        PRIORITIES.loading.lock().insert(gettid().as_raw_nonzero().get());
        let _ = setpriority_process(None, LOAD_NICE);
        Self { after }
    }
}

impl Drop for LowPriority {
    fn drop(&mut self) {
        PRIORITIES.loading.lock().remove(&gettid().as_raw_nonzero().get());
        let _ = setpriority_process(None, self.after);
    }
}

fn nice() -> i32 {
    getpriority_process(None).unwrap_or(0)
}

/// Takes the low priority back from threads that a backend started during a load, which serve at
/// `nice` from now on.
pub fn restore_started(nice: i32) {
    let loading = PRIORITIES.loading.lock();
    restore_niceness("self", nice, |id| !loading.contains(&id));
}

/// The load of the model in another process has ended: takes the low priority back from all of its
/// threads.
pub fn restore_process(pid: u32, nice: i32) {
    restore_niceness(&pid.to_string(), nice, |_| true);
}

fn restore_niceness(process: &str, nice: i32, serves: impl Fn(i32) -> bool) {
    if !is_restorable() {
        return;
    }
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return };
    for thread in threads.flatten() {
        let id = thread.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let Some(id) = id.filter(|id| serves(*id)) else { continue };
        let pid = rustix::process::Pid::from_raw(id);
        if getpriority_process(pid) == Ok(LOAD_NICE) {
            let _ = setpriority_process(pid, nice);
        }
    }
}

/// This thread loads a model at low priority.
pub fn is_low() -> bool {
    nice() == LOAD_NICE && is_restorable()
}

/// Niceness of threads in another process that open an instance for this thread; `after`: when they
/// serve.
pub fn while_loading(after: i32) -> i32 {
    if is_low() { LOAD_NICE } else { after }
}

/// In a child process: whether it was started during a load. Threads that do not load have normal
/// priority.
pub fn leave_in_child() -> bool {
    let started_by_load = nice() == LOAD_NICE;
    if started_by_load {
        let _ = setpriority_process(None, 0);
    }
    started_by_load
}

/// Whether a niceness can be taken back.
fn is_restorable() -> bool {
    *PRIORITIES.restorable.get_or_init(|| {
        let before = nice();
        // On a thread of its own, which may keep it.
        let probe = move || {
            setpriority_process(None, before + 1).is_ok() && setpriority_process(None, before).is_ok()
        };
        let restorable =
            before < LOAD_NICE
                && std::thread::Builder::new()
                    .spawn(probe)
                    .is_ok_and(|probe| probe.join().is_ok_and(|restored| restored));
        if !restorable {
            tracing::info!(
                "models are loaded at normal priority: the process lacks CAP_SYS_NICE, and its RLIMIT_NICE is below 20"
            );
        }
        restorable
    })
}

#[cfg(test)]
#[path = "load_priority_tests.rs"]
mod tests;
