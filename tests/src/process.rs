//! A child process with its captured output, killed when dropped.

use rustix::process::{Pid, kill_process, set_parent_process_death_signal};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
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
    observed: Arc<Observed>,
    /// The output was already part of a failure message.
    reported: AtomicBool,
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
struct Observed {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
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

impl Observed {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Calls `look` after every change; `None` at the time limit.
    fn wait<T>(&self, timeout: Duration, mut look: impl FnMut(&State) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&state) {
                return Some(found);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            state =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
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
        let observed = Arc::new(Observed::default());
        listen(child.stdout.take(), &observed, |state| &mut state.stdout);
        listen(child.stderr.take(), &observed, |state| &mut state.stderr);
        let waiting = Arc::clone(&observed);
        thread::spawn(move || {
            let status = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(-1));
            waiting.change(|state| state.status = Some(status));
        });
        Process { line, pid, observed, reported: AtomicBool::new(false) }
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    pub fn stdout(&self) -> String {
        self.observed.lock().stdout.text()
    }

    pub fn stderr(&self) -> String {
        self.observed.lock().stderr.text()
    }

    /// Waits until `find` returns something for the standard output so far.
    #[track_caller]
    pub fn stdout_until<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        self.until(what, |state| (&state.stdout, find(&state.stdout.text())))
    }

    /// The same for the standard error.
    #[track_caller]
    pub fn stderr_until<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        self.until(what, |state| (&state.stderr, find(&state.stderr.text())))
    }

    #[track_caller]
    fn until<T>(&self, what: &str, look: impl Fn(&State) -> (&Stream, Option<T>)) -> T {
        let found = self.observed.wait(TIMEOUT, |state| match look(state) {
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
        self.observed.lock().status.is_some()
    }

    /// Waits for its end and for everything it printed.
    #[track_caller]
    pub fn wait(&self, timeout: Duration) -> Ended {
        let ended = self.observed.wait(timeout, |state| {
            let status = state.status.filter(|_| state.stdout.closed && state.stderr.closed)?;
            Some(Ended { status, stdout: state.stdout.text(), stderr: state.stderr.text() })
        });
        ended.unwrap_or_else(|| panic!("still running after {timeout:?}\n{self}"))
    }
}

/// For failure messages: command line, status and output.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reported.store(true, Ordering::Relaxed);
        let state = self.observed.lock();
        let status = match state.status {
            Some(status) => format!("ended with {}", code(status)),
            None => "running".to_owned(),
        };
        write!(
            f,
            "--- {} ({status})\n--- stdout\n{}--- stderr\n{}---",
            self.line,
            state.stdout.text(),
            state.stderr.text()
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = kill_process(self.pid, rustix::process::Signal::KILL);
        }
        self.observed.wait(TIMEOUT, |state| state.status);
        if thread::panicking() && !self.reported.load(Ordering::Relaxed) {
            eprintln!("{self}");
        }
    }
}

fn listen(
    stream: Option<impl Read + Send + 'static>,
    observed: &Arc<Observed>,
    which: fn(&mut State) -> &mut Stream,
) {
    let observed = Arc::clone(observed);
    thread::spawn(move || {
        let mut buffer = [0; 8192];
        if let Some(mut stream) = stream {
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => {
                        observed.change(|state| which(state).bytes.extend_from_slice(&buffer[..n]));
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
        observed.change(|state| which(state).closed = true);
    });
}

/// Waits between two looks at something without an event, which began at `begin`: a millisecond at
/// first, ten when it takes longer. Looks without a pause take a core from the other tests.
pub fn pause_since(begin: Instant) {
    let pause = begin.elapsed() / 10;
    thread::sleep(pause.clamp(Duration::from_millis(1), Duration::from_millis(10)));
}

type Order = (Command, Sender<io::Result<Child>>);

/// Spawns from one thread that lives as long as the program. The kernel sends the death signal when
/// the *thread* that spawned the child ends, and shared servers outlive the test thread that used
/// them first. The child runs on the cores of the calling thread.
fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: LazyLock<Mutex<Sender<Order>>> = LazyLock::new(|| {
        let (orders, inbox) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, reply) in inbox {
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let mut command = command;
    let cores = sched_getaffinity(None)?;
    // SAFETY: two system calls between fork and exec, no allocation, no lock.
    unsafe {
        command.pre_exec(move || {
            sched_setaffinity(None, &cores)?;
            set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).map_err(Into::into)
        });
    }
    let (reply, child) = channel();
    let order = (command, reply);
    let sent = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner).send(order);
    sent.map_err(io::Error::other)?;
    child.recv().map_err(io::Error::other)?
}

/// Runs a command, which must succeed, and returns its output.
#[track_caller]
pub fn command_output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let both = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(done.status.success(), "{command:?}\n{}{}", both[0], both[1]);
    both[0].trim().to_owned()
}
