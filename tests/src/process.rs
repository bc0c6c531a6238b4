//! A child process with its captured output, killed when dropped.

use rustix::process::{Pid, kill_process, set_parent_process_death_signal};
use std::fmt;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Limit of every wait. Only failing tests reach it.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A child process, killed when this is dropped or the test program ends.
pub struct Process {
    line: String,
    pid: Pid,
    seen: Arc<Seen>,
    /// The output was already part of a failure message.
    told: AtomicBool,
}

/// A child that has ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// The exit code, or the negative number of the signal that killed it.
    pub fn code(&self) -> i32 {
        code(self.status)
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| -signal)).unwrap_or(i32::MIN)
}

/// Output and status, written by the reader threads.
#[derive(Default)]
struct Seen {
    facts: Mutex<Facts>,
    changed: Condvar,
}

#[derive(Default)]
struct Facts {
    stdout: Stream,
    stderr: Stream,
    status: Option<ExitStatus>,
}

#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    closed: bool,
}

impl Stream {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Calls `look` after every change; `None` at the time limit.
    fn wait<T>(&self, patience: Duration, mut look: impl FnMut(&Facts) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + patience;
        let mut facts = self.lock();
        loop {
            if let Some(found) = look(&facts) {
                return Some(found);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            facts =
                self.changed.wait_timeout(facts, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Process {
    #[track_caller]
    pub fn spawn(mut command: Command) -> Process {
        let line = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(command).unwrap_or_else(|e| panic!("cannot start {line}: {e}"));
        let pid = Pid::from_child(&child);
        let seen = Arc::new(Seen::default());
        listen(child.stdout.take(), &seen, |facts| &mut facts.stdout);
        listen(child.stderr.take(), &seen, |facts| &mut facts.stderr);
        let waiting = Arc::clone(&seen);
        thread::spawn(move || {
            let status = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(-1));
            waiting.change(|facts| facts.status = Some(status));
        });
        Process { line, pid, seen, told: AtomicBool::new(false) }
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    pub fn stdout(&self) -> String {
        self.seen.lock().stdout.text()
    }

    pub fn stderr(&self) -> String {
        self.seen.lock().stderr.text()
    }

    /// Waits until `find` returns something for the standard output so far.
    #[track_caller]
    pub fn stdout_until<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        self.until(what, |facts| (&facts.stdout, find(&facts.stdout.text())))
    }

    /// The same for the standard error.
    #[track_caller]
    pub fn stderr_until<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        self.until(what, |facts| (&facts.stderr, find(&facts.stderr.text())))
    }

    #[track_caller]
    fn until<T>(&self, what: &str, look: impl Fn(&Facts) -> (&Stream, Option<T>)) -> T {
        let found = self.seen.wait(TIMEOUT, |facts| match look(facts) {
            (_, Some(found)) => Some(Some(found)),
            (stream, None) => stream.closed.then_some(None),
        });
        match found {
            Some(Some(found)) => found,
            Some(None) => panic!("the process ended without {what}\n{self}"),
            None => panic!("no {what} within {TIMEOUT:?}\n{self}"),
        }
    }

    #[track_caller]
    pub fn signal(&self, signal: rustix::process::Signal) {
        kill_process(self.pid, signal).unwrap_or_else(|e| panic!("cannot signal: {e}\n{self}"));
    }

    pub fn has_ended(&self) -> bool {
        self.seen.lock().status.is_some()
    }

    /// Waits for its end and for everything it printed.
    #[track_caller]
    pub fn wait(&self, patience: Duration) -> Ended {
        let ended = self.seen.wait(patience, |facts| {
            let status = facts.status.filter(|_| facts.stdout.closed && facts.stderr.closed)?;
            Some(Ended { status, stdout: facts.stdout.text(), stderr: facts.stderr.text() })
        });
        ended.unwrap_or_else(|| panic!("still running after {patience:?}\n{self}"))
    }
}

/// For failure messages: command line, status and output.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.told.store(true, Ordering::Relaxed);
        let facts = self.seen.lock();
        let state = match facts.status {
            Some(status) => format!("ended with {}", code(status)),
            None => "running".to_owned(),
        };
        write!(
            f,
            "--- {} ({state})\n--- stdout\n{}--- stderr\n{}---",
            self.line,
            facts.stdout.text(),
            facts.stderr.text()
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = kill_process(self.pid, rustix::process::Signal::KILL);
        }
        self.seen.wait(TIMEOUT, |facts| facts.status);
        if thread::panicking() && !self.told.load(Ordering::Relaxed) {
            eprintln!("{self}");
        }
    }
}

fn listen(
    stream: Option<impl Read + Send + 'static>,
    seen: &Arc<Seen>,
    which: fn(&mut Facts) -> &mut Stream,
) {
    let seen = Arc::clone(seen);
    thread::spawn(move || {
        let mut buffer = [0; 8192];
        if let Some(mut stream) = stream {
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => {
                        seen.change(|facts| which(facts).bytes.extend_from_slice(&buffer[..n]));
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
        seen.change(|facts| which(facts).closed = true);
    });
}

type Order = (Command, Sender<io::Result<Child>>);

/// Spawns from one thread that lives as long as the program. The kernel sends the death signal when the *thread* that
/// spawned the child ends, and shared servers outlive the test thread that used them first.
fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: LazyLock<Mutex<Sender<Order>>> = LazyLock::new(|| {
        let (orders, inbox) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in inbox {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let mut command = command;
    // SAFETY: one system call between fork and exec, no allocation, no lock.
    unsafe {
        command.pre_exec(|| {
            set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).map_err(Into::into)
        });
    }
    let (answer, child) = channel();
    let order = (command, answer);
    let sent = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner).send(order);
    sent.map_err(io::Error::other)?;
    child.recv().map_err(io::Error::other)?
}
