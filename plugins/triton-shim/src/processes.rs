//! Processes that a backend starts for a model, as Triton's Python backend does for each instance.
//! The backend may refuse every request, or never answer, once such a process has ended. In a
//! process of its own the model is started again instead: the host ends this process when the
//! requests of other instances are answered, and its supervisor sees to the rest.

use crate::host::{self, host_table, owned_text};
use crate::scope::Scope;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_open, waitid,
};
use std::ffi::CStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use trtserver_plugin_api::abi::host::host_flags;

/// A process that a thread waits for.
struct WatchedProcess {
    pid: Pid,
    /// Readable when the process has ended. Shared with the thread.
    pidfd: Arc<OwnedFd>,
    /// The instance that it serves, if that is known.
    instance: Option<Arc<Scope>>,
}

/// What the watching threads share.
struct WatchedProcesses {
    processes: Vec<WatchedProcess>,
    /// Instances that are being closed: their processes may end.
    closing: Vec<Arc<Scope>>,
}

impl WatchedProcesses {
    /// Whether a process may end now: it does not serve an instance that goes on.
    fn may_end(&self, instance: Option<&Arc<Scope>>) -> bool {
        match instance {
            Some(instance) => self.closing.iter().any(|one| Arc::ptr_eq(one, instance)),
            None => !self.closing.is_empty(),
        }
    }
}

static WATCHED: Mutex<WatchedProcesses> =
    Mutex::new(WatchedProcesses { processes: Vec::new(), closing: Vec::new() });

/// A watching thread only waits and writes one line.
const STACK: usize = 256 << 10;

fn lock() -> MutexGuard<'static, WatchedProcesses> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An instance was opened: watches the processes that this process has started since. Only in a
/// process of the model's own, where they are all its backend's. One that serves the instance is
/// told the name of it: the others, which are opened at the same time, may have started processes,
/// too.
pub fn watch_process(scope: &Arc<Scope>, name: &CStr) {
    if !host_table().is_ok_and(|host| host.flags & host_flags::ISOLATED != 0) {
        return;
    }
    for pid in child_processes() {
        let of_instance = serves(pid, name).then(|| Arc::clone(scope));
        let mut watched = lock();
        let mut running = watched.processes.iter_mut();
        if let Some(process) = running.find(|one| one.pid == pid && !has_ended(&one.pidfd)) {
            process.instance = process.instance.take().or(of_instance);
            continue;
        }
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let pidfd = Arc::new(pidfd);
        let process = WatchedProcess { pid, pidfd: Arc::clone(&pidfd), instance: of_instance };
        watched.processes.push(process);
        drop(watched);
        let of = Arc::clone(scope);
        let begun = thread::Builder::new().name("watch process".into()).stack_size(STACK);
        if let Err(e) = begun.spawn(move || wait_for_end(pid, &pidfd, &of)) {
            scope.warn(&format!("process {} is not watched: {e}", pid.as_raw_nonzero()));
        }
    }
}

/// Whether the name is one of the arguments that a process was started with.
fn serves(pid: Pid, name: &CStr) -> bool {
    let arguments = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
    let arguments = arguments.unwrap_or_default();
    !name.is_empty() && arguments.split(|byte| *byte == 0).any(|word| word == name.to_bytes())
}

/// Whether the process behind a pidfd has ended.
fn has_ended(pidfd: &OwnedFd) -> bool {
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Closes an instance with `close`: its processes may end meanwhile.
pub fn close_instance<R>(instance: &Arc<Scope>, close: impl FnOnce() -> R) -> R {
    struct ClosingInstance<'a>(&'a Arc<Scope>);
    impl Drop for ClosingInstance<'_> {
        fn drop(&mut self) {
            let mut watched = lock();
            // Their threads may run only after this.
            let mut processes = std::mem::take(&mut watched.processes);
            processes
                .retain(|one| !has_ended(&one.pidfd) || !watched.may_end(one.instance.as_ref()));
            watched.processes = processes;
            watched.closing.retain(|one| !Arc::ptr_eq(one, self.0));
        }
    }
    lock().closing.push(Arc::clone(instance));
    let _closing = ClosingInstance(instance);
    close()
}

fn wait_for_end(pid: Pid, pidfd: &Arc<OwnedFd>, scope: &Scope) {
    while poll(&mut [PollFd::new(&**pidfd, PollFlags::IN)], None).is_err() {}
    let how = process_ended(pid);
    let mut watched = lock();
    let at = watched.processes.iter().position(|one| Arc::ptr_eq(&one.pidfd, pidfd));
    // Absent if it ended while an instance was closed.
    let Some(at) = at else { return };
    let of = watched.processes.swap_remove(at).instance;
    if watched.may_end(of.as_ref()) {
        return;
    }
    drop(watched);
    let (pid, backend) = (pid.as_raw_nonzero(), scope.backend());
    let text = format!("process {pid}, which the backend '{backend}' started for the model, {how}");
    if !restart_instance(of.as_deref(), &text) {
        let _ = rustix::io::write(rustix::stdio::stderr(), owned_text(&(text + "\n")).as_bytes());
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// Has the host start the model again; false if it does not.
fn restart_instance(instance: Option<&Scope>, reason: &str) -> bool {
    let (Some(process), Ok(host)) = (host::process_extension(), host_table()) else { return false };
    host::with_str(reason, |reason| {
        // SAFETY: null, or a scope that is open during the call; the text is valid during it; an
        // error is owned by the caller.
        let call =
            |scope| unsafe { host::take_error(host, (process.restart)(scope, reason)).is_ok() };
        let of_instance = instance.and_then(|scope| scope.with(|_, raw| call(raw)));
        of_instance.unwrap_or_else(|| call(std::ptr::null_mut()))
    })
}

/// How a process has ended, which its parent, the backend, may have asked for before.
fn process_ended(pid: Pid) -> String {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let Ok(Some(status)) = waitid(WaitId::Pid(pid), options) else { return "has ended".into() };
    match (status.terminating_signal(), status.exit_status()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("has ended with exit code {code}"),
        (None, None) => "has ended".into(),
    }
}

/// The children of this process.
fn child_processes() -> Vec<Pid> {
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
