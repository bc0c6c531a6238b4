//! Niceness of threads of models, which is relative to that of the server: loads while other models
//! serve, and instances.
//!
//! Threads that load a model get a niceness that is taken back before an instance serves. A process
//! may take it back only with CAP_SYS_NICE or a low RLIMIT_NICE; without, loads run at normal
//! priority, because instances and the threads of their frameworks would keep the niceness for good.
//! Models whose instances have a niceness of their own are opened at that one.

use parking_lot::Mutex;
use rustix::process::{getpid, getppid, getpriority_process, setpriority_process};
use rustix::thread::gettid;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Added to the server's niceness while a model is loaded: a fifth of the CPU time of a serving
/// thread that competes for the core. Configurations do not result in this value, so that it
/// identifies threads that were started during a load.
const LOAD_NICE: i32 = 7;
/// The highest niceness.
const MAX_NICE: i32 = 19;

/// Process-wide, as thread ids and the right to a niceness are.
static PRIORITIES: LoadPriorities = LoadPriorities {
    server: OnceLock::new(),
    loading: Mutex::new(BTreeSet::new()),
    restorable: OnceLock::new(),
};

struct LoadPriorities {
    /// Niceness of the server.
    server: OnceLock<i32>,
    /// Threads that load now.
    loading: Mutex<BTreeSet<i32>>,
    /// Whether a niceness can be taken back.
    restorable: OnceLock<bool>,
}

/// The niceness that the server was started with, also in a child process. Its first thread keeps
/// it.
pub fn server_nice() -> i32 {
    let of_first_thread = || getpriority_process(Some(getpid())).unwrap_or(0);
    *PRIORITIES.server.get_or_init(of_first_thread)
}

/// The niceness of a model's threads that is `more` than the server's.
pub fn model_nice(more: i32) -> i32 {
    (server_nice() + more).min(MAX_NICE)
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
        let low = is_restorable() && after < load_nice();
        low.then(|| Self::for_this_thread(after))
    }

    /// For a thread that a thread with low priority has started; `after`: its niceness when it
    /// serves. `None` for other threads, and where that is not the server's niceness.
    pub fn inherited(after: i32) -> Option<Self> {
        (after == server_nice() && is_low()).then(|| Self::for_this_thread(after))
    }

    fn for_this_thread(after: i32) -> Self {
        PRIORITIES.loading.lock().insert(gettid().as_raw_nonzero().get());
        let _ = setpriority_process(None, load_nice());
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

/// Niceness of threads that load a model at low priority.
fn load_nice() -> i32 {
    server_nice() + LOAD_NICE
}

/// Takes the low priority back from threads that a backend started during a load.
pub fn restore_started() {
    let loading = PRIORITIES.loading.lock();
    restore_niceness("self", |id| !loading.contains(&id));
}

/// The load of the model in another process has ended: takes the low priority back from all of its
/// threads.
pub fn restore_process(pid: u32) {
    restore_niceness(&pid.to_string(), |_| true);
}

fn restore_niceness(process: &str, serves: impl Fn(i32) -> bool) {
    if !is_restorable() {
        return;
    }
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return };
    for thread in threads.flatten() {
        let id = thread.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let Some(id) = id.filter(|id| serves(*id)) else { continue };
        let pid = rustix::process::Pid::from_raw(id);
        if getpriority_process(pid) == Ok(load_nice()) {
            let _ = setpriority_process(pid, server_nice());
        }
    }
}

/// This thread loads a model at low priority.
pub fn is_low() -> bool {
    nice() == load_nice() && is_restorable()
}

/// Niceness of threads in another process that open an instance for this thread; `after`: when they
/// serve.
pub fn while_loading(after: i32) -> i32 {
    if after == server_nice() && is_low() { load_nice() } else { after }
}

/// In a child process: whether it was started during a load. Threads that do not load have normal
/// priority.
pub fn leave_in_child() -> bool {
    let of_parent = getppid().and_then(|server| getpriority_process(Some(server)).ok());
    let _ = PRIORITIES.server.set(of_parent.unwrap_or_else(nice));
    let started_by_load = nice() == load_nice();
    if started_by_load {
        let _ = setpriority_process(None, server_nice());
    }
    started_by_load
}

/// Whether there is a niceness for loads, and it can be taken back.
fn is_restorable() -> bool {
    *PRIORITIES.restorable.get_or_init(|| {
        let server = server_nice();
        if load_nice() >= MAX_NICE {
            tracing::info!(
                "models are loaded at normal priority: the server's own niceness of {server} leaves \
                 no room for a lower one"
            );
            return false;
        }
        // On a thread of its own, which may keep it.
        let probe = move || {
            setpriority_process(None, server + 1).is_ok() && setpriority_process(None, server).is_ok()
        };
        let restorable = std::thread::Builder::new()
            .spawn(probe)
            .is_ok_and(|probe| probe.join().is_ok_and(|restored| restored));
        if !restorable {
            tracing::info!(
                "models are loaded at normal priority: the process lacks CAP_SYS_NICE, and its RLIMIT_NICE is below {}",
                20 - server
            );
        }
        restorable
    })
}

#[cfg(test)]
#[path = "load_priority_tests.rs"]
mod tests;
