//! Completes a configuration from the model's directory: name, platform, backend, model file.
//!
//! Done even with `--strict-model-config=true`, because it does not need the model to be opened;
//! but only without it the backends are asked which files they recognise.

use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

use super::detect::{
    DetectionResult, FileProbe, PlatformCandidate, VersionListing, by_filename, detect_platform,
    list_backend_candidates, list_candidates, select_candidates,
};
use super::platforms::{self, ENSEMBLE, PlatformDirectory};
use super::{ConfigError, ConfigPart};

/// Completes `config` of the model in the directory `dir_name`. With `probe`, backends are asked
/// about files.
///
/// A platform implies its backend. A backend implies its platform if it has only one, or if the
/// configured file name or the existing files select one. If neither is given, both follow from the
/// configured file name, else from the existing files; else the backend is the part of the model's
/// name after the first dot. The platform stays empty for a backend that declares none. The model
/// file is the platform's default file; if no version has it, the one that the backend recognises.
pub fn complete_config(
    config: &mut ModelConfig,
    dir_name: &str,
    versions: &[VersionListing],
    platforms: &dyn PlatformDirectory,
    probe: Option<&dyn FileProbe>,
) -> Result<(), ConfigError> {
    if config.name.is_empty() {
        config.name = dir_name.to_owned();
    } else if config.name != dir_name {
        return Err(ConfigError::invalid(format!(
            "unexpected directory name '{dir_name}' for model '{}', directory name must equal \
             model name",
            config.name
        ))
        .about(ConfigPart::Field("name")));
    }
    if config.platform == ENSEMBLE {
        return Ok(());
    }
    config.platform = platforms::canonical_platform(&config.platform, platforms).to_owned();
    let completion = ConfigCompletion {
        versions,
        selected: select_candidates(config, versions),
        platforms,
        probe,
    };
    let about = |field| move |e: ConfigError| e.about(ConfigPart::Field(field));
    match (config.backend.is_empty(), config.platform.is_empty()) {
        (false, false) => check_pair(config, platforms).map_err(about("backend"))?,
        (true, false) => completion.backend(config).map_err(about("platform"))?,
        (false, true) => {
            check_installed(config, platforms).map_err(about("backend"))?;
            completion.platform(config).map_err(about("backend"))?;
        }
        (true, true) => completion.platform_and_backend(config)?,
    }
    completion.file(config)
}

fn check_installed(
    config: &ModelConfig,
    platforms: &dyn PlatformDirectory,
) -> Result<(), ConfigError> {
    match platforms.installed_backends().contains(&config.backend) {
        true => Ok(()),
        false => Err(platforms::not_installed(&config.backend, &config.name, platforms)),
    }
}

/// Platform and backend are given: the backend must be installed and serve the platform.
fn check_pair(config: &ModelConfig, platforms: &dyn PlatformDirectory) -> Result<(), ConfigError> {
    check_installed(config, platforms)?;
    let served = platforms.list_platforms(&config.backend);
    let serving = platforms::serving_backend(&config.platform, platforms);
    let of_other = serving.is_some_and(|backend| backend != config.backend);
    let not_served = !served.is_empty() && !served.contains(&config.platform);
    // Two backends may declare one platform; the configuration chooses between them by naming the
    // backend. One that declares none and is not Triton's own serves each, as in Triton.
    let of_triton = served.is_empty() && platforms::is_backend_of_triton(&config.backend);
    if not_served || (of_triton && of_other) {
        return Err(ConfigError::invalid(format!(
            "unexpected 'platform' and 'backend' pair, got:{}, {} for {}",
            config.platform, config.backend, config.name
        )));
    }
    Ok(())
}

/// What a configuration is completed from.
struct ConfigCompletion<'a> {
    versions: &'a [VersionListing],
    /// The versions that the version policy selects.
    selected: Vec<&'a VersionListing>,
    platforms: &'a dyn PlatformDirectory,
    probe: Option<&'a dyn FileProbe>,
}

impl ConfigCompletion<'_> {
    fn detect(
        &self,
        config: &ModelConfig,
        among: &[PlatformCandidate],
    ) -> Result<DetectionResult, ConfigError> {
        detect_platform(config, &self.selected, among, self.probe)
    }

    /// The platform is given. As in TRTIS, an unknown one is replaced by the detected one.
    fn backend(&self, config: &mut ModelConfig) -> Result<(), ConfigError> {
        if let Some(backend) = platforms::serving_backend(&config.platform, self.platforms) {
            config.backend = backend;
            return Ok(());
        }
        let refused =
            platforms::undeclared_platform(&config.platform, &config.name, self.platforms);
        if self.probe.is_none() || platforms::is_well_known(&config.platform) {
            return Err(refused);
        }
        let detected = self.detect(config, &list_candidates(self.platforms))?;
        let Some((candidate, file)) = detected.found else {
            return Err(with_reasons(refused, &detected.reasons));
        };
        tracing::warn!(
            "model '{}': the unknown platform '{}' is replaced by the detected platform '{}'",
            config.name,
            config.platform,
            candidate.platform
        );
        apply_candidate(config, candidate, file);
        Ok(())
    }

    /// The backend is given. The platform stays empty if it is ambiguous.
    fn platform(&self, config: &mut ModelConfig) -> Result<(), ConfigError> {
        let served = list_backend_candidates(&config.backend, self.platforms);
        if let [only] = served.as_slice() {
            config.platform = only.platform.clone();
        } else if let Some(named) = by_filename(&config.default_model_filename, &served) {
            config.platform = named.platform.clone();
        } else {
            let detected = self.detect(config, &served)?;
            if let Some((candidate, file)) = detected.found {
                apply_candidate(config, candidate, file);
            } else if !detected.reasons.is_empty() {
                return Err(with_reasons(
                    ConfigError::invalid(format!(
                        "must specify platform for model '{}': none of backend '{}' is recognised",
                        config.name, config.backend
                    )),
                    &detected.reasons,
                ));
            }
        }
        Ok(())
    }

    /// Neither is given.
    fn platform_and_backend(&self, config: &mut ModelConfig) -> Result<(), ConfigError> {
        let candidates = list_candidates(self.platforms);
        if let Some(named) = by_filename(&config.default_model_filename, &candidates) {
            config.backend = named.backend.clone();
            config.platform = named.platform.clone();
            return Ok(());
        }
        let detected = self.detect(config, &candidates)?;
        if let Some((candidate, file)) = detected.found {
            apply_candidate(config, candidate, file);
            return Ok(());
        }
        let name = &config.name;
        if let Some((_, backend)) = name.split_once('.').filter(|(_, backend)| !backend.is_empty())
        {
            config.backend = backend.to_owned();
            check_installed(config, self.platforms)?;
            if config.default_model_filename.is_empty() {
                config.default_model_filename = format!("model.{}", config.backend);
            }
            return Ok(());
        }
        if matches!(config.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_))) {
            return Err(ConfigError::invalid(format!(
                "ensemble scheduling cannot be set for model '{name}' whose platform is not ensemble: it \
                 needs platform: \"ensemble\""
            )));
        }
        let recognised = self.versions.iter().find_map(|version| {
            platforms::recognised_platform(&version.entries, self.platforms)
                .map(|(file, backend)| (version.number, file, backend))
        });
        let hint = match recognised {
            Some((version, file, backend)) => format!(
                " Version {version} holds '{file}', which needs the backend '{backend}', which is not \
                 installed; {}.",
                platforms::installed_platforms_text(self.platforms)
            ),
            None => String::new(),
        };
        let message = format!(
            "Invalid model name: Could not determine backend for model '{name}' with no backend in \
             model configuration. Expected model name of the form 'model.<backend_name>'.{hint}"
        );
        let error = match hint.is_empty() {
            true => ConfigError::invalid(message),
            false => ConfigError::unsupported(message),
        };
        Err(with_reasons(error, &detected.reasons))
    }

    /// The model file: the default one. If no version has it, the backend is asked.
    fn file(&self, config: &mut ModelConfig) -> Result<(), ConfigError> {
        if !config.default_model_filename.is_empty() {
            return Ok(());
        }
        let by_platform = self.platforms.default_file(&config.platform);
        let default_file = by_platform
            .or_else(|| platforms::well_known_file(&config.platform, &config.backend))
            .or_else(|| self.platforms.default_file(&config.backend))
            .unwrap_or_default();
        let is_absent = self.selected.iter().all(|version| !version.has(&default_file));
        if self.probe.is_some() && is_absent && !config.platform.is_empty() {
            let candidate = PlatformCandidate {
                backend: config.backend.clone(),
                platform: config.platform.clone(),
                default_file: default_file.clone(),
            };
            let detected = self.detect(config, &[candidate])?;
            if let Some((_, file)) = detected.found {
                config.default_model_filename = file;
                return Ok(());
            }
            if !detected.reasons.is_empty() {
                let error =
                    ConfigError::invalid(format!("unable to autofill for '{}'", config.name));
                return Err(with_reasons(error, &detected.reasons));
            }
        }
        config.default_model_filename = default_file;
        Ok(())
    }
}

fn apply_candidate(config: &mut ModelConfig, candidate: PlatformCandidate, file: String) {
    config.backend = candidate.backend;
    config.platform = candidate.platform;
    config.default_model_filename = file;
}

fn with_reasons(mut error: ConfigError, reasons: &[String]) -> ConfigError {
    for (at, reason) in reasons.iter().enumerate() {
        error.message.push_str(if at == 0 { ": " } else { "; " });
        error.message.push_str(reason);
    }
    error
}

#[cfg(test)]
#[path = "complete_tests.rs"]
mod tests;
