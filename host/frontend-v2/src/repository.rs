//! Model repository extension: index, loading and unloading (docs/protocol/v2.md §2.15).

use bytes::Bytes;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_model_config::MAX_BYTES;
use trtserver_models::Model;
use trtserver_models::lifecycle::{
    AMBIGUOUS, IndexEntry, LoadError, LoadOverrides, ModelControl, check_model_name,
};
use trtserver_proto::json::parse;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::repository_index_response::ModelIndex;
use trtserver_wire::context::{FrontendContext, list_repository};

/// The load parameter that replaces the configuration file.
pub const CONFIG: &str = "config";
/// Name prefix of load parameters with a file of the model.
pub const FILE: &str = "file:";
/// The unload parameter.
pub const DEPENDENTS: &str = "unload_dependents";

/// Every version of every model, or only those that are ready.
pub async fn repository_index(
    ctx: &FrontendContext,
    repository: &str,
    only_ready: bool,
) -> Result<Vec<ModelIndex>> {
    only_repository(repository)?;
    Ok(list_repository(ctx).await?.iter().flat_map(|listed| entries(listed, only_ready)).collect())
}

/// Checks that models may be loaded and unloaded, before anything else is checked.
pub fn expect_allowed(ctx: &FrontendContext, repository: &str) -> Result<Arc<ModelControl>> {
    only_repository(repository)?;
    ctx.control()
}

/// The parameters of a load request.
#[derive(Default)]
pub struct LoadParameters {
    /// JSON text of a configuration to use instead of the file's.
    pub config: Option<String>,
    /// Path in the model's directory, and content.
    pub files: Vec<(String, Bytes)>,
}

impl LoadParameters {
    /// The file of the parameter `key`, which is `file:` and a path.
    ///
    /// # Errors
    /// The path leaves the model's directory.
    pub fn add_file(&mut self, model: &str, key: &str, content: Bytes) -> Result<()> {
        let path = key.strip_prefix(FILE).unwrap_or(key);
        if !LoadOverrides::is_file_path(path) {
            return Err(not_polled(
                model,
                &format!(
                    "load parameter '{key}': expected file:VERSION/PATH with a path below the model's directory"
                ),
            ));
        }
        self.files.push((path.to_owned(), content));
        Ok(())
    }
}

/// Loads a model.
pub async fn load_model(
    control: &Arc<ModelControl>,
    name: &str,
    parameters: LoadParameters,
) -> Result<()> {
    let LoadParameters { config, files } = parameters;
    if name.trim().is_empty() {
        let why = "Model name cannot be empty. Please enter a valid name to deploy.";
        return Err(Error::invalid(why));
    }
    check_model_name(name)?;
    if config.is_none() && !files.is_empty() {
        // As in Triton: the configuration in the repository belongs to other files.
        let why = format!(
            "the load request has files but no parameter '{CONFIG}', which is required with files"
        );
        return Err(not_polled(name, &why));
    }
    let config = config.as_deref().map(parse_override).transpose();
    let config = config.map_err(|why| not_polled(name, &why))?;
    let overrides = LoadOverrides { config, files };
    control.load(name, overrides).await.map_err(|e| not_loaded(name, e))
}

/// The configuration that a load request has instead of the file's.
fn parse_override(text: &str) -> Result<ModelConfig, String> {
    let start = format!("Invalid config override: parameter '{CONFIG}'");
    let size = text.len();
    if size as u64 > MAX_BYTES {
        return Err(format!("{start} has {size} bytes, at most {MAX_BYTES} are allowed"));
    }
    parse::<ModelConfig>(text).map_err(|e| format!("{start}:{e}"))
}

/// Refuses a load request before the repository is read, in the log too. Triton reports what is
/// wrong with a request as a failed poll.
fn not_polled(name: &str, why: &str) -> Error {
    let text = format!("failed to load '{name}', failed to poll from model repository: {why}");
    tracing::error!("{text}");
    Error::internal(text)
}

/// Unloads a model. An unknown model counts as unloaded.
pub async fn unload_model(control: &Arc<ModelControl>, name: &str, dependents: bool) -> Result<()> {
    check_model_name(name)?;
    control.unload(name, dependents).await.map_err(|e| not_loaded(name, e))
}

/// Repositories cannot be selected by name.
fn only_repository(name: &str) -> Result<()> {
    match name {
        "" => Ok(()),
        _ => Err(Error::unsupported("'repository_name' specification is not supported")),
    }
}

fn not_loaded(name: &str, e: LoadError) -> Error {
    let lines = match e {
        LoadError::NotPolled(_) | LoadError::Unreadable(_) => {
            let why = "failed to poll from model repository";
            return Error::internal(format!("failed to load '{name}', {why}"));
        }
        LoadError::NoVersion => {
            return Error::internal(format!("failed to load '{name}', no version is available"));
        }
        LoadError::Internal(why) => {
            return Error::internal(format!("failed to load '{name}', {why}"));
        }
        LoadError::Stopping => return Error::unavailable("Server not ready"),
        LoadError::Refused(e) => e.message,
        LoadError::Versions(failed) => {
            let one = |(number, e): &(i64, Error)| {
                format!("version {number} is at UNAVAILABLE state: {}", e.message)
            };
            failed.iter().map(one).collect::<Vec<_>>().join(";")
        }
    };
    Error::invalid(format!("load failed for model '{name}': {lines}\n"))
}

fn entries(listed: &IndexEntry, only_ready: bool) -> Vec<ModelIndex> {
    let name = listed.name().to_owned();
    let unavailable = |reason: &str| ModelIndex {
        name: name.clone(),
        state: "UNAVAILABLE".into(),
        reason: reason.into(),
        ..Default::default()
    };
    if listed.ambiguous && !listed.model.as_ref().is_some_and(|model| model.is_loaded()) {
        return vec![unavailable(AMBIGUOUS)];
    }
    let Some(model) = &listed.model else {
        return if only_ready { vec![] } else { vec![ModelIndex { name, ..Default::default() }] };
    };
    if let Some(refusal) = &model.refusal {
        return if only_ready && refusal != AMBIGUOUS {
            vec![]
        } else {
            vec![unavailable(refusal)]
        };
    }
    versions(model).filter(|e| !only_ready || e.state == "READY").collect()
}

fn versions(model: &Model) -> impl Iterator<Item = ModelIndex> {
    model.versions.values().map(|version| {
        let (state, reason) = model.version_status(version);
        ModelIndex {
            name: model.name.to_string(),
            version: version.number.to_string(),
            state: state.name().to_owned(),
            reason,
        }
    })
}
