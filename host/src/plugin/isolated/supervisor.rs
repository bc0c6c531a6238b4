//! Keeps a model's process running: starts it, waits for its end, says what happened, and starts it again.
//!
//! ```text
//!   Opening ──► Up ──► Starting ──► Up …       the first end after an answer: started again at once
//!      │         │         │
//!      │         └──► Down ◄─┘ ──► Up …        else after a pause, which doubles
//!      └──► Over                               it never opened, or it is closed
//! ```
//! While it is Starting, instances wait and with them their requests; while it is Down, requests are refused.

mod instance_session;
mod retire; // a model that is being unloaded // instances while processes come and go

pub use instance_session::Seat;

use super::exit_reason::Ended;
use super::facts;
use super::limits::Limits;
use super::messages::{self, Done, Hello, ask};
use super::process::{Asked, Gone, Process, Running, spawn};
use crate::arena::{Arena, Reader};
use crate::error::{Error, Result};
use crate::plugin::backend::Backend;
use crate::sync::{Condvar, Mutex, MutexGuard};
use arc_swap::ArcSwapOption;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause before the second start in a row that follows no answer; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// What a process that could not open its model gets to end in order.
const GRACE: Duration = Duration::from_secs(2);

/// What the rest of the server has of a model while it serves, and does not keep it open.
#[derive(Default)]
pub struct Health {
    /// Why it does not serve at the moment, if so.
    why: ArcSwapOption<String>,
    of: OnceLock<Weak<Shared>>,
}

impl Health {
    /// To be told of the model's retirement.
    pub fn is_of(&self, shared: &Arc<Shared>) {
        let _ = self.of.set(Arc::downgrade(shared));
    }

    pub fn broken(&self) -> Option<String> {
        self.why.load().as_deref().cloned()
    }

    /// No further request comes. From here on its process may be silent no longer than a model gets to end.
    pub fn retire(&self) {
        if let Some(shared) = self.of.get().and_then(Weak::upgrade) {
            retire::retire(&shared);
        }
    }
}

/// What the supervisor and the instances of a model share.
pub struct Shared {
    /// `model digits:1`.
    pub label: String,
    /// `model 'digits' version 1`.
    pub subject: String,
    pub backend: Arc<Backend>,
    pub hello: Hello,
    pub facts: messages::ModelFacts,
    /// Of the outputs, by number.
    pub names: Arc<[String]>,
    pub limits: Limits,
    /// An instance sends nothing before all is answered, and so can read the answers itself.
    pub one_at_a_time: bool,
    pub inputs: Arc<Arena>,
    pub health: Arc<Health>,
    pub state: Mutex<State>,
    pub changed: Condvar,
    /// How long a model gets to end.
    pub drain: Mutex<Duration>,
}

pub struct State {
    phase: Phase,
    pub seats: Vec<Arc<Seat>>,
    /// No further request comes.
    retired: bool,
    /// Nobody needs it any more.
    pub closing: bool,
}

impl State {
    pub fn new() -> Self {
        Self { phase: Phase::Opening, seats: Vec::new(), retired: false, closing: false }
    }
}

/// See the module text.
enum Phase {
    Opening,
    Up(Arc<Live>),
    Starting,
    Down {
        why: String,
        /// When it is started; `None` = that is being done.
        until: Option<Instant>,
    },
    Over(Error),
}

/// One process of the model.
pub struct Live {
    pub process: Arc<Process>,
    memory: Arc<Reader>,
    /// Counts processes.
    pub generation: u64,
}

/// Why something could not be opened.
enum Unopened {
    Refused(Error),
    Gone,
}

impl From<Gone> for Unopened {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<Error> for Unopened {
    fn from(e: Error) -> Self {
        Self::Refused(e)
    }
}

/// Runs on a thread of its own for as long as the model is open. Tells once whether it opened.
pub fn supervise(shared: &Shared, opened: Sender<Result<()>>) {
    let mut opened = Some(opened);
    // Ends in a row that followed no answer.
    let mut failures = 0u32;
    for generation in 1.. {
        let begin = Instant::now();
        let error = match shared.start(generation) {
            Ok((mut running, live)) => {
                shared.up(&live);
                drop(live);
                match opened.take() {
                    Some(opened) => drop(opened.send(Ok(()))),
                    None => tracing::info!(
                        "{}: its process was started again in {:.1} ms",
                        shared.subject,
                        begin.elapsed().as_secs_f64() * 1e3
                    ),
                }
                let ended = running.reap();
                if running.process.answered.load(Ordering::Relaxed) {
                    failures = 0;
                }
                shared.ended(&ended)
            }
            Err(e) => e,
        };
        failures = failures.saturating_add(1);
        let pause = (failures > 1)
            .then(|| FIRST_PAUSE.saturating_mul(1 << (failures - 2).min(16)).min(LONGEST_PAUSE));
        let again = shared.down(&error, pause);
        if let Some(opened) = opened.take() {
            let _ = opened.send(Err(error));
        }
        if !again {
            return;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn needed(&self) -> bool {
        !self.lock().closing
    }

    fn ended(&self, ended: &Ended) -> Error {
        let text = format!(
            "{}: the process of backend '{}' {}",
            self.subject,
            self.backend.facts.name,
            ended.text()
        );
        if !self.needed() && !ended.in_order() {
            tracing::warn!("{text}");
        }
        Error::internal(text)
    }

    /// Starts a process and opens in it the model and all instances that there are.
    fn start(&self, generation: u64) -> Result<(Running, Arc<Live>)> {
        self.inputs.forget_loans();
        let outputs = arena(&format!("{} outputs", self.label))?;
        let file = outputs.file().try_clone_to_owned().map_err(|e| {
            Error::internal(format!("{}: no file for its process: {e}", self.subject))
        })?;
        drop(outputs);
        let memory = Reader::new(&file)?;
        let mut running = spawn(&self.label, self.hello.clone(), self.limits.open)?;
        let process = Arc::clone(&running.process);
        let live = Arc::new(Live { process, memory, generation });
        match self.open(&live, file.as_fd()) {
            Ok(()) => Ok((running, live)),
            Err(Unopened::Refused(e)) => {
                running.process.close(GRACE);
                running.reap();
                Err(e)
            }
            Err(Unopened::Gone) => Err(self.ended(&running.reap())),
        }
    }

    fn open(&self, live: &Live, outputs: std::os::fd::BorrowedFd<'_>) -> Result<(), Unopened> {
        self.note_replacement(live)?;
        let files = [self.inputs.file(), outputs];
        let open = ask::What::OpenModel(self.facts.clone());
        self.wait(live.process.ask(open, &files)?)?;
        let seats = self.lock().seats.clone();
        let asked = seats.iter().map(|seat| Ok((seat, self.ask_for(live, seat)?)));
        for (seat, (asked, ours)) in asked.collect::<Result<Vec<_>, Unopened>>()? {
            self.wait(asked)?;
            self.connect(live, seat, ours)?;
        }
        Ok(())
    }

    /// Says so if the process works with another file than the model was loaded with.
    fn note_replacement(&self, live: &Live) -> Result<(), Unopened> {
        if !self.backend.is_replaced() {
            return Ok(());
        }
        let done = self.wait(live.process.ask(ask::What::Describe(messages::Empty {}), &[])?)?;
        let now = done.about.map(|about| facts::about(about).version).unwrap_or_default();
        tracing::warn!(
            "{}: {} was replaced after backend '{}' {} had been found there; its process works with what lies there now, \
             which says that it is version {now}; load the model again to have all of the server know that",
            self.subject,
            self.backend.path.display(),
            self.backend.facts.name,
            self.backend.facts.version
        );
        Ok(())
    }

    fn wait(&self, asked: Asked<'_>) -> Result<Done, Unopened> {
        let done = asked.wait(self.limits.open, || self.needed())?;
        match done.failure {
            Some(failure) => Err(Unopened::Refused(facts::error(&failure))),
            None => Ok(done),
        }
    }

    /// The process that runs, or will in a moment, later than process number `tried`.
    ///
    /// # Errors
    /// There is none, and why.
    pub fn live(&self, tried: u64) -> Result<Arc<Live>> {
        let mut state = self.lock();
        loop {
            match &state.phase {
                Phase::Up(live) if live.generation > tried => return Ok(Arc::clone(live)),
                Phase::Up(_) | Phase::Opening | Phase::Starting => {
                    state = self.changed.wait(state);
                }
                Phase::Down { why, until } => {
                    let left = until.map(|at| at.saturating_duration_since(Instant::now()));
                    let when = match left.filter(|left| !left.is_zero()) {
                        Some(left) => format!("in {:.1} s", left.as_secs_f64()),
                        None => "now".into(),
                    };
                    return Err(Error::unavailable(format!("{why}; it is started again {when}")));
                }
                Phase::Over(e) => return Err(e.clone()),
            }
        }
    }

    /// The process that runs.
    pub fn process(&self) -> Option<Arc<Process>> {
        match &self.lock().phase {
            Phase::Up(live) => Some(Arc::clone(&live.process)),
            _ => None,
        }
    }

    fn up(&self, live: &Arc<Live>) {
        let mut state = self.lock();
        if state.closing {
            live.process.kill(super::exit_reason::Why::Closing);
        }
        state.phase = Phase::Up(Arc::clone(live));
        self.health.why.store(None);
        drop(state);
        self.changed.notify_all();
    }

    /// The process has ended, or could not be started: everybody is told. True after the pause, if it is to be started
    /// again.
    fn down(&self, error: &Error, pause: Option<Duration>) -> bool {
        let why = &error.message;
        let mut state = self.lock();
        let again = !state.closing && state.seats.len() == self.facts.n_instances as usize;
        state.phase = match pause {
            _ if !again => Phase::Over(error.clone()),
            None => Phase::Starting,
            Some(pause) => Phase::Down { why: why.clone(), until: Some(Instant::now() + pause) },
        };
        if again {
            match pause {
                // Requests wait: for callers it serves.
                None if state.retired => tracing::error!("{why}"),
                None => tracing::error!("{why}; it is started again"),
                Some(pause) => {
                    self.health.why.store(Some(Arc::new(why.clone())));
                    tracing::error!("{why}; it is started again in {} s", pause.as_secs_f64());
                }
            }
        }
        let seats = state.seats.clone();
        drop(state);
        let lines: Vec<_> = seats.iter().filter_map(|seat| seat.disconnect()).collect();
        lines.iter().for_each(|(line, _)| line.close());
        self.changed.notify_all();
        // Before the callers are told, who may go on with their sequences at once.
        seats.iter().for_each(|seat| seat.tell_lost());
        for (line, thread) in lines {
            // Whoever reads passes on what was received before the end.
            let own = line.reading.lock().take();
            drop((own, thread.map(JoinHandle::join)));
            line.fail(error);
        }
        again && self.pause(pause)
    }

    fn pause(&self, pause: Option<Duration>) -> bool {
        let Some(pause) = pause else { return self.needed() };
        let waited = self.changed.wait_timeout_while(self.lock(), pause, |state| !state.closing);
        let (mut state, _) = waited;
        if let Phase::Down { until, .. } = &mut state.phase {
            *until = None;
        }
        !state.closing
    }
}

/// Memory for one direction of a model's tensors: as much as there could be of blocks in use and blocks of other sizes
/// that were used before. Address space is all that it costs.
pub fn arena(name: &str) -> Result<Arc<Arena>> {
    const MOST: u64 = 512 << 30;
    let system = rustix::system::sysinfo();
    let memory = system.totalram as u64 * u64::from(system.mem_unit.max(1));
    Arena::new(name, (4 * memory).min(MOST) as usize)
}
