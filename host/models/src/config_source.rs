//! The text of the configuration that a model was loaded with, for those who ask what came from
//! its file.

use std::path::Path;
use trtserver_proto::v2::ModelConfig;

/// Longer texts are not kept.
const MAX_KEPT: usize = 64 << 10;

/// Where a configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigOrigin {
    /// The file, relative to the directory of the model.
    File(Box<str>),
    LoadRequest,
}

/// The configuration as its author wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSource {
    pub origin: ConfigOrigin,
    /// Text of protobuf, also for a load request.
    pub text: Box<str>,
}

impl ConfigSource {
    /// `None` if the text is too long to be kept.
    pub(crate) fn from_file(model_dir: &Path, path: &Path, text: String) -> Option<Self> {
        let shown = path.strip_prefix(model_dir).unwrap_or(path);
        let origin = ConfigOrigin::File(shown.to_string_lossy().into());
        (text.len() <= MAX_KEPT).then(|| Self { origin, text: text.into() })
    }

    /// What a load request has set.
    pub(crate) fn from_request(config: &ModelConfig) -> Option<Self> {
        let text = trtserver_proto::text::print(config);
        let origin = ConfigOrigin::LoadRequest;
        (text.len() <= MAX_KEPT).then(|| Self { origin, text: text.into() })
    }
}
