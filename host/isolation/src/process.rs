//! A child process, as all threads use it: control requests, killing, waiting for its end.

use super::exit_reason::KillReason;
use super::log_rate::{LogRate, OmittedLines};
use super::messages::{ControlRequest, ControlResponse, EmptyMessage, control_request};
use super::stdio::StderrTail;
use super::wire::Sender;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use trtserver_base::clock::now_ns;
use trtserver_base::ledger::ProcessMemory;
use trtserver_base::timer::{DeadlineCallback, DeadlineTimer};
use trtserver_plugin_host::load_priority;
use trtserver_request_trace::current::RemoteTraces;

/// How long a child whose connection is gone may take to exit before it is killed.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// Interval at which a waiting thread checks whether the response is still needed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// When the number of lines that were left out of the log appears, if no other line comes before.
const OMITTED_AFTER: Duration = Duration::from_secs(2);

/// A child process, shared by all that communicate with it.
pub struct Process {
    /// For log lines and errors: `model digits:1`.
    pub label: String,
    pidfd: OwnedFd,
    control: Sender,
    /// Requests without a response, by number; `None` once no response can arrive.
    pending: Mutex<Option<HashMap<u64, mpsc::Sender<ControlResponse>>>>,
    next_number: AtomicU64,
    pub tail: StderrTail,
    log_rate: Mutex<LogRate>,
    /// Calls when lines have been left out.
    timer: Option<&'static DeadlineTimer>,
    me: Weak<Process>,
    /// Why the host killed it.
    kill_reason: Mutex<Option<KillReason>>,
    /// It has responded to a request successfully.
    pub responded: AtomicBool,
    /// The response to a request for metrics that did not arrive in time.
    late_metrics: Mutex<Option<mpsc::Receiver<ControlResponse>>>,
    /// Name and version of the model that it serves, once it is opened there.
    pub model: OnceLock<(Arc<str>, i64)>,
    /// Traced requests that it executes.
    pub traces: RemoteTraces,
}

impl Process {
    /// A process that was started; `control` sends to it.
    pub fn new(
        label: &str,
        pidfd: OwnedFd,
        control: Sender,
        timer: Option<&'static DeadlineTimer>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            label: label.to_owned(),
            pidfd,
            control,
            pending: Mutex::new(Some(HashMap::new())),
            next_number: AtomicU64::new(1),
            tail: StderrTail::default(),
            log_rate: Mutex::new(LogRate::new(Instant::now())),
            timer,
            me: Weak::clone(me),
            kill_reason: Mutex::new(None),
            responded: AtomicBool::new(false),
            late_metrics: Mutex::new(None),
            model: OnceLock::new(),
            traces: RemoteTraces::default(),
        })
    }

    /// Whether a line of so many bytes, which it printed or logged, is logged.
    pub fn admits_line(&self, bytes: usize) -> bool {
        let mut rate = self.log_rate.lock();
        let admitted = rate.admit(bytes, Instant::now());
        let first = admitted.is_none() && rate.omits_first();
        // Not held while a line is written.
        drop(rate);
        if let Some(timer) = self.timer.filter(|_| first) {
            timer.schedule(now_ns() + OMITTED_AFTER.as_nanos() as u64, self.me.clone());
        }
        admitted.inspect(|omitted| self.report_omitted(*omitted)).is_some()
    }

    /// Logs what was left out, when no more lines come, or none has for a while.
    pub fn report_omitted_lines(&self) {
        let omitted = self.log_rate.lock().take_omitted();
        self.report_omitted(omitted);
    }

    fn report_omitted(&self, omitted: OmittedLines) {
        if !omitted.is_empty() {
            tracing::warn!(process = self.label, "{omitted}");
        }
    }

    /// Its memory; `None` once it has exited.
    pub fn memory(&self) -> Option<ProcessMemory> {
        ProcessMemory::from_pid(self.pid()?)
    }

    /// Its load has ended: takes the low priority of loads back from its threads.
    pub fn end_low_priority(&self) {
        if let Some(pid) = self.pid() {
            load_priority::restore_process(pid);
        }
    }

    fn pid(&self) -> Option<u32> {
        let fd = self.pidfd.as_raw_fd();
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
        let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
        // -1 once it was reaped: its number may be in use again.
        pid.trim().parse().ok()
    }

    /// Sends a request without a response. Errors show at the next request that has one.
    pub fn notify(&self, kind: control_request::RequestKind, files: &[BorrowedFd<'_>]) {
        let _ = self.control.send_with(&ControlRequest { number: 0, kind: Some(kind) }, files);
    }

    /// Sends without blocking; dropped if the child does not read.
    pub fn try_notify(&self, kind: control_request::RequestKind) {
        self.control.try_send(&ControlRequest { number: 0, kind: Some(kind) });
    }

    /// Asks for the metrics that have changed, without blocking. `None` if that is in vain: the
    /// process reads nothing at present, or has ended.
    pub fn ask_for_metrics(&self) -> Option<mpsc::Receiver<ControlResponse>> {
        let mut late = self.late_metrics.lock();
        if late.as_ref().is_some_and(|late| late.try_recv() == Err(TryRecvError::Empty)) {
            return None;
        }
        *late = None;
        drop(late);
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let (sender, response) = mpsc::channel();
        self.pending().as_mut()?.insert(number, sender);
        let kind = Some(control_request::RequestKind::SendMetrics(EmptyMessage {}));
        let request = ControlRequest { number, kind };
        if !self.control.try_send(&request) {
            self.pending().as_mut()?.remove(&number);
            return None;
        }
        Some(response)
    }

    /// The metrics have not come in time. It is not asked again before they are there.
    pub fn metrics_are_late(&self, response: mpsc::Receiver<ControlResponse>) {
        *self.late_metrics.lock() = Some(response);
    }

    /// Sends a request whose response is awaited.
    pub fn request(
        &self,
        kind: control_request::RequestKind,
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

    /// Closes the control connection.
    pub fn disconnect(&self) {
        self.fail_pending();
        self.control.shut_down();
    }

    fn pending(&self) -> MutexGuard<'_, Option<HashMap<u64, mpsc::Sender<ControlResponse>>>> {
        self.pending.lock()
    }

    /// Kills it; the first reason is kept.
    pub fn kill(&self, reason: KillReason) {
        self.kill_reason.lock().get_or_insert(reason);
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Why the host killed it, if it did.
    pub fn kill_reason(&self) -> Option<KillReason> {
        self.kill_reason.lock().clone()
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
        self.notify(control_request::RequestKind::Close(EmptyMessage {}), &[]);
        if !self.wait_for_end(Some(limit)) {
            self.kill(KillReason::Closing);
        }
    }
}

#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, reason = "not part of the server")]
impl Process {
    /// For tests: any process in place of one that `spawn` has started, and the child's end of its
    /// control connection.
    pub fn fake(child: &std::process::Child) -> (Arc<Self>, std::os::unix::net::UnixStream) {
        use super::wire;
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
        let (ours, theirs) = wire::socket_pair().unwrap();
        (Self::new("fake", pidfd, wire::split_socket(ours).0, None), theirs)
    }
}

impl DeadlineCallback for Process {
    fn on_deadline(&self) {
        self.report_omitted_lines();
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
    /// Waits for the response. A child that does not respond in time is killed, also once
    /// `unneeded` has a reason.
    pub fn wait(
        self,
        limit: Option<Duration>,
        unneeded: impl Fn() -> Option<KillReason>,
    ) -> Result<ControlResponse, ProcessGone> {
        let begin = Instant::now();
        loop {
            let left = limit.map_or(POLL_INTERVAL, |limit| limit.saturating_sub(begin.elapsed()));
            match self.response.recv_timeout(left.min(POLL_INTERVAL)) {
                Ok(response) => return Ok(response),
                Err(RecvTimeoutError::Disconnected) => return Err(ProcessGone),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(reason) = unneeded() {
                self.process.kill(reason);
                return Err(ProcessGone);
            }
            if let Some(limit) = limit.filter(|limit| begin.elapsed() >= *limit) {
                self.process.kill(KillReason::ResponseTimeout(limit));
                return Err(ProcessGone);
            }
            if self.process.wait_for_end(Some(Duration::ZERO)) {
                // Its last message may be unread still; a process that it started may hold the
                // connection open.
                return self.response.recv_timeout(POLL_INTERVAL).map_err(|_| ProcessGone);
            }
        }
    }
}
