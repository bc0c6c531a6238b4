//! Child processes that serve one control request: backend info, opening a backend, completion of a
//! configuration, recognition of model files.

use super::child_process::{RunningProcesses, spawn_child};
use super::exit_reason::KillReason;
use super::facts;
use super::messages::{
    self, ControlResponse, DeviceFacts, EmptyMessage, Handshake, control_request,
};
use super::process::ProcessGone;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_plugin_host::backend_facts::{BackendFacts, OpenFacts};
use trtserver_plugin_host::isolation_limits::IsolationLimits;
use trtserver_plugin_host::plugin_file::PluginFile;
use trtserver_plugin_host::{CancelFlag, ModelFacts, Patch, ProbeFacts};

/// How long the child may take to exit.
const GRACE: Duration = Duration::from_secs(5);

/// The first message to a child of this backend.
pub fn child_handshake(file: &PluginFile, settings: &BTreeMap<String, String>) -> Handshake {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let adapted = file.adapted.as_ref().map(|a| messages::AdaptedMessage {
        adapter: a.adapter.clone(),
        name: a.name.clone(),
        file: text(&a.file),
    });
    let file = text(&file.library);
    let trtserver_device::DeviceSettings { disabled, pinned_pool, pools } =
        trtserver_device::settings().clone();
    let devices = DeviceFacts { disabled, pinned_pool, pools };
    Handshake { file, settings: settings.clone(), log_level: 0, devices, adapted }
}

/// Facts of a backend whose library must not be loaded into this process.
pub fn describe_backend(
    running: &RunningProcesses,
    file: &PluginFile,
    limits: IsolationLimits,
) -> Result<BackendFacts> {
    let label = format!("backend '{}'", file.path().display());
    let describe = control_request::RequestKind::Describe(EmptyMessage {});
    let never = CancelFlag::default();
    let response = run_request(
        running,
        &label,
        child_handshake(file, &BTreeMap::new()),
        describe,
        limits,
        &never,
    )?;
    let info = response.backend.ok_or_else(|| {
        Error::internal(format!("{label}: its process responded without backend info"))
    })?;
    facts::to_backend_facts(info).map_err(|e| Error::new(e.code, format!("{label}: {e}")))
}

/// Opens the backend in a child and closes it. Returns what the open backend says of itself there.
///
/// # Errors
/// It does not open.
pub fn open_backend(
    running: &RunningProcesses,
    file: &PluginFile,
    settings: &BTreeMap<String, String>,
    limits: IsolationLimits,
    cancel: &CancelFlag,
) -> Result<OpenFacts> {
    let label = format!("backend '{}'", file.path().display());
    let open = control_request::RequestKind::OpenBackend(EmptyMessage {});
    let response =
        run_request(running, &label, child_handshake(file, settings), open, limits, cancel)?;
    let info = response.backend.unwrap_or_default();
    let BackendFacts { runtime, instance_kinds, preferred, .. } =
        facts::to_backend_facts(info).map_err(|e| Error::new(e.code, format!("{label}: {e}")))?;
    Ok(OpenFacts { runtime, instance_kinds, preferred })
}

/// Calls `model_complete` in a child.
pub fn complete_config(
    running: &RunningProcesses,
    file: &PluginFile,
    settings: &BTreeMap<String, String>,
    limits: IsolationLimits,
    facts: &ModelFacts<'_>,
    cancel: &CancelFlag,
) -> Result<Option<Patch>> {
    let limits = limits.for_model(facts.config)?;
    let label = format!("model '{}'", facts.name);
    let complete = control_request::RequestKind::Complete(facts::model_facts(facts));
    let response =
        run_request(running, &label, child_handshake(file, settings), complete, limits, cancel)?;
    Ok(response.patch.map(facts::config_patch))
}

/// Calls `model_probe` in a child. Returns the recognised entry, as the child names it.
pub fn probe_model(
    running: &RunningProcesses,
    file: &PluginFile,
    settings: &BTreeMap<String, String>,
    limits: IsolationLimits,
    facts: &ProbeFacts<'_>,
) -> Result<Option<String>> {
    let label = format!("model '{}'", facts.model);
    let probe = control_request::RequestKind::Probe(facts::probe_facts(facts));
    let never = CancelFlag::default();
    Ok(run_request(running, &label, child_handshake(file, settings), probe, limits, &never)?.entry)
}

/// Starts a child, sends `request`, and ends the child.
///
/// # Errors
/// UNAVAILABLE if no process could be started; the error of the request; how the child ended.
fn run_request(
    children: &RunningProcesses,
    label: &str,
    handshake: Handshake,
    request: control_request::RequestKind,
    limits: IsolationLimits,
    cancel: &CancelFlag,
) -> Result<ControlResponse> {
    let spawned = spawn_child(children, label, handshake, limits.open);
    let mut running = spawned.map_err(|e| Error::unavailable(e.message))?;
    let process = Arc::clone(&running.process);
    let unneeded = || cancel.is_cancelled().then_some(KillReason::LoadCancelled);
    match process.request(request, &[]).and_then(|pending| pending.wait(limits.open, unneeded)) {
        Ok(ControlResponse { failure: Some(failure), .. }) => {
            process.close(GRACE);
            Err(facts::failure_error(&failure))
        }
        Ok(response) => {
            process.close(GRACE);
            Ok(response)
        }
        Err(ProcessGone) => {
            Err(Error::internal(format!("{label}: its process {}", running.reap().text())))
        }
    }
}
