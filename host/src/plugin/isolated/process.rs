//! One child process: starting, control requests, killing, reaping.

use super::control;
use super::exit_reason::{ExitReason, KillReason};
use super::messages::{ControlRequest, ControlResponse, Empty, Handshake, control_request};
use super::stdio::{Tail, each_line};
use super::wire::{self, Sender};
use crate::error::{Error, Result};
use crate::plugin::host_api;
use crate::sync::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a child whose connection is gone may take to exit before it is killed.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// How long to wait for the last output of a dead child: a process that it started may hold the pipe open.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// Interval at which a waiting thread checks whether the response is still needed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Every running child, for changes of the log level.
static RUNNING: Mutex<Vec<Weak<Process>>> = Mutex::new(Vec::new());

/// A child process, shared by all that communicate with it.
pub struct Process {
    /// For log lines and errors: `model digits:1`.
    pub label: String,
    pidfd: OwnedFd,
    control: Sender,
    /// Requests without a response, by number; `None` once no response can arrive.
    pending: Mutex<Option<HashMap<u64, mpsc::Sender<ControlResponse>>>>,
    next_number: AtomicU64,
    pub tail: Tail,
    /// Why the host killed it.
    kill_reason: Mutex<Option<KillReason>>,
    /// It has responded to a request successfully.
    pub responded: AtomicBool,
}

/// A child process, for the thread that started it. Dropping it kills and reaps the child.
pub struct ChildProcess {
    pub process: Arc<Process>,
    group: Pid,
    child: Child,
    control: Option<JoinHandle<()>>,
    /// Disconnected when the output has ended.
    output: mpsc::Receiver<()>,
    reaped: bool,
}

/// Starts a child. The system kills it when the calling thread ends.
pub fn spawn(
    label: &str,
    mut handshake: Handshake,
    write_timeout: Option<Duration>,
) -> Result<ChildProcess> {
    let failed = |what: &str, e: &dyn std::fmt::Display| {
        Error::internal(format!("{label}: no process could be started: {what}: {e}"))
    };
    let (ours, theirs) = wire::pair()?;
    // A message may exceed the socket buffer; the sender must not block for ever.
    ours.set_write_timeout(write_timeout).map_err(|e| failed("connection", &e))?;
    let (read, write) = std::io::pipe().map_err(|e| failed("pipe", &e))?;
    // The running executable, even if its file was replaced.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("trtserver").args(["plugin-host", label]).stdin(OwnedFd::from(theirs));
    command.stdout(write.try_clone().map_err(|e| failed("pipe", &e))?).stderr(write);
    // In a process group of its own: an interrupt from the terminal does not reach it, and the group can be killed.
    let mut child = command.process_group(0).spawn().map_err(|e| failed("exec", &e))?;
    drop(command);
    let group = Pid::from_child(&child);
    let pidfd = match pidfd_open(group, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(e) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed("pidfd", &e));
        }
    };
    let (control, receiver) = wire::split(ours);
    let process = Arc::new(Process {
        label: label.to_owned(),
        pidfd,
        control,
        pending: Mutex::new(Some(HashMap::new())),
        next_number: AtomicU64::new(1),
        tail: Tail::default(),
        kill_reason: Mutex::new(None),
        responded: AtomicBool::new(false),
    });
    let (ended, output) = mpsc::channel();
    let mut started = ChildProcess { process, group, child, control: None, output, reaped: false };
    let process = Arc::clone(&started.process);
    started.thread("output", move || {
        each_line(read, |line| {
            process.tail.push(line);
            tracing::info!(process = process.label, "{line}");
        });
        drop(ended);
    })?;
    let process = Arc::clone(&started.process);
    started.control = Some(started.thread("control", move || control::listen(receiver, &process))?);
    let mut running = RUNNING.lock();
    running.retain(|process| process.strong_count() > 0);
    running.push(Arc::downgrade(&started.process));
    // Under the lock: a change of the level is either in the handshake or sent after it.
    handshake.log_level = host_api::log_level_set();
    started.process.notify(control_request::Kind::Handshake(handshake), &[]);
    drop(running);
    Ok(started)
}

/// Sends the log level to all running children.
pub fn log_level(level: u32) {
    for process in RUNNING.lock().iter() {
        if let Some(process) = process.upgrade() {
            // Without blocking: a child that does not read must not delay the others.
            process.try_notify(control_request::Kind::LogLevel(level));
        }
    }
}

impl Process {
    /// Sends a request without a response. Errors show at the next request that has one.
    fn notify(&self, kind: control_request::Kind, files: &[BorrowedFd<'_>]) {
        let _ = self.control.send_with(&ControlRequest { number: 0, kind: Some(kind) }, files);
    }

    /// Sends without blocking; dropped if the child does not read.
    pub fn try_notify(&self, kind: control_request::Kind) {
        self.control.try_send(&ControlRequest { number: 0, kind: Some(kind) });
    }

    /// Sends a request whose response is awaited.
    pub fn request(
        &self,
        kind: control_request::Kind,
        files: &[BorrowedFd<'_>],
    ) -> Result<PendingResponse<'_>, ProcessGone> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let (sender, response) = mpsc::channel();
        self.pending().as_mut().ok_or(ProcessGone)?.insert(number, sender);
        if let Err(e) = self.control.send_with(&ControlRequest { number, kind: Some(kind) }, files)
        {
            // If it is alive, it has not read for the whole write timeout.
            self.connection_lost(&format!("stopped reading its control connection ({e})"));
            return Err(ProcessGone);
        }
        Ok(PendingResponse { process: self, response })
    }

    /// Delivers a response to the thread that waits for it.
    pub fn resolve(&self, response: ControlResponse) {
        if let Some(pending) = &mut *self.pending()
            && let Some(sender) = pending.remove(&response.number)
        {
            let _ = sender.send(response);
        }
    }

    /// Fails all pending requests: no response can arrive any more.
    pub fn fail_pending(&self) {
        *self.pending() = None;
    }

    fn pending(&self) -> MutexGuard<'_, Option<HashMap<u64, mpsc::Sender<ControlResponse>>>> {
        self.pending.lock()
    }

    /// Kills it; the first reason is kept.
    pub fn kill(&self, reason: KillReason) {
        self.kill_reason.lock().get_or_insert(reason);
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// A connection to it has ended, mostly because the child exited; if not, it is killed.
    pub fn connection_lost(&self, what: &str) {
        if !self.wait_for_end(Some(EXIT_GRACE)) {
            self.kill(KillReason::ProtocolViolation(what.to_owned()));
        }
    }

    /// Waits until it has exited; false when it did not in time.
    pub fn wait_for_end(&self, limit: Option<Duration>) -> bool {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            let left = left.map(|left| Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            });
            match poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], left.as_ref()) {
                Ok(n) => return n > 0,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    /// Asks it to close and exit, and kills it when it does not in time.
    pub fn close(&self, limit: Duration) {
        self.notify(control_request::Kind::Close(Empty {}), &[]);
        if !self.wait_for_end(Some(limit)) {
            self.kill(KillReason::Closing);
        }
    }
}

#[cfg(test)]
impl Process {
    /// For tests: any process in place of one that `spawn` has started.
    pub fn fake(child: &Child) -> Arc<Self> {
        Arc::new(Self {
            label: "fake".into(),
            pidfd: pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap(),
            control: wire::split(wire::pair().unwrap().0).0,
            pending: Mutex::new(None),
            next_number: AtomicU64::new(1),
            tail: Tail::default(),
            kill_reason: Mutex::new(None),
            responded: AtomicBool::new(false),
        })
    }

    /// Why it was killed, if it was.
    pub fn kill_reason(&self) -> Option<KillReason> {
        self.kill_reason.lock().clone()
    }
}

/// The child has exited or is about to; the thread that reaps it has the reason.
#[derive(Debug)]
pub struct ProcessGone;

/// A control request without a response yet.
pub struct PendingResponse<'a> {
    process: &'a Process,
    response: mpsc::Receiver<ControlResponse>,
}

impl PendingResponse<'_> {
    /// Waits for the response. A child that does not respond in time is killed, also once `needed` returns false.
    pub fn wait(
        self,
        limit: Option<Duration>,
        needed: impl Fn() -> bool,
    ) -> Result<ControlResponse, ProcessGone> {
        let begin = Instant::now();
        loop {
            let left = limit.map_or(POLL_INTERVAL, |limit| limit.saturating_sub(begin.elapsed()));
            match self.response.recv_timeout(left.min(POLL_INTERVAL)) {
                Ok(response) => return Ok(response),
                Err(RecvTimeoutError::Disconnected) => return Err(ProcessGone),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !needed() {
                self.process.kill(KillReason::Closing);
                return Err(ProcessGone);
            }
            if let Some(limit) = limit.filter(|limit| begin.elapsed() >= *limit) {
                self.process.kill(KillReason::ResponseTimeout(limit));
                return Err(ProcessGone);
            }
            if self.process.wait_for_end(Some(Duration::ZERO)) {
                // Its last message may be unread still; a process that it started may hold the connection open.
                return self.response.recv_timeout(POLL_INTERVAL).map_err(|_| ProcessGone);
            }
        }
    }
}

impl ChildProcess {
    fn thread(&self, what: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
        let named = std::thread::Builder::new().name(format!("{what} {}", self.process.label));
        named.spawn(work).map_err(|e| {
            Error::internal(format!("{}: no thread could be started: {e}", self.process.label))
        })
    }

    /// Waits for its exit and returns the reason.
    pub fn reap(&mut self) -> ExitReason {
        self.process.wait_for_end(None);
        // Before it is reaped: its process group ID cannot be reused until then.
        let _ = kill_process_group(self.group, Signal::KILL);
        let status = self.child.wait().ok();
        self.reaped = true;
        self.process.fail_pending();
        self.process.control.shut_down();
        if let Some(control) = self.control.take() {
            let _ = control.join();
        }
        let _ = self.output.recv_timeout(OUTPUT_GRACE);
        let killed = self.process.kill_reason.lock().take();
        ExitReason { status, killed, tail: self.process.tail.text() }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if !self.reaped {
            self.process.kill(KillReason::Closing);
            self.reap();
        }
    }
}
