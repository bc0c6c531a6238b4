//! Fills what a configuration leaves out but its directory tells: name, platform, backend, file.
//!
//! Always done, strict configuration or not, because none of it needs the model to be opened.

use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

use super::ConfigError;
use super::platforms::{self, ENSEMBLE, Platforms};

/// Completes `config` of the model in the directory `dir_name`, whose version directories hold the
/// entries listed in `versions`.
///
/// A platform implies its backend. A backend implies its platform when it has only one, or when the
/// file name or the files found single one out. Where neither is given, both follow from the file
/// name, else from the files found, else the backend is what follows the first dot in the model's
/// name. The platform stays empty for a backend that declares none.
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
        (false, false) => agree(config, platforms)?,
        (true, false) => match platforms.backend_of(&config.platform) {
            Some(backend) => config.backend = backend,
            None => return Err(platforms::unclaimed(&config.platform, &config.name, platforms)),
        },
        (false, true) => {
            installed(config, platforms)?;
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

fn installed(config: &ModelConfig, platforms: &dyn Platforms) -> Result<(), ConfigError> {
    match platforms.known_backends().contains(&config.backend) {
        true => Ok(()),
        false => Err(platforms::not_installed(&config.backend, &config.name, platforms)),
    }
}

/// Both are given: the backend must be there and must not contradict the platform.
fn agree(config: &ModelConfig, platforms: &dyn Platforms) -> Result<(), ConfigError> {
    installed(config, platforms)?;
    let served = platforms.platforms_of(&config.backend);
    let elsewhere = platforms.backend_of(&config.platform).is_some_and(|b| b != config.backend);
    let unserved = !served.is_empty() && !served.contains(&config.platform);
    // Two plugins may claim one platform: naming the backend decides between them.
    if unserved || (served.is_empty() && elsewhere) {
        return Err(ConfigError::invalid(format!(
            "unexpected 'platform' and 'backend' pair, got:{}, {} for {}",
            config.platform, config.backend, config.name
        )));
    }
    Ok(())
}

/// The platform among those of the given backend, empty when nothing singles one out.
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
    let by_name = named(&config.default_model_filename, &files);
    by_name.or_else(|| found(config, versions, &files)).cloned().unwrap_or_default()
}

/// Neither is given.
fn detect(
    config: &mut ModelConfig,
    versions: &[(i64, Vec<String>)],
    platforms: &dyn Platforms,
) -> Result<(), ConfigError> {
    // Each candidate is a backend with one of its platforms, or with none.
    let mut files = Vec::new();
    for backend in platforms.known_backends() {
        for platform in platforms.platforms_of(&backend) {
            if let Some(file) = platforms.default_file(&platform) {
                files.push((file, (backend.clone(), platform)));
            }
        }
        if let Some(file) = platforms.default_file(&backend) {
            files.push((file, (backend, String::new())));
        }
    }
    let by_name = named(&config.default_model_filename, &files);
    if let Some((backend, platform)) = by_name.or_else(|| found(config, versions, &files)) {
        config.backend = backend.clone();
        config.platform = platform.clone();
        return Ok(());
    }
    let name = &config.name;
    if let Some((_, backend)) = name.split_once('.').filter(|(_, backend)| !backend.is_empty()) {
        config.backend = backend.to_owned();
        installed(config, platforms)?;
        if config.default_model_filename.is_empty() {
            config.default_model_filename = format!("model.{}", config.backend);
        }
        return Ok(());
    }
    let missing = versions.iter().find_map(|(version, entries)| {
        platforms::recognised(entries, platforms).map(|(file, backend)| (version, file, backend))
    });
    if matches!(config.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_))) {
        return Err(ConfigError::invalid(format!(
            "ensemble scheduling cannot be set for model '{name}' whose platform is not ensemble: it \
             needs platform: \"ensemble\""
        )));
    }
    let why = match missing {
        Some((version, file, backend)) => format!(
            " Version {version} holds '{file}', which needs the backend '{backend}', not \
             installed; {}.",
            platforms::installed(platforms)
        ),
        None => String::new(),
    };
    let message = format!(
        "Invalid model name: Could not determine backend for model '{name}' with no backend in \
         model configuration. Expected model name of the form 'model.<backend_name>'.{why}"
    );
    Err(if why.is_empty() {
        ConfigError::invalid(message)
    } else {
        ConfigError::unsupported(message)
    })
}

/// The candidate whose default file is `file`, else the only one whose default file ends alike.
fn named<'a, T>(file: &str, candidates: &'a [(String, T)]) -> Option<&'a T> {
    if let Some((_, exact)) = candidates.iter().find(|(default, _)| default == file) {
        return Some(exact);
    }
    let (_, ending) = file.rsplit_once('.')?;
    let alike = |default: &str| default.rsplit_once('.').is_some_and(|(_, e)| e == ending);
    let mut alike = candidates.iter().filter(|(default, _)| alike(default));
    match (alike.next(), alike.next()) {
        (Some((_, only)), None) => Some(only),
        _ => None,
    }
}

/// The first candidate whose default file lies in the first version directory that has any. A
/// file name in the configuration speaks for itself: then the listing is not asked.
fn found<'a, T>(
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
