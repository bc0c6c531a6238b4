//! Child processes that serve one control request: backend info, opening a backend, completion of a configuration,
//! recognition of model files.

use super::child_process::{RunningProcesses, spawn};
use super::exit_reason::KillReason;
use super::facts;
use super::messages::{self, ControlResponse, Devices, Empty, Handshake, control_request};
use super::process::ProcessGone;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_plugin_host::backend_facts::{BackendFacts, OpenFacts};
use trtserver_plugin_host::isolation_limits::Limits;
use trtserver_plugin_host::plugin_file::PluginFile;
use trtserver_plugin_host::{CancelFlag, ModelFacts, Patch, ProbeFacts};

/// How long the child may take to exit.
const GRACE: Duration = Duration::from_secs(5);

/// The first message to a child of this backend.
pub fn handshake(file: &PluginFile, settings: &BTreeMap<String, String>) -> Handshake {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let adapted = file.adapted.as_ref().map(|a| messages::Adapted {
        adapter: a.adapter.clone(),
        name: a.name.clone(),
        file: text(&a.file),
    });
    let file = text(&file.library);
    let trtserver_device::DeviceSettings { disabled, pinned_pool, pools } =
        trtserver_device::settings().clone();
    let devices = Devices { disabled, pinned_pool, pools };
    Handshake { file, settings: settings.clone(), log_level: 0, devices, adapted }
}

/// Facts of a backend whose library must not be loaded into this process.
pub fn describe(
    running: &RunningProcesses,
    file: &PluginFile,
    limits: Limits,
) -> Result<BackendFacts> {
    let label = format!("backend '{}'", file.path().display());
    let describe = control_request::Kind::Describe(Empty {});
    let never = CancelFlag::default();
    let response =
        run(running, &label, handshake(file, &BTreeMap::new()), describe, limits, &never)?;
    let info = response.backend.ok_or_else(|| {
        Error::internal(format!("{label}: its process responded without backend info"))
    })?;
    facts::backend(info).map_err(|e| Error::new(e.code, format!("{label}: {e}")))
}

/// Opens the backend in a child and closes it. Returns what the open backend says of itself there.
///
/// # Errors
/// It does not open.
pub fn open(
    running: &RunningProcesses,
    file: &PluginFile,
    settings: &BTreeMap<String, String>,
    limits: Limits,
    cancel: &CancelFlag,
) -> Result<OpenFacts> {
    let label = format!("backend '{}'", file.path().display());
    let open = control_request::Kind::OpenBackend(Empty {});
    let response = run(running, &label, handshake(file, settings), open, limits, cancel)?;
    let info = response.backend.unwrap_or_default();
    let BackendFacts { runtime, instance_kinds, preferred, .. } =
        facts::backend(info).map_err(|e| Error::new(e.code, format!("{label}: {e}")))?;
    Ok(OpenFacts { runtime, instance_kinds, preferred })
}

/// Calls `model_complete` in a child.
pub fn complete(
    running: &RunningProcesses,
    file: &PluginFile,
    settings: &BTreeMap<String, String>,
    limits: Limits,
    facts: &ModelFacts<'_>,
    cancel: &CancelFlag,
) -> Result<Option<Patch>> {
    let limits = limits.of_model(facts.config)?;
    let label = format!("model '{}'", facts.name);
    let complete = control_request::Kind::Complete(facts::model(facts));
    let response = run(running, &label, handshake(file, settings), complete, limits, cancel)?;
    Ok(response.patch.map(facts::patch))
}

/// Calls `model_probe` in a child. Returns the recognised entry, as the child names it.
pub fn probe(
    running: &RunningProcesses,
    file: &PluginFile,
    settings: &BTreeMap<String, String>,
    limits: Limits,
    facts: &ProbeFacts<'_>,
) -> Result<Option<String>> {
    let label = format!("model '{}'", facts.model);
    let probe = control_request::Kind::Probe(facts::probe(facts));
    let never = CancelFlag::default();
    Ok(run(running, &label, handshake(file, settings), probe, limits, &never)?.entry)
}

/// Starts a child, sends `request`, and ends the child.
///
/// # Errors
/// UNAVAILABLE if no process could be started; the error of the request; how the child ended.
fn run(
    children: &RunningProcesses,
    label: &str,
    handshake: Handshake,
    request: control_request::Kind,
    limits: Limits,
    cancel: &CancelFlag,
) -> Result<ControlResponse> {
    let spawned = spawn(children, label, handshake, limits.open);
    let mut running = spawned.map_err(|e| Error::unavailable(e.message))?;
    let process = Arc::clone(&running.process);
    let unneeded = || cancel.is_cancelled().then_some(KillReason::LoadCancelled);
    match process.request(request, &[]).and_then(|pending| pending.wait(limits.open, unneeded)) {
        Ok(ControlResponse { failure: Some(failure), .. }) => {
            process.close(GRACE);
            Err(facts::error(&failure))
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
