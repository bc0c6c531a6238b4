//! The versions of a model that its version policy selects, and their directories.

use trtserver_base::error::{Error, Result};
use trtserver_model_config::version_dirs::VersionDirs;
use trtserver_model_config::version_policy::{SelectedVersions, select_versions};
use trtserver_model_config::{ConfigError, ConfigPart};
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_proto::v2::ModelConfig;

/// What the version policy selects of the directories that there are.
pub(super) fn selected_versions(config: &ModelConfig, found: &VersionDirs) -> SelectedVersions {
    let policy = config.version_policy.clone().unwrap_or_default();
    let existing: Vec<i64> = found.versions.keys().copied().collect();
    select_versions(&policy, &existing)
}

/// The directories of the versions that the version policy selects.
pub(super) fn selected_dirs<'a>(config: &ModelConfig, found: &'a VersionDirs) -> Vec<&'a str> {
    let selected = selected_versions(config, found).versions;
    selected.iter().filter_map(|number| found.versions.get(number).map(String::as_str)).collect()
}

/// The versions that the version policy selects, and the names of their directories; ascending.
pub(super) fn require_versions(
    config: &ModelConfig,
    found: &VersionDirs,
) -> Result<Vec<(i64, String)>, ConfigError> {
    let selected = selected_versions(config, found);
    for missing in &selected.missing {
        tracing::error!(
            "model '{}': version {missing} of its version policy does not exist",
            config.name
        );
    }
    let selected = selected.or_refuse(&config.name);
    let selected = selected.map_err(|e| e.about(ConfigPart::Field("version_policy")))?;
    let dir_name = |number: i64| Some((number, found.versions.get(&number)?.clone()));
    Ok(selected.versions.into_iter().filter_map(dir_name).collect())
}

/// Backends of Triton look for the files of a version in the directory of its number. Its Python
/// backend never returns from a load if there is none.
pub(super) fn expect_bare_versions(
    model: &str,
    backend: &PluginBackend,
    found: &VersionDirs,
) -> Result<()> {
    let mut other = found.versions.iter().filter(|(version, dir)| version.to_string() != **dir);
    match other.next().filter(|_| backend.is_adapted()) {
        None => Ok(()),
        Some((version, dir)) => Err(Error::invalid(format!(
            "version directory '{dir}' of model '{model}' must be called '{version}': backend '{}' looks for its files \
             there",
            backend.facts.name
        ))),
    }
}
