//! Profile, model control, repository index.

use trtserver_base::error::{Error, Result};
use trtserver_device::profiler::ProfilerCommand;
use trtserver_models::lifecycle::{LoadError, LoadOverrides, check_model_name};
use trtserver_proto::v1::ModelRepositoryIndex;
use trtserver_proto::v1::model_repository_index::ModelEntry;
use trtserver_wire::context::{FrontendContext, list_repository};

/// Starts or stops the CUDA profiler (docs/protocol/v1.md §3.5).
pub async fn control_profiler(ctx: &FrontendContext, command: &str) -> Result<()> {
    ctx.require_ready()?;
    if !ctx.settings.allow_profiling {
        return Err(Error::unsupported("Profile API not enabled"));
    }
    let (profiler, done) = match command {
        "start" => (ProfilerCommand::Start, "started"),
        "stop" => (ProfilerCommand::Stop, "stopped"),
        _ => return Err(Error::invalid(format!("Unknown profile command '{command}'"))),
    };
    // The profiling tool may take its time.
    let gpus = tokio::task::spawn_blocking(move || profiler.apply()).await;
    match gpus.unwrap_or_else(|e| Err(Error::internal(format!("profiling failed: {e}"))))? {
        0 => tracing::warn!(
            "profile {command}: this process uses no GPU, there is nothing to profile"
        ),
        gpus => tracing::info!("the CUDA profiler is {done} on {gpus} GPUs"),
    }
    Ok(())
}

/// A change of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Load,
    Unload,
}

impl Change {
    /// In the audit line.
    pub fn audited(self) -> &'static str {
        match self {
            Self::Load => "load model",
            Self::Unload => "unload model",
        }
    }
}

/// Loads or unloads a model; returns when that is complete.
pub async fn control_model(ctx: &FrontendContext, name: &str, change: Change) -> Result<()> {
    ctx.refuse_when_exiting()?;
    let control = ctx.control()?;
    match change {
        Change::Load => {
            let loaded = control.load(name, LoadOverrides::default()).await;
            let is_tracked =
                || ctx.models.get(name).is_some_and(|model| !model.versions.is_empty());
            loaded.map_err(|e| not_loaded(name, e, is_tracked()))
        }
        Change::Unload => {
            check_model_name(name)?;
            control.unload(name, false).await.map_err(|e| not_loaded(name, e, true))
        }
    }
}

/// The texts of v1.x (docs/protocol/v1.md §6.7). The reason is in the log, that of a version also
/// in the status. `is_tracked`: the model has had versions.
fn not_loaded(name: &str, e: LoadError, is_tracked: bool) -> Error {
    let why = match e {
        // v1.x looks for versions first.
        LoadError::NotPolled(_) | LoadError::Refused(_) if !is_tracked => {
            "no version is available".to_owned()
        }
        // In TRTIS, polling found invalid configurations too.
        LoadError::NotPolled(_) | LoadError::Refused(_) => {
            "failed to poll from model repository".to_owned()
        }
        LoadError::Internal(why) => why,
        LoadError::NoVersion | LoadError::Unreadable(_) => "no version is available".to_owned(),
        LoadError::Versions(failed) => {
            let numbers: Vec<String> = failed.iter().map(|(n, _)| n.to_string()).collect();
            format!("versions that are not available: {}", numbers.join(","))
        }
        LoadError::Stopping => return Error::unavailable("Server exiting"),
    };
    Error::internal(format!("failed to load '{name}', {why}"))
}

/// All models of the repositories, including unserved ones and those with an invalid configuration.
pub async fn repository_index(ctx: &FrontendContext) -> Result<ModelRepositoryIndex> {
    ctx.refuse_when_exiting()?;
    let models = list_repository(ctx)
        .await?
        .into_iter()
        .map(|listed| ModelEntry { name: listed.name().to_owned() });
    Ok(ModelRepositoryIndex { models: models.collect() })
}
