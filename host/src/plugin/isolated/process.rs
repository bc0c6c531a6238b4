//! One process: started, asked, killed, reaped.

use super::control;
use super::exit_reason::{Ended, Why};
use super::messages::{Ask, Done, Empty, Hello, ask};
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

/// A process whose connection is gone dies within this time, or is killed.
const LAST_BREATH: Duration = Duration::from_secs(1);
/// How long the last lines of a dead process are waited for: somebody else may have its output open.
const LAST_LINES: Duration = Duration::from_millis(200);
/// How often somebody who waits for an answer looks whether he still should.
const LOOK: Duration = Duration::from_millis(50);

/// Every process that lives, for what all are to be told.
static LIVING: Mutex<Vec<Weak<Process>>> = Mutex::new(Vec::new());

/// A process, for all who talk with it.
pub struct Process {
    /// Who is in it, for log lines and errors: `model digits:1`.
    pub label: String,
    pidfd: OwnedFd,
    control: Sender,
    /// Who waits for which answer; `None` when no answer comes any more.
    asked: Mutex<Option<HashMap<u64, mpsc::Sender<Done>>>>,
    next: AtomicU64,
    pub tail: Tail,
    /// Why the host killed it.
    why: Mutex<Option<Why>>,
    /// It has answered a request well.
    pub answered: AtomicBool,
}

/// A process, for whoever started it. Dropped, it is killed and reaped.
pub struct Running {
    pub process: Arc<Process>,
    group: Pid,
    child: Child,
    control: Option<JoinHandle<()>>,
    /// Closed when the output has ended.
    output: mpsc::Receiver<()>,
    reaped: bool,
}

/// Starts a process. It lives at most as long as the thread that calls this.
pub fn spawn(label: &str, mut hello: Hello, patience: Option<Duration>) -> Result<Running> {
    let failed = |what: &str, e: &dyn std::fmt::Display| {
        Error::internal(format!("{label}: no process could be started: {what}: {e}"))
    };
    let (ours, theirs) = wire::pair()?;
    // Messages may be longer than what fits between two processes: whoever sends must not wait for ever.
    ours.set_write_timeout(patience).map_err(|e| failed("connection", &e))?;
    let (read, write) = std::io::pipe().map_err(|e| failed("pipe", &e))?;
    // The file that runs, whatever lies in its place by now.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("trtserver").args(["plugin-host", label]).stdin(OwnedFd::from(theirs));
    command.stdout(write.try_clone().map_err(|e| failed("pipe", &e))?).stderr(write);
    // In a group of its own: an interrupt from the terminal is the server's, and what it starts ends with it.
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
    let (control, receiver) = wire::halves(ours);
    let process = Arc::new(Process {
        label: label.to_owned(),
        pidfd,
        control,
        asked: Mutex::new(Some(HashMap::new())),
        next: AtomicU64::new(1),
        tail: Tail::default(),
        why: Mutex::new(None),
        answered: AtomicBool::new(false),
    });
    let (ended, output) = mpsc::channel();
    let mut running = Running { process, group, child, control: None, output, reaped: false };
    let process = Arc::clone(&running.process);
    running.thread("output", move || {
        each_line(read, |line| {
            process.tail.push(line);
            tracing::info!(process = process.label, "{line}");
        });
        drop(ended);
    })?;
    let process = Arc::clone(&running.process);
    running.control = Some(running.thread("control", move || control::listen(receiver, &process))?);
    let mut living = LIVING.lock();
    living.retain(|process| process.strong_count() > 0);
    living.push(Arc::downgrade(&running.process));
    // Under the lock: a change of the level is either in here or told afterwards.
    hello.log_level = host_api::log_level_set();
    running.process.tell(ask::What::Hello(hello), &[]);
    drop(living);
    Ok(running)
}

/// Tells all processes that live up to which level records are wanted.
pub fn log_level(level: u32) {
    for process in LIVING.lock().iter() {
        if let Some(process) = process.upgrade() {
            // One that does not read must not hold up the others.
            process.nudge(ask::What::LogLevel(level));
        }
    }
}

impl Process {
    /// Sends something that has no answer. Whether it arrives is for those to find out who wait for one.
    fn tell(&self, what: ask::What, files: &[BorrowedFd<'_>]) {
        let _ = self.control.send_with(&Ask { number: 0, what: Some(what) }, files);
    }

    /// Tells without ever waiting; lost when the process does not read.
    pub fn nudge(&self, what: ask::What) {
        self.control.nudge(&Ask { number: 0, what: Some(what) });
    }

    /// Sends a question.
    pub fn ask(&self, what: ask::What, files: &[BorrowedFd<'_>]) -> Result<Asked<'_>, Gone> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = mpsc::channel();
        self.asked().as_mut().ok_or(Gone)?.insert(number, sender);
        if let Err(e) = self.control.send_with(&Ask { number, what: Some(what) }, files) {
            // If it lives, it has not read for a long time.
            self.lost(&format!("does not listen any more ({e})"));
            return Err(Gone);
        }
        Ok(Asked { process: self, answer })
    }

    pub fn answer(&self, done: Done) {
        if let Some(asked) = &mut *self.asked()
            && let Some(sender) = asked.remove(&done.number)
        {
            let _ = sender.send(done);
        }
    }

    /// No answer comes any more.
    pub fn hang_up(&self) {
        *self.asked() = None;
    }

    fn asked(&self) -> MutexGuard<'_, Option<HashMap<u64, mpsc::Sender<Done>>>> {
        self.asked.lock()
    }

    /// Kills it; the first reason counts.
    pub fn kill(&self, why: Why) {
        self.why.lock().get_or_insert(why);
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// A connection to it has ended, mostly because it has.
    pub fn lost(&self, what: &str) {
        if !self.wait_for_end(Some(LAST_BREATH)) {
            self.kill(Why::Nonsense(what.to_owned()));
        }
    }

    /// True once it has ended; false when it did not in time.
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

    /// Asks it to end in order, and kills it when it does not in time.
    pub fn close(&self, limit: Duration) {
        self.tell(ask::What::Close(Empty {}), &[]);
        if !self.wait_for_end(Some(limit)) {
            self.kill(Why::Closing);
        }
    }
}

#[cfg(test)]
impl Process {
    /// Any process, in place of one that `spawn` has started.
    pub fn fake(child: &Child) -> Arc<Self> {
        Arc::new(Self {
            label: "fake".into(),
            pidfd: pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap(),
            control: wire::halves(wire::pair().unwrap().0).0,
            asked: Mutex::new(None),
            next: AtomicU64::new(1),
            tail: Tail::default(),
            why: Mutex::new(None),
            answered: AtomicBool::new(false),
        })
    }

    /// Why it would have been killed.
    pub fn accused(&self) -> Option<Why> {
        self.why.lock().clone()
    }
}

/// The process has ended or is about to: whoever reaps it knows why.
#[derive(Debug)]
pub struct Gone;

/// A question under way.
pub struct Asked<'a> {
    process: &'a Process,
    answer: mpsc::Receiver<Done>,
}

impl Asked<'_> {
    /// Waits for the answer; a process that does not give one in time is killed, and so is one that nobody needs any
    /// more.
    pub fn wait(self, limit: Option<Duration>, needed: impl Fn() -> bool) -> Result<Done, Gone> {
        let begin = Instant::now();
        loop {
            let left = limit.map_or(LOOK, |limit| limit.saturating_sub(begin.elapsed()));
            match self.answer.recv_timeout(left.min(LOOK)) {
                Ok(done) => return Ok(done),
                Err(RecvTimeoutError::Disconnected) => return Err(Gone),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !needed() {
                self.process.kill(Why::Closing);
                return Err(Gone);
            }
            if let Some(limit) = limit.filter(|limit| begin.elapsed() >= *limit) {
                self.process.kill(Why::Silent(limit));
                return Err(Gone);
            }
            if self.process.wait_for_end(Some(Duration::ZERO)) {
                // What it said last may be on its way, unless it left somebody behind who holds the connection.
                return self.answer.recv_timeout(LOOK).map_err(|_| Gone);
            }
        }
    }
}

impl Running {
    fn thread(&self, what: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
        let named = std::thread::Builder::new().name(format!("{what} {}", self.process.label));
        named.spawn(work).map_err(|e| {
            Error::internal(format!("{}: no thread could be started: {e}", self.process.label))
        })
    }

    /// Waits for its end and says what happened.
    pub fn reap(&mut self) -> Ended {
        self.process.wait_for_end(None);
        // While its number cannot be anybody else's.
        let _ = kill_process_group(self.group, Signal::KILL);
        let status = self.child.wait().ok();
        self.reaped = true;
        self.process.hang_up();
        self.process.control.shut_down();
        if let Some(control) = self.control.take() {
            let _ = control.join();
        }
        let _ = self.output.recv_timeout(LAST_LINES);
        let why = self.process.why.lock().take();
        Ended { status, why, tail: self.process.tail.text() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            self.process.kill(Why::Closing);
            self.reap();
        }
    }
}
