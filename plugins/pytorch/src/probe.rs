//! Recognition of a model by its default name, so that the error about another name says which one
//! is expected.

use crate::loaded::{PACKAGES, TORCHSCRIPT_FILE};
use trtserver_plugin_api::author::{Error, ModelProbe};

/// # Errors
/// The version directory has entries, and none of the default name.
pub fn probe_files(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
    let default = probe.default_file();
    // Hidden files such as `.DS_Store` belong to no model.
    let is_empty = probe.entries().all(|entry| entry.name.starts_with('.'));
    let has = |name: &str| probe.entries().any(|entry| entry.name == name);
    if is_empty || has(default) {
        return Ok(None);
    }
    if probe.platform() == PACKAGES && has(TORCHSCRIPT_FILE) {
        return Err(Error::not_found(format_args!(
            "expected the file '{default}', found '{TORCHSCRIPT_FILE}', which is TorchScript: {}",
            crate::other_files::CONVERSION
        )));
    }
    let other = probe.entries().map(|entry| entry.name).find(|name| name.ends_with(".pt2"));
    Err(Error::not_found(format_args!(
        "expected the file '{default}'{}",
        match other {
            Some(other) => format!(
                "; '{other}' is served once it has this name, or the configuration says default_model_filename: \"{other}\""
            ),
            None => String::new(),
        }
    )))
}
