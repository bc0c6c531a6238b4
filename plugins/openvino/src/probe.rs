//! Recognition of a model by the names of the files of a version directory.

use trtserver_plugin_api::author::{Error, ModelProbe};

/// Endings of files that no other backend of the server reads.
const OWN: [&str; 3] = [".xml", ".tflite", ".pdmodel"];

/// The only file with an ending of OpenVINO's own; of several, the default file. `None`: nothing
/// has one. Files of other frameworks, such as `model.onnx`, are left to those unless the
/// configuration names this backend (`model_file.rs`).
///
/// # Errors
/// There are several.
pub fn probe_files(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
    let files = probe.entries().filter(|entry| !entry.is_dir).map(|entry| entry.name);
    choose(files, probe.default_file())
}

fn choose<'a>(
    files: impl Iterator<Item = &'a str>,
    default: &str,
) -> Result<Option<&'a str>, Error> {
    let is_own = |name: &&str| !name.starts_with('.') && OWN.iter().any(|end| name.ends_with(end));
    let found: Vec<&str> = files.filter(is_own).collect();
    match found.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        several => match several.iter().find(|name| **name == default) {
            Some(name) => Ok(Some(name)),
            None => Err(Error::not_found(format_args!(
                "expected one model, found '{}': default_model_filename chooses one",
                several.join("', '")
            ))),
        },
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
