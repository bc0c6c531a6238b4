//! The host's side of a model in another process: what the rest of the server sees of it.

use super::exit_reason::Why;
use super::facts;
use super::limits::Limits;
use super::messages::{Batch, Done, Empty, Hello, ask};
use super::process::{Gone, spawn};
use super::requests::{call, place, take_back, words_fit};
use super::supervisor::{Health, Seat, Shared, State, arena, supervise};
use super::work_connection::Line;
use crate::arena::Arena;
use crate::error::{Error, Result};
use crate::plugin::backend::{Backend, Facts};
use crate::plugin::{InstanceFacts, ModelFacts, Patch};
use crate::request::{InferRequest, implicit_state};
use crate::sync::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use trtserver_proto::v2::model_config::SchedulingChoice;

/// What a process that was started for one answer gets to end in order.
const GRACE: Duration = Duration::from_secs(5);

fn hello(file: &Path, settings: &BTreeMap<String, String>) -> Hello {
    let file = file.to_string_lossy().into_owned();
    Hello { file, settings: settings.clone(), log_level: 0 }
}

/// Facts of a library that must not be loaded into this process.
pub fn describe(path: &Path, limits: Limits) -> Result<Facts> {
    let label = format!("backend '{}'", path.display());
    let describe = ask::What::Describe(Empty {});
    let done = once(&label, hello(path, &BTreeMap::new()), describe, limits)?;
    done.about.map(facts::about).ok_or_else(|| {
        Error::internal(format!("{label}: its process answered without a description"))
    })
}

/// `model_complete` in a process that ends afterwards.
pub fn complete(backend: &Backend, facts: &ModelFacts<'_>) -> Result<Option<Patch>> {
    let limits = backend.limits.of_model(facts.config)?;
    let label = format!("model '{}'", facts.name);
    let complete = ask::What::Complete(facts::model(facts));
    let done = once(&label, hello(&backend.path, &backend.settings), complete, limits)?;
    Ok(done.patch.map(facts::patch))
}

/// One question to a process of its own.
fn once(label: &str, hello: Hello, what: ask::What, limits: Limits) -> Result<Done> {
    let mut running = spawn(label, hello, limits.open)?;
    let process = Arc::clone(&running.process);
    match process.ask(what, &[]).and_then(|asked| asked.wait(limits.open, || true)) {
        Ok(Done { failure: Some(failure), .. }) => {
            process.close(GRACE);
            Err(facts::error(&failure))
        }
        Ok(done) => {
            process.close(GRACE);
            Ok(done)
        }
        Err(Gone) => {
            Err(Error::internal(format!("{label}: its process {}", running.reap().text())))
        }
    }
}

/// A model version in a process of its own. Dropped, it is closed.
pub struct RemoteModel {
    shared: Arc<Shared>,
    /// Where the states are among the outputs.
    states: Vec<u32>,
    align: usize,
    /// The process remembers sequences, which go with it.
    remembers: bool,
    supervisor: Option<JoinHandle<()>>,
}

impl RemoteModel {
    pub fn open(backend: &Arc<Backend>, facts: &ModelFacts<'_>) -> Result<Arc<Self>> {
        let message = facts::model(facts);
        let label = format!("model {}:{}", facts.name, facts.version);
        let shared = Arc::new(Shared {
            subject: format!("model '{}' version {}", facts.name, facts.version),
            backend: Arc::clone(backend),
            hello: hello(&backend.path, &backend.settings),
            names: message.outputs.iter().map(|output| output.name.clone()).collect(),
            facts: message,
            one_at_a_time: backend.facts.max_in_flight <= 1,
            limits: backend.limits.of_model(facts.config)?,
            inputs: arena(&format!("{label} inputs"))?,
            health: Arc::default(),
            state: Mutex::new(State::new()),
            changed: Condvar::new(),
            drain: Mutex::new(GRACE),
            label,
        });
        shared.health.is_of(&shared);
        let (sender, opened) = std::sync::mpsc::channel();
        let of_thread = Arc::clone(&shared);
        // The process lives at most as long as the thread that starts it.
        let supervisor = std::thread::Builder::new()
            .name(format!("supervisor {}", shared.label))
            .spawn(move || supervise(&of_thread, sender))
            .map_err(|e| Error::internal(format!("{}: no thread: {e}", shared.subject)))?;
        let sequences =
            matches!(facts.config.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_)));
        let model = Arc::new(Self {
            states: facts::state_positions(facts.signature),
            align: backend.facts.align,
            remembers: sequences && facts.signature.states.is_empty(),
            supervisor: Some(supervisor),
            shared,
        });
        let broken = |_| Error::internal(format!("{}: its thread ended", model.shared.subject));
        opened.recv().map_err(broken)??;
        Ok(model)
    }

    /// Where inputs are best received.
    pub fn inputs(&self) -> Arc<Arena> {
        Arc::clone(&self.shared.inputs)
    }

    /// Whether it serves.
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.shared.health)
    }
}

impl Drop for RemoteModel {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closing = true;
        let seats = state.seats.clone();
        drop(state);
        self.shared.changed.notify_all();
        if let Some(process) = self.shared.process() {
            let owes = seats.iter().filter_map(|seat| seat.line()).any(|line| line.owes());
            if owes {
                // It has had its time.
                process.kill(Why::Closing);
            } else {
                let drain = *self.shared.drain.lock();
                process.close(drain);
            }
        }
        if let Some(supervisor) = self.supervisor.take() {
            let _ = supervisor.join();
        }
    }
}

/// An instance of it.
pub struct RemoteInstance {
    line: Option<Arc<Line>>,
    /// Number of the process that last got something.
    generation: u64,
    seat: Arc<Seat>,
    batch: Batch,
    model: Arc<RemoteModel>,
}

impl RemoteInstance {
    pub fn open(model: &Arc<RemoteModel>, facts: &InstanceFacts<'_>) -> Result<Self> {
        *model.shared.drain.lock() = facts.drain;
        let seat = Seat::new(facts::instance(facts));
        let (line, generation) = model.shared.add(&seat)?;
        let (model, batch) = (Arc::clone(model), Batch::default());
        Ok(Self { line: Some(line), generation, seat, batch, model })
    }

    /// Calls `lost`, from any thread, whenever the sequences of this instance are lost.
    pub fn when_lost(&self, lost: impl Fn() + Send + Sync + 'static) {
        if self.model.remembers {
            let _ = self.seat.lost.set(Box::new(lost));
        }
    }

    /// Hands the requests over as batch `id`; each is answered, now or later, whatever happens.
    pub fn execute(&mut self, id: u64, requests: &mut Vec<InferRequest>) {
        self.place(requests);
        if requests.is_empty() {
            return;
        }
        self.batch.id = id;
        loop {
            let (model, batch) = (&self.model, &mut self.batch);
            let show = |key, request: &_| call(key, request, &model.shared.inputs, &model.states);
            if let Some(line) = &self.line {
                // From before it is sent: whoever closes the line waits for what is received by then.
                let mut reading = line.reading.lock();
                match line.send(batch, requests, show) {
                    Ok(true) => {
                        if let Some(answers) = &mut *reading {
                            answers.read(line, true);
                        }
                        return;
                    }
                    Ok(false) => {}
                    Err(e) => {
                        drop(reading);
                        take_back(batch, &model.shared.inputs);
                        let e = Error::new(e.code, format!("{}: {e}", model.shared.subject));
                        return self.fail(requests, &e);
                    }
                }
            }
            self.line = None;
            match self.model.shared.live(self.generation) {
                Ok(live) => {
                    self.generation = live.generation;
                    self.line = self.seat.line();
                    self.refuse_lost(requests);
                }
                Err(e) => {
                    self.fail(requests, &e);
                    return;
                }
            }
        }
    }

    /// Brings the inputs where the process can read them.
    fn place(&self, requests: &mut Vec<InferRequest>) {
        let (arena, align) = (&self.model.shared.inputs, self.model.align);
        let mut short = None;
        // Steps of an ensemble come here unasked; requests were asked before they were queued.
        requests.retain_mut(|request| {
            let Err(e) = words_fit(request) else { return true };
            let _ = request.responder.finish(Err(e));
            request.id.clear();
            request.parameters.clear();
            // Executed nevertheless, where others count on their places; nobody sees it.
            self.model.remembers
        });
        requests.retain_mut(|request| match place(request, arena, align) {
            Ok(()) => true,
            // With one of them away the others would be in the wrong places.
            Err(e) if self.model.remembers => {
                short = Some(e);
                true
            }
            Err(e) => {
                let _ = request.responder.finish(Err(e));
                false
            }
        });
        if let Some(e) = short {
            self.fail(requests, &e);
        }
    }

    /// A step that is not executed is missing from its sequence.
    fn fail(&self, requests: &mut Vec<InferRequest>, e: &Error) {
        self.seat.tell_lost();
        for request in requests.drain(..) {
            let _ = request.responder.finish(Err(e.clone()));
        }
    }

    /// These were taken before the process was lost that knew their sequences. They are executed nevertheless, because
    /// others of the batch count on their places; nobody sees it.
    fn refuse_lost(&self, requests: &[InferRequest]) {
        if !self.model.remembers {
            return;
        }
        let lost = requests.iter().filter(|r| !r.sequence.start && r.context().is_counted());
        for request in lost {
            let signature = &request.context().signature;
            let _ = request
                .responder
                .finish(Err(implicit_state::lost(&signature.model, &request.sequence.id)));
        }
    }
}
