//! The configuration file of a model's directory: which one it is, and what it says.

use super::prepare::ModelLoader;
use super::refusal::config_error;
use crate::ConfigSource;
use std::path::{Path, PathBuf};
use trtserver_base::error::{Error, Result};
use trtserver_model_config::FILE_NAME;
use trtserver_model_files::FilePlaces;
use trtserver_model_store::ModelDir;
use trtserver_proto::v2::ModelConfig;

impl ModelLoader {
    /// The configuration file of the model in `dir`.
    pub(super) fn config_path(&self, dir: &Path) -> PathBuf {
        let named = self.config_name.as_ref().map(|n| dir.join(format!("configs/{n}.pbtxt")));
        named.filter(|path| path.exists()).unwrap_or_else(|| dir.join(FILE_NAME))
    }

    /// Whether the configuration of the model in `files` must be complete.
    pub(super) fn is_strict(&self, files: &ModelDir) -> bool {
        if files.is_bare() { self.strict_bare } else { self.strict }
    }

    pub(super) fn read_config(
        &self,
        name: &str,
        files: &ModelDir,
        places: &FilePlaces,
    ) -> Result<ModelConfig> {
        self.read_with_source(name, files, places).map(|(config, _)| config)
    }

    pub(super) fn read_with_source(
        &self,
        name: &str,
        files: &ModelDir,
        places: &FilePlaces,
    ) -> Result<(ModelConfig, Option<ConfigSource>)> {
        let path = self.config_path(places.model_dir());
        places.judge(&path).map_err(|refusal| Error::invalid(refusal.to_string()))?;
        match trtserver_model_config::read_with_text(&path).map_err(config_error)? {
            Some((config, text)) => {
                let source = ConfigSource::from_file(places.model_dir(), &path, text);
                Ok(match files.is_bare() {
                    // Its directory does not say how the model is called.
                    true => (ModelConfig { name: name.to_owned(), ..config }, source),
                    false => (config, source),
                })
            }
            None if self.is_strict(files) => Err(Error::not_found(format!(
                "'{}' does not exist; it may be left out with --strict-model-config=false",
                path.display()
            ))),
            None => Ok((ModelConfig { name: name.to_owned(), ..Default::default() }, None)),
        }
    }
}
