//! Completes a configuration from the model's directory: name, platform, backend, model file.
//!
//! Done even with `--strict-model-config=true`, because it does not need the model to be opened.

use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

use super::ConfigError;
use super::platforms::{self, ENSEMBLE, Platforms};

/// Completes `config` of the model in the directory `dir_name`. `versions` lists the entries of its version directories.
///
/// A platform implies its backend. A backend implies its platform if it has only one, or if the configured file name or
/// the existing files select one. If neither is given, both follow from the configured file name, else from the existing
/// files; else the backend is the part of the model's name after the first dot. The platform stays empty for a backend
/// that declares none.
pub fn complete(
    config: &mut ModelConfig,
    dir_name: &str,
    versions: &[(i64, Vec<String>)],
    platforms: &dyn Platforms,
) -> Result<(), ConfigError> {
    if config.name.is_empty() {
        config.name = dir_name.to_owned();
    } else if config.name != dir_name {
        return Err(ConfigError::invalid(format!(
            "unexpected directory name '{dir_name}' for model '{}', directory name must equal \
             model name",
            config.name
        )));
    }
    if config.platform == ENSEMBLE {
        return Ok(());
    }
    config.platform = platforms::canonical(&config.platform, platforms).to_owned();
    match (config.backend.is_empty(), config.platform.is_empty()) {
        (false, false) => check_pair(config, platforms)?,
        (true, false) => match platforms.backend_of(&config.platform) {
            Some(backend) => config.backend = backend,
            None => return Err(platforms::undeclared(&config.platform, &config.name, platforms)),
        },
        (false, true) => {
            check_installed(config, platforms)?;
            config.platform = platform_of(config, versions, platforms);
        }
        (true, true) => detect(config, versions, platforms)?,
    }
    if config.default_model_filename.is_empty() {
        let by_platform = platforms.default_file(&config.platform);
        let file = by_platform.or_else(|| platforms.default_file(&config.backend));
        config.default_model_filename = file.unwrap_or_default();
    }
    Ok(())
}

fn check_installed(config: &ModelConfig, platforms: &dyn Platforms) -> Result<(), ConfigError> {
    match platforms.installed_backends().contains(&config.backend) {
        true => Ok(()),
        false => Err(platforms::not_installed(&config.backend, &config.name, platforms)),
    }
}

/// Platform and backend are given: the backend must be installed and serve the platform.
fn check_pair(config: &ModelConfig, platforms: &dyn Platforms) -> Result<(), ConfigError> {
    check_installed(config, platforms)?;
    let served = platforms.platforms_of(&config.backend);
    let of_other = platforms.backend_of(&config.platform).is_some_and(|b| b != config.backend);
    let not_served = !served.is_empty() && !served.contains(&config.platform);
    // Two backends may declare one platform; the configuration chooses between them by naming the backend.
    if not_served || (served.is_empty() && of_other) {
        return Err(ConfigError::invalid(format!(
            "unexpected 'platform' and 'backend' pair, got:{}, {} for {}",
            config.platform, config.backend, config.name
        )));
    }
    Ok(())
}

/// The platform among those of the given backend; empty if it is ambiguous.
fn platform_of(
    config: &ModelConfig,
    versions: &[(i64, Vec<String>)],
    platforms: &dyn Platforms,
) -> String {
    let served = platforms.platforms_of(&config.backend);
    if let [only] = served.as_slice() {
        return only.clone();
    }
    let files: Vec<_> = served
        .into_iter()
        .filter_map(|platform| Some((platforms.default_file(&platform)?, platform)))
        .collect();
    let by_name = by_filename(&config.default_model_filename, &files);
    by_name.or_else(|| by_existing_file(config, versions, &files)).cloned().unwrap_or_default()
}

/// Neither platform nor backend is given.
fn detect(
    config: &mut ModelConfig,
    versions: &[(i64, Vec<String>)],
    platforms: &dyn Platforms,
) -> Result<(), ConfigError> {
    // Default file of each candidate: a backend with one of its platforms, or without a platform.
    let mut files = Vec::new();
    for backend in platforms.installed_backends() {
        for platform in platforms.platforms_of(&backend) {
            if let Some(file) = platforms.default_file(&platform) {
                files.push((file, (backend.clone(), platform)));
            }
        }
        if let Some(file) = platforms.default_file(&backend) {
            files.push((file, (backend, String::new())));
        }
    }
    let by_name = by_filename(&config.default_model_filename, &files);
    let candidate = by_name.or_else(|| by_existing_file(config, versions, &files));
    if let Some((backend, platform)) = candidate {
        config.backend = backend.clone();
        config.platform = platform.clone();
        return Ok(());
    }
    let name = &config.name;
    if let Some((_, backend)) = name.split_once('.').filter(|(_, backend)| !backend.is_empty()) {
        config.backend = backend.to_owned();
        check_installed(config, platforms)?;
        if config.default_model_filename.is_empty() {
            config.default_model_filename = format!("model.{}", config.backend);
        }
        return Ok(());
    }
    let recognised = versions.iter().find_map(|(version, entries)| {
        platforms::recognised(entries, platforms).map(|(file, backend)| (version, file, backend))
    });
    if matches!(config.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_))) {
        return Err(ConfigError::invalid(format!(
            "ensemble scheduling cannot be set for model '{name}' whose platform is not ensemble: it \
             needs platform: \"ensemble\""
        )));
    }
    let hint = match recognised {
        Some((version, file, backend)) => format!(
            " Version {version} holds '{file}', which needs the backend '{backend}', which is not \
             installed; {}.",
            platforms::installed(platforms)
        ),
        None => String::new(),
    };
    let message = format!(
        "Invalid model name: Could not determine backend for model '{name}' with no backend in \
         model configuration. Expected model name of the form 'model.<backend_name>'.{hint}"
    );
    Err(if hint.is_empty() {
        ConfigError::invalid(message)
    } else {
        ConfigError::unsupported(message)
    })
}

/// The candidate whose default file is `file`, else the only one whose default file has the same extension.
fn by_filename<'a, T>(file: &str, candidates: &'a [(String, T)]) -> Option<&'a T> {
    if let Some((_, exact)) = candidates.iter().find(|(default, _)| default == file) {
        return Some(exact);
    }
    let (_, extension) = file.rsplit_once('.')?;
    let same = |default: &str| default.rsplit_once('.').is_some_and(|(_, e)| e == extension);
    let mut same = candidates.iter().filter(|(default, _)| same(default));
    match (same.next(), same.next()) {
        (Some((_, only)), None) => Some(only),
        _ => None,
    }
}

/// The first candidate whose default file exists, in the first version directory that has any. `None` if the
/// configuration names a file.
fn by_existing_file<'a, T>(
    config: &ModelConfig,
    versions: &[(i64, Vec<String>)],
    candidates: &'a [(String, T)],
) -> Option<&'a T> {
    if !config.default_model_filename.is_empty() {
        return None;
    }
    versions.iter().find_map(|(_, entries)| {
        candidates.iter().find(|(default, _)| entries.contains(default)).map(|(_, c)| c)
    })
}

#[cfg(test)]
#[path = "complete_tests.rs"]
mod tests;
