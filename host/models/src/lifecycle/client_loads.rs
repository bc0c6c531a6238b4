//! What a load request may do to a model, and which files the model may consist of.
//!
//! The operator's settings come first: a request may isolate a model that is not, and never the
//! other way round; it brings code only where the operator allows that.

use super::prepare::ModelLoader;
use super::selected_versions::selected_dirs;
use std::path::Path;
use trtserver_base::disk::list_dir;
use trtserver_base::error::{Error, Result};
use trtserver_model_config::version_dirs::VersionDirs;
use trtserver_model_files::FilePlaces;
use trtserver_model_store::ModelDir;
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::isolation;
use trtserver_plugin_host::isolation::Isolation;
use trtserver_proto::v2::{ModelConfig, ModelParameter};

/// Who gives the configuration and the files of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LoadOrigin {
    /// The repository.
    #[default]
    Repository,
    /// The configuration is in the request.
    Configured,
    /// The files are, too.
    Uploaded,
}

impl LoadOrigin {
    pub fn is_request(self) -> bool {
        self != Self::Repository
    }
}

impl ModelLoader {
    /// Where the files of the model in `dir` may lie.
    pub(super) fn places(&self, dir: &Path) -> FilePlaces {
        FilePlaces::new(dir, self.link_roots.iter().cloned())
    }

    /// Whether files that can run code are refused.
    pub(super) fn refuses_code(&self, origin: LoadOrigin) -> bool {
        origin == LoadOrigin::Uploaded && !self.uploaded_code
    }

    /// The configuration of a request, and apart from it the parameter with which it asks for a
    /// model in the server's process, unless the configuration in the repository has it. Until the
    /// backend is known nothing must run here for it.
    pub(super) fn without_loosening(
        &self,
        mut config: ModelConfig,
        name: &str,
        files: &ModelDir,
        places: &FilePlaces,
    ) -> (ModelConfig, Option<ModelParameter>) {
        let asks_local = |config: &ModelConfig| {
            let value = config.parameters.get(isolation::KEY);
            value.is_some_and(|value| value.string_value == Isolation::None.text())
        };
        let in_repository =
            || self.read_config(name, files, places).is_ok_and(|own| asks_local(&own));
        let asks = asks_local(&config) && !in_repository();
        let parameter = asks.then(|| config.parameters.remove(isolation::KEY)).flatten();
        (config, parameter)
    }
}

/// A request asks for a model in the server's process.
///
/// # Errors
/// The models of the backend are isolated.
pub(super) fn expect_local(config: &ModelConfig, backend: Option<&PluginBackend>) -> Result<()> {
    match backend.map(|backend| backend.isolation.by_default()) {
        None | Some(Isolation::None) => Ok(()),
        Some(Isolation::Process) => Err(Error::invalid(format!(
            "model '{}': parameter '{}' of the load request is 'none', but models of backend '{}' run in processes of their \
             own; only the configuration in the repository or the operator can change that: --backend-config={},{}=none",
            config.name,
            isolation::KEY,
            config.backend,
            config.backend,
            isolation::KEY
        ))),
    }
}

/// The error for code in a load request.
pub(super) fn code_refused(model: &str, what: &str) -> Error {
    Error::invalid(format!(
        "model '{model}': the files of the load request are {what}, which can run code in the server: this is refused by \
         --allow-uploaded-code=false, the default where other machines can load models; put the model into the \
         repository, or start the server with --allow-uploaded-code=true"
    ))
}

/// The entries of a version directory, without those that lead elsewhere: a warning names them.
pub(super) fn allowed_entries(
    model: &str,
    places: &FilePlaces,
    dir: &Path,
) -> Result<Vec<(String, bool)>> {
    let mut entries = list_dir(dir)?;
    entries.retain(|(entry, _)| {
        let found = places.judge(&dir.join(entry));
        if let Err(refusal) = &found {
            tracing::warn!("model '{model}': ignoring {refusal}");
        }
        found.is_ok()
    });
    Ok(entries)
}

/// Judges the model files that a configuration names, in the versions that it selects.
///
/// # Errors
/// One lies elsewhere.
pub(super) fn judge_model_files(
    config: &ModelConfig,
    places: &FilePlaces,
    found: &VersionDirs,
) -> Result<()> {
    for version in selected_dirs(config, found) {
        let dir = places.model_dir().join(version);
        let by_compute = config.cc_model_filenames.values();
        for file in by_compute.chain([&config.default_model_filename]) {
            judge_model_file(&config.name, places, &dir, file)?;
        }
    }
    Ok(())
}

/// Judges a model file, or a model directory with all that it contains; without a name the
/// directory of the version alone.
///
/// # Errors
/// It lies elsewhere.
pub(super) fn judge_model_file(
    model: &str,
    places: &FilePlaces,
    version_dir: &Path,
    file: &str,
) -> Result<()> {
    let judged = match file {
        "" => places.judge(version_dir).map(drop),
        file => places.resolve(version_dir, file).and_then(|path| places.judge_tree(&path)),
    };
    judged.map_err(|refusal| Error::invalid(format!("model '{model}': model file {refusal}")))
}

#[cfg(test)]
#[path = "client_loads_tests.rs"]
mod tests;
