//! Child processes as a backend needs them: the interface between this crate and
//! `trtserver-isolation`, which implements it.

use crate::Patch;
use crate::backend::PluginBackend;
use crate::backend_facts::{BackendFacts, OpenFacts};
use crate::descriptors::{InstanceFacts, ModelFacts, ProbeFacts};
use crate::health::Health;
use crate::isolation_limits::IsolationLimits;
use crate::plugin_file::PluginFile;
use std::collections::BTreeMap;
use std::sync::Arc;
use trtserver_base::arena::Arena;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::Result;
use trtserver_plugin_api::abi::extensions::BatchSize;
use trtserver_request::InferRequest;

/// Settings of a backend by name.
pub type BackendSettings = BTreeMap<String, String>;

/// Runs backends and models in child processes.
pub trait ChildProcesses: Send + Sync {
    /// The facts of a plugin file.
    ///
    /// # Errors
    /// The library cannot be loaded, or the child process ended; the text says how.
    fn describe_file(&self, file: &PluginFile, limits: IsolationLimits) -> Result<BackendFacts>;

    /// Opens the backend once, in a child process that then ends.
    ///
    /// # Errors
    /// The backend returns an error, or the child process ended.
    fn open_backend(
        &self,
        file: &PluginFile,
        settings: &BackendSettings,
        limits: IsolationLimits,
        cancel: &CancelFlag,
    ) -> Result<OpenFacts>;

    /// Asks the backend to complete a configuration.
    ///
    /// # Errors
    /// The backend returns an error, or the child process ended.
    fn complete_config(
        &self,
        file: &PluginFile,
        settings: &BackendSettings,
        limits: IsolationLimits,
        facts: &ModelFacts<'_>,
        cancel: &CancelFlag,
    ) -> Result<Option<Patch>>;

    /// Asks the backend which entry of a version directory is a model.
    ///
    /// # Errors
    /// The backend returns an error, or the child process ended.
    fn probe_model(
        &self,
        file: &PluginFile,
        settings: &BackendSettings,
        limits: IsolationLimits,
        facts: &ProbeFacts<'_>,
    ) -> Result<Option<String>>;

    /// Opens a model version in a child process of its own.
    ///
    /// # Errors
    /// The backend returns an error, or the child process ended.
    fn open_model(
        &self,
        backend: &Arc<PluginBackend>,
        facts: &ModelFacts<'_>,
        cancel: &CancelFlag,
    ) -> Result<Arc<dyn IsolatedModel>>;
}

/// An open model version in a child process. Dropping it closes the model and ends the process.
pub trait IsolatedModel: Send + Sync {
    /// The arena of the inputs: network threads receive tensors there, which saves a copy.
    fn input_arena(&self) -> Arc<Arena>;

    /// The load has ended: the process serves at its own priority from now on.
    fn end_low_priority(&self);

    /// Whether the model serves, for lookups that do not keep it open.
    fn health(&self) -> Arc<Health>;

    /// Opens an instance.
    ///
    /// # Errors
    /// The backend returns an error, or the child process ended.
    fn open_instance(
        self: Arc<Self>,
        facts: &InstanceFacts<'_>,
    ) -> Result<Box<dyn IsolatedInstance>>;
}

/// An open instance in a child process. Its methods with a shared reference may be called on any
/// thread.
pub trait IsolatedInstance: Send + Sync {
    /// Closes it in the child while the model stays open. One that has outstanding requests stays
    /// until the model is closed.
    fn close_alone(&mut self);

    /// Calls `lost`, from any thread, whenever the sequence state of this instance is lost.
    fn on_sequences_lost(&self, lost: Box<dyn Fn() + Send + Sync>);

    /// Sends the requests as batch `id`. Each gets a final response, whatever happens to the child.
    /// A thread that must not wait for a child to be restarted leaves that to
    /// [`IsolatedInstance::send_delayed`].
    fn execute(&mut self, id: u64, requests: &mut Vec<InferRequest>, may_wait: bool);

    /// Batches wait for [`IsolatedInstance::send_delayed`].
    fn has_delayed(&self) -> bool;

    /// Sends the batches that a thread that must not wait has left.
    fn send_delayed(&mut self);

    /// Delivers the responses that are there, on the calling thread. If `to_the_end`, polls for a
    /// short time until none is outstanding.
    fn poll(&self, to_the_end: bool);

    /// The sizes that it is prepared for.
    fn batch_sizes(&self) -> &[BatchSize];

    /// Time that the child took for the last execution; 0 before the first.
    fn execution_ns(&self) -> u64;
}
