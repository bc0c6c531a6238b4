//! An isolated model version, as the rest of the server sees it.

use super::child_process::RunningProcesses;
use super::exit_reason::KillReason;
use super::facts;
use super::instance::ProcessInstance;
use super::one_shot::child_handshake;
use super::supervisor::{SupervisedModel, SupervisorState, create_arena, supervise_child};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use trtserver_base::arena::Arena;
use trtserver_base::error::{Error, Result};
use trtserver_plugin_host::InstanceFacts;
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::child_processes::{IsolatedInstance, IsolatedModel};
use trtserver_plugin_host::health::{Health, IsolatedState};
use trtserver_plugin_host::{CancelFlag, ModelFacts};
use trtserver_proto::v2::model_config::SchedulingChoice;

/// Grace period of closing until an instance has set its own.
const GRACE: Duration = Duration::from_secs(5);

/// A model version that runs in a child process, with the supervisor thread that restarts it.
/// Dropping it closes the model and ends the child.
pub struct ProcessModel {
    pub shared: Arc<SupervisedModel>,
    /// Alignment of inputs that the backend requires.
    pub align: usize,
    supervisor: Option<JoinHandle<()>>,
}

impl ProcessModel {
    pub fn open(
        running: &Arc<RunningProcesses>,
        backend: &Arc<PluginBackend>,
        facts: &ModelFacts<'_>,
        cancel: &CancelFlag,
    ) -> Result<Arc<Self>> {
        let message = facts::model_facts(facts);
        let sequences =
            matches!(facts.config.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_)));
        let label = format!("model {}:{}", facts.name, facts.version);
        let shared = Arc::new(SupervisedModel {
            subject: format!("model '{}' version {}", facts.name, facts.version),
            running: Arc::clone(running),
            backend: Arc::clone(backend),
            handshake: child_handshake(&backend.file, &backend.settings),
            names: message.outputs.iter().map(|output| output.name.clone()).collect(),
            facts: message,
            states: facts::state_positions(facts.signature),
            keeps_sequences: sequences && facts.signature.states.is_empty(),
            limits: backend.limits.for_model(facts.config)?,
            cancel: cancel.clone(),
            inputs: create_arena(&format!("{label} inputs"))?,
            failure: Arc::default(),
            state: Mutex::new(SupervisorState::new()),
            changed: Condvar::new(),
            drain: Mutex::new(GRACE),
            label,
        });
        let (sender, opened) = std::sync::mpsc::channel();
        let of_thread = Arc::clone(&shared);
        // The system kills the child when the thread that started it ends.
        let supervisor = std::thread::Builder::new()
            .name(format!("supervisor {}", shared.label))
            .spawn(move || supervise_child(&of_thread, sender))
            .map_err(|e| Error::internal(format!("{}: no thread: {e}", shared.subject)))?;
        let model =
            Arc::new(Self { align: backend.facts.align, supervisor: Some(supervisor), shared });
        let ended =
            |_| Error::internal(format!("{}: its supervisor thread ended", model.shared.subject));
        opened.recv().map_err(ended)??;
        Ok(model)
    }
}

impl IsolatedModel for ProcessModel {
    fn input_arena(&self) -> Arc<Arena> {
        Arc::clone(&self.shared.inputs)
    }

    fn end_low_priority(&self) {
        if let Some(process) = self.shared.process() {
            process.end_low_priority();
        }
    }

    fn health(&self) -> Arc<Health> {
        let shared: Arc<dyn IsolatedState> = self.shared.clone();
        Health::for_isolated(Arc::clone(&self.shared.failure), Arc::downgrade(&shared))
    }

    fn open_instance(
        self: Arc<Self>,
        facts: &InstanceFacts<'_>,
    ) -> Result<Box<dyn IsolatedInstance>> {
        Ok(Box::new(ProcessInstance::open(&self, facts)?))
    }
}

impl Drop for ProcessModel {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closing = true;
        let sessions = state.sessions.clone();
        drop(state);
        self.shared.changed.notify_all();
        if let Some(process) = self.shared.process() {
            let mut connections = sessions.iter().filter_map(|session| session.connection());
            if connections.any(|connection| !connection.outstanding.is_empty()) {
                // The drain time of the instances has passed.
                process.kill(KillReason::Closing);
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
