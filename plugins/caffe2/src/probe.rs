//! Recognition of a model by the names of its two files: `FILE.netdef` and `init_FILE.netdef`, and
//! no other.

use trtserver_plugin_api::author::{Error, ModelProbe};

/// Extension of both files.
const EXTENSION: &str = ".netdef";

/// The predict net in the version directory.
///
/// # Errors
/// The directory does not hold exactly the two files of a model.
pub fn probe_files(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
    // Hidden files such as `.DS_Store` belong to no model.
    let entries = probe.entries().filter(|entry| !entry.is_dir && !entry.name.starts_with('.'));
    let files: Vec<&str> = entries.map(|entry| entry.name).collect();
    let is_pair = |init: &str, predict: &str| {
        init.strip_prefix("init_") == Some(predict) && predict.ends_with(EXTENSION)
    };
    match files.as_slice() {
        [a, b] if is_pair(a, b) => Ok(Some(b)),
        [a, b] if is_pair(b, a) => Ok(Some(a)),
        files => Err(Error::not_found(format_args!(
            "expected two files, '{}' and 'init_{0}', found {}",
            probe.default_file(),
            match files.is_empty() {
                true => "none".to_owned(),
                false => format!("'{}'", files.join("', '")),
            }
        ))),
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
