//! Processes that a backend starts for a model, as Triton's Python backend does for each instance. The backend may refuse every
//! request, or never answer, once such a process has ended. In a process of its own the model is started again instead: this
//! process ends, and the server's supervisor sees to the rest.

use crate::host::{host, owned};
use crate::scope::Scope;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_open, waitid,
};
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use trtserver_plugin_api::abi::host::host_flags;

/// What the watching threads share.
struct Watched {
    /// Processes that a thread waits for.
    pids: Vec<Pid>,
    /// Instances that are being closed: their processes may end.
    closing: u32,
}

static WATCHED: Mutex<Watched> = Mutex::new(Watched { pids: Vec::new(), closing: 0 });

/// A watching thread only waits and writes one line.
const STACK: usize = 256 << 10;

fn lock() -> MutexGuard<'static, Watched> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An instance was opened: watches the processes that this process has started since. Only in a process of the model's own, where
/// they are all its backend's.
pub fn watch(scope: &Arc<Scope>) {
    if !host().is_ok_and(|host| host.flags & host_flags::ISOLATED != 0) {
        return;
    }
    for pid in children() {
        let mut watched = lock();
        if watched.pids.contains(&pid) {
            continue;
        }
        let Ok(file) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        watched.pids.push(pid);
        drop(watched);
        let of = Arc::clone(scope);
        let begun = thread::Builder::new().name("watch process".into()).stack_size(STACK);
        if let Err(e) = begun.spawn(move || wait(pid, &file, &of)) {
            scope.warn(&format!("process {} is not watched: {e}", pid.as_raw_nonzero()));
        }
    }
}

/// Closes an instance with `close`: processes may end meanwhile.
pub fn closing<R>(close: impl FnOnce() -> R) -> R {
    struct Closed;
    impl Drop for Closed {
        fn drop(&mut self) {
            let mut watched = lock();
            watched.closing -= 1;
        }
    }
    lock().closing += 1;
    let _closed = Closed;
    close()
}

fn wait(pid: Pid, file: &OwnedFd, scope: &Scope) {
    while poll(&mut [PollFd::new(file, PollFlags::IN)], None).is_err() {}
    let how = ended(pid);
    let mut watched = lock();
    watched.pids.retain(|one| *one != pid);
    if watched.closing > 0 {
        return;
    }
    let (pid, backend) = (pid.as_raw_nonzero(), scope.backend());
    let text = format!("process {pid}, which the backend '{backend}' started for the model, {how}");
    // The supervisor quotes the last lines of a process that ends.
    let _ = rustix::io::write(rustix::stdio::stderr(), owned(&(text + "\n")).as_bytes());
    let _ = kill_process(getpid(), Signal::KILL);
}

/// How a process has ended, which its parent, the backend, may have asked for before.
fn ended(pid: Pid) -> String {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let Ok(Some(status)) = waitid(WaitId::Pid(pid), options) else { return "has ended".into() };
    match (status.terminating_signal(), status.exit_status()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("has ended with exit code {code}"),
        (None, None) => "has ended".into(),
    }
}

/// The children of this process.
fn children() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child = |stat: String| {
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_whitespace().nth(1) == Some(own.as_str())
    };
    entries
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            stat.is_ok_and(is_child)
        })
        .collect()
}
