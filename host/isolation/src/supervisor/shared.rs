//! What the supervisor, the instances and the watch over the unloading of an isolated model share.

use super::instance_session::InstanceSession;
use super::unload;
use crate::child_process::RunningProcesses;
use crate::exit_reason::{ExitReason, KillReason};
use crate::facts;
use crate::messages;
use crate::messages::{ControlResponse, Handshake};
use crate::process::{PendingResponse, Process, ProcessGone};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trtserver_base::arena::{Arena, ArenaReader};
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::{Error, Result};
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::current_failure::CurrentFailure;
use trtserver_plugin_host::health::{IsolatedMemory, IsolatedState};
use trtserver_plugin_host::isolation_limits::IsolationLimits;

/// State of one isolated model that its supervisor, its instances and its unload deadline share.
pub struct SupervisedModel {
    pub running: Arc<RunningProcesses>,
    /// `model digits:1`.
    pub label: String,
    /// `model 'digits' version 1`.
    pub subject: String,
    pub backend: Arc<PluginBackend>,
    pub handshake: Handshake,
    pub facts: messages::ModelFacts,
    /// Output names by position.
    pub names: Arc<[String]>,
    pub limits: IsolationLimits,
    /// Breaks off the load of the model.
    pub cancel: CancelFlag,
    /// Positions of the states among the outputs.
    pub states: Vec<u32>,
    /// The backend keeps sequence state, which is lost with the child.
    pub keeps_sequences: bool,
    pub inputs: Arc<Arena>,
    /// Why it does not serve at the moment.
    pub failure: Arc<CurrentFailure>,
    pub state: Mutex<SupervisorState>,
    pub changed: Condvar,
    /// Drain time: how long the model may take to close.
    pub drain: Mutex<Duration>,
}

pub struct SupervisorState {
    pub phase: Phase,
    pub sessions: Vec<Arc<InstanceSession>>,
    /// All instances of the load are open; later others may be added and removed.
    pub opened: bool,
    /// No further request will be sent.
    pub unloading: bool,
    /// The model is being closed.
    pub closing: bool,
}

impl SupervisorState {
    pub fn new() -> Self {
        Self {
            phase: Phase::Opening,
            sessions: Vec::new(),
            opened: false,
            unloading: false,
            closing: false,
        }
    }
}

/// The phase of the supervisor; its module text draws the transitions.
pub enum Phase {
    Opening,
    Running(Arc<LiveProcess>),
    Restarting,
    Backoff {
        failure: String,
        /// When it is restarted; `None` = now.
        until: Option<Instant>,
    },
    Closed(Error),
}

/// The running child of the model.
pub struct LiveProcess {
    pub process: Arc<Process>,
    pub outputs: Arc<ArenaReader>,
    /// Number of the child, counting from 1.
    pub generation: u64,
}

/// Why a child could not open something.
pub enum OpenError {
    Refused(Error),
    ProcessGone,
}

impl From<ProcessGone> for OpenError {
    fn from(_: ProcessGone) -> Self {
        Self::ProcessGone
    }
}

impl From<Error> for OpenError {
    fn from(e: Error) -> Self {
        Self::Refused(e)
    }
}

impl SupervisedModel {
    pub fn lock(&self) -> MutexGuard<'_, SupervisorState> {
        self.state.lock()
    }

    /// It is not being closed.
    pub fn needed(&self) -> bool {
        !self.lock().closing
    }

    pub fn exit_error(&self, exit: &ExitReason) -> Error {
        let text = format!(
            "{}: the process of backend '{}' {}",
            self.subject,
            self.backend.facts.name,
            exit.text()
        );
        if !self.needed() && !exit.is_clean() {
            tracing::warn!("{text}");
        }
        Error::internal(text)
    }

    /// Waits for the response to a request that opens something.
    pub fn wait(&self, pending: PendingResponse<'_>) -> Result<ControlResponse, OpenError> {
        let unneeded = || match self.needed() {
            false => Some(KillReason::Closing),
            true => self.cancel.is_cancelled().then_some(KillReason::LoadCancelled),
        };
        let response = pending.wait(self.limits.open, unneeded)?;
        match response.failure {
            Some(failure) => Err(OpenError::Refused(facts::failure_error(&failure))),
            None => Ok(response),
        }
    }

    /// The running child, if its number is above `tried`; waits while it is being started.
    ///
    /// # Errors
    /// The model does not serve, and why.
    pub fn live(&self, tried: u64) -> Result<Arc<LiveProcess>> {
        let mut state = self.lock();
        loop {
            match &state.phase {
                Phase::Running(live) if live.generation > tried => return Ok(Arc::clone(live)),
                Phase::Running(_) | Phase::Opening | Phase::Restarting => {
                    self.changed.wait(&mut state);
                }
                Phase::Backoff { failure, until } => {
                    let left = until.map(|at| at.saturating_duration_since(Instant::now()));
                    let when = match left.filter(|left| !left.is_zero()) {
                        Some(left) => format!("in {:.1} s", left.as_secs_f64()),
                        None => "now".into(),
                    };
                    return Err(Error::unavailable(format!("{failure}; it is restarted {when}")));
                }
                Phase::Closed(e) => return Err(e.clone()),
            }
        }
    }

    /// The running child.
    pub fn process(&self) -> Option<Arc<Process>> {
        match &self.lock().phase {
            Phase::Running(live) => Some(Arc::clone(&live.process)),
            _ => None,
        }
    }
}

impl IsolatedState for SupervisedModel {
    fn memory(&self) -> IsolatedMemory {
        let live = match &self.lock().phase {
            Phase::Running(live) => Some(Arc::clone(live)),
            _ => None,
        };
        let process = live.as_ref().and_then(|live| live.process.memory());
        IsolatedMemory {
            process: process.unwrap_or_default(),
            inputs: self.inputs.resident(),
            outputs: live.map_or(0, |live| live.outputs.resident()),
        }
    }

    fn begin_unload(self: Arc<Self>) {
        unload::begin_unload(&self);
    }
}

/// The arena for one direction of a model's tensors. It reserves address space for four times the
/// machine's memory, since free blocks of other sizes take up space too; only pages in use are
/// memory.
pub fn create_arena(name: &str) -> Result<Arc<Arena>> {
    const MAX: u64 = 512 << 30;
    let system = rustix::system::sysinfo();
    let memory = system.totalram as u64 * u64::from(system.mem_unit.max(1));
    Arena::new(name, (4 * memory).min(MAX) as usize)
}
