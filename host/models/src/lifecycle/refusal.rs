//! Why a model is refused.

use super::super::model::ReadConfig;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use trtserver_base::disk::list_dir;
use trtserver_base::error::{Code, Error};
use trtserver_model_config::version_dirs::VersionDirs;
use trtserver_model_config::{ConfigError, ConfigFault, ConfigPart, FILE_NAME};
use trtserver_model_store::ModelDir;
use trtserver_proto::v2::ModelConfig;

/// A model that no version of can be opened.
pub(super) struct RefusedModel {
    pub error: Error,
    /// Its configuration, if that is not the cause.
    pub config: Option<Arc<ModelConfig>>,
    /// See [`ModelRefusal`].
    pub unreadable: bool,
    /// What was read of it.
    pub read: Arc<OnceLock<ReadConfig>>,
}

impl From<Error> for RefusedModel {
    fn from(error: Error) -> Self {
        Self { error, config: None, unreadable: false, read: Arc::default() }
    }
}

/// Why a model is refused, and the part of its configuration that is the cause.
pub(super) struct ModelRefusal {
    pub error: Error,
    pub part: ConfigPart,
    /// Further reasons, of which the first one is not the cause.
    pub others: Vec<(Error, ConfigPart)>,
    /// The configuration file is missing or cannot be read.
    pub unreadable: bool,
}

impl From<Error> for ModelRefusal {
    fn from(error: Error) -> Self {
        Self { error, part: ConfigPart::Unknown, others: Vec::new(), unreadable: false }
    }
}

impl From<ConfigError> for ModelRefusal {
    fn from(e: ConfigError) -> Self {
        let part = e.part;
        Self { error: config_error(e), part, others: Vec::new(), unreadable: false }
    }
}

impl ModelRefusal {
    pub fn and(mut self, other: Self) -> Self {
        self.others.push((other.error, other.part));
        self.others.extend(other.others);
        self
    }

    /// By all of these reasons, if there is one.
    pub fn by(reasons: Vec<ConfigError>) -> Result<(), Self> {
        let mut reasons = reasons.into_iter();
        let Some(first) = reasons.next() else { return Ok(()) };
        let others = reasons.map(|e| (e.part, config_error(e))).map(|(part, e)| (e, part));
        Err(Self { others: others.collect(), ..first.into() })
    }
}

/// An error that names files of a bare repository where they are.
pub(super) fn show_origin(files: &ModelDir, mut error: Error) -> Error {
    error.message = files.show_origin(error.message);
    error
}

/// Adds to a refusal that a model's file is beside its configuration, if there is no version
/// directory; or that the directory is itself a version of the model above it.
pub(super) fn about_versions(
    mut refusal: ModelRefusal,
    dir: &Path,
    found: &VersionDirs,
) -> ModelRefusal {
    let entries = list_dir(dir).unwrap_or_default();
    let model = entries.iter().find(|(name, _)| name.starts_with("model."));
    if let Some((name, _)) = model.filter(|_| found.versions.is_empty()) {
        if let Some(above) = dir.parent().filter(|above| above.join(FILE_NAME).is_file()) {
            refusal.error.message.push_str(&format!(
                "; '{0}' has '{FILE_NAME}', so it is the directory of one model: the repository is the directory \
                 above '{0}'",
                above.display()
            ));
            return refusal;
        }
        let dir = dir.display();
        refusal.error.message.push_str(&format!(
            "; '{dir}' has no version directory, which is named by a number: move '{name}' into '{dir}/1'"
        ));
    }
    refusal
}

pub(super) fn config_error(e: ConfigError) -> Error {
    let code = match e.fault {
        ConfigFault::Invalid => Code::InvalidArg,
        ConfigFault::Unsupported => Code::Unsupported,
        ConfigFault::Unreadable => Code::Internal,
    };
    Error::new(code, e.message)
}
