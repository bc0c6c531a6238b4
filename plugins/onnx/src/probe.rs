//! Recognition of a model by its default name, so that the error about another name says which one
//! is expected.

use trtserver_plugin_api::author::{Error, ModelProbe};

/// # Errors
/// The version directory has entries, and none of the default name.
pub fn probe_files(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
    let default = probe.default_file();
    // Hidden files such as `.DS_Store` belong to no model.
    let is_empty = probe.entries().all(|entry| entry.name.starts_with('.'));
    if is_empty || probe.entries().any(|entry| entry.name == default) {
        return Ok(None);
    }
    let is_other = |name: &str| name.ends_with(".onnx");
    let other = probe.entries().map(|entry| entry.name).find(|name| is_other(name));
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
