//! Starting and reaping a child process, by the thread that owns it.

use super::control;
use super::exit_reason::{ExitReason, KillReason};
use super::messages::{Handshake, control_request};
use super::process::Process;
use super::stdio::each_line;
use super::wire;
use parking_lot::Mutex;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trtserver_base::error::{Error, Result};
use trtserver_base::timer::DeadlineTimer;
use trtserver_plugin_host::host_api;
use trtserver_plugin_host::host_api::metric::MetricSource;
use trtserver_plugin_host::shared_objects;
use trtserver_plugin_host::shared_objects::SharedObjects;

/// How long to wait for the last output of a dead child: a process that it started may hold the
/// pipe open.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);

/// The running children, for changes of the log level and requests for metrics.
#[derive(Default)]
pub struct RunningProcesses {
    all: Mutex<Vec<Weak<Process>>>,
    /// Counts of lines that were left out of the log appear at its deadlines; without it, with the
    /// next line.
    timer: OnceLock<&'static DeadlineTimer>,
}

/// A child process, for the thread that started it. Dropping it kills and reaps the child.
pub struct ChildProcess {
    pub process: Arc<Process>,
    group: Pid,
    child: Child,
    control: Option<JoinHandle<()>>,
    /// Disconnected when the output has ended.
    output: mpsc::Receiver<()>,
    shared_objects: SharedObjects,
    reaped: bool,
}

/// Starts a child. The system kills it when the calling thread ends.
pub fn spawn_child(
    running: &RunningProcesses,
    label: &str,
    mut handshake: Handshake,
    write_timeout: Option<Duration>,
) -> Result<ChildProcess> {
    let failed = |what: &str, e: &dyn std::fmt::Display| {
        Error::internal(format!("{label}: no process could be started: {what}: {e}"))
    };
    let (ours, theirs) = wire::socket_pair()?;
    // A message may exceed the socket buffer; the sender must not block for ever.
    ours.set_write_timeout(write_timeout).map_err(|e| failed("connection", &e))?;
    let (read, write) = std::io::pipe().map_err(|e| failed("pipe", &e))?;
    // The running executable, even if its file was replaced.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("trtserver").args(["plugin-host", label]).stdin(OwnedFd::from(theirs));
    let shared_objects = SharedObjects::for_next_child();
    command.env(shared_objects::VARIABLE, shared_objects.prefix());
    command.stdout(write.try_clone().map_err(|e| failed("pipe", &e))?).stderr(write);
    // In a process group of its own: an interrupt from the terminal does not reach it, and the
    // group can be killed.
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
    let (control, receiver) = wire::split_socket(ours);
    let process = Process::new(label, pidfd, control, running.timer.get().copied());
    let (ended, output) = mpsc::channel();
    let mut started = ChildProcess {
        process,
        group,
        child,
        control: None,
        output,
        shared_objects,
        reaped: false,
    };
    let process = Arc::clone(&started.process);
    started.thread("output", move || {
        log_output(read, &process);
        drop(ended);
    })?;
    let process = Arc::clone(&started.process);
    started.control = Some(started.thread("control", move || {
        control::read_control_messages(receiver, &process, write_timeout)
    })?);
    let mut running = running.all.lock();
    running.retain(|process| process.strong_count() > 0);
    running.push(Arc::downgrade(&started.process));
    // Under the lock: a change of the level is either in the handshake or sent after it.
    handshake.log_level = host_api::log_level_set();
    started.process.notify(control_request::RequestKind::Handshake(handshake), &[]);
    drop(running);
    Ok(started)
}

impl RunningProcesses {
    /// For the processes that are started from now on. Set once.
    pub fn use_timer(&self, timer: &'static DeadlineTimer) {
        let _ = self.timer.set(timer);
    }

    /// Sends the log level of backends to all.
    pub fn send_log_level(&self, level: u32) {
        for process in self.all.lock().iter() {
            if let Some(process) = process.upgrade() {
                // Without blocking: a child that does not read must not delay the others.
                process.try_notify(control_request::RequestKind::LogLevel(level));
            }
        }
    }
}

impl MetricSource for RunningProcesses {
    fn refresh(&self, deadline: Instant) {
        let processes: Vec<_> = self.all.lock().iter().filter_map(Weak::upgrade).collect();
        let asked: Vec<_> = processes
            .iter()
            .filter_map(|process| Some((process, process.ask_for_metrics()?)))
            .collect();
        for (process, response) in asked {
            let left = deadline.saturating_duration_since(Instant::now());
            if response.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                process.metrics_are_late(response);
            }
        }
    }
}

/// Logs what a child prints, within its limit, until its output ends.
fn log_output(output: impl Read, process: &Process) {
    each_line(output, |line| {
        process.tail.push(line);
        if process.admits_line(line.len()) {
            tracing::info!(process = process.label, "{line}");
        }
    });
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
        self.process.disconnect();
        if let Some(control) = self.control.take() {
            let _ = control.join();
        }
        let _ = self.output.recv_timeout(OUTPUT_GRACE);
        self.process.report_omitted_lines();
        let removed = self.shared_objects.remove();
        if removed > 0 {
            let label = &self.process.label;
            tracing::info!(
                process = label,
                "removed {removed} shared-memory objects that it has left behind"
            );
        }
        ExitReason { status, killed: self.process.kill_reason(), tail: self.process.tail.text() }
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
