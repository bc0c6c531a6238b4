//! Child processes as the plugin host sees them.

use crate::child_process::RunningProcesses;
use crate::model::ProcessModel;
use crate::one_shot;
use std::sync::Arc;
use trtserver_base::error::Result;
use trtserver_base::timer::DeadlineTimer;
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::backend_facts::{BackendFacts, OpenFacts};
use trtserver_plugin_host::child_processes::{BackendSettings, ChildProcesses, IsolatedModel};
use trtserver_plugin_host::host_api::metric;
use trtserver_plugin_host::isolation_limits::IsolationLimits;
use trtserver_plugin_host::{CancelFlag, ModelFacts, Patch, PluginFile, ProbeFacts};

/// Starts child processes of this program, `trtserver plugin-host`.
pub struct ProcessLauncher {
    running: Arc<RunningProcesses>,
}

impl Default for ProcessLauncher {
    fn default() -> Self {
        let running = Arc::<RunningProcesses>::default();
        metric::add_source(Arc::downgrade(&running) as _);
        Self { running }
    }
}

impl ProcessLauncher {
    /// Log lines that a process may not write are counted in the log some seconds later, by this
    /// timer.
    pub fn use_timer(&self, timer: &'static DeadlineTimer) {
        self.running.use_timer(timer);
    }

    /// Sends the log level of backends to all running children.
    pub fn send_log_level(&self, level: u32) {
        self.running.send_log_level(level);
    }
}

impl ChildProcesses for ProcessLauncher {
    fn describe_file(&self, file: &PluginFile, limits: IsolationLimits) -> Result<BackendFacts> {
        one_shot::describe_backend(&self.running, file, limits)
    }

    fn open_backend(
        &self,
        file: &PluginFile,
        settings: &BackendSettings,
        limits: IsolationLimits,
        cancel: &CancelFlag,
    ) -> Result<OpenFacts> {
        one_shot::open_backend(&self.running, file, settings, limits, cancel)
    }

    fn complete_config(
        &self,
        file: &PluginFile,
        settings: &BackendSettings,
        limits: IsolationLimits,
        facts: &ModelFacts<'_>,
        cancel: &CancelFlag,
    ) -> Result<Option<Patch>> {
        one_shot::complete_config(&self.running, file, settings, limits, facts, cancel)
    }

    fn probe_model(
        &self,
        file: &PluginFile,
        settings: &BackendSettings,
        limits: IsolationLimits,
        facts: &ProbeFacts<'_>,
    ) -> Result<Option<String>> {
        one_shot::probe_model(&self.running, file, settings, limits, facts)
    }

    fn open_model(
        &self,
        backend: &Arc<PluginBackend>,
        facts: &ModelFacts<'_>,
        cancel: &CancelFlag,
    ) -> Result<Arc<dyn IsolatedModel>> {
        Ok(ProcessModel::open(&self.running, backend, facts, cancel)?)
    }
}
