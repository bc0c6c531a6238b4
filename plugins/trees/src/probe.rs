//! Recognition of a model by the beginnings of the files of a version directory.

use crate::contents::{Format, HEAD};
use crate::parameters::MODEL_TYPES;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use trtserver_plugin_api::author::{Error, ModelProbe};

/// The only file that is a model of the platform; of several, the one with the name of a default
/// file. `None`: nothing is one, and the default file decides.
///
/// # Errors
/// Several are.
pub fn probe_files(probe: ModelProbe<'_>) -> Result<Option<&str>, Error> {
    let dir = Path::new(probe.version_dir());
    let is_model = |name: &&str| {
        read_head(&dir.join(name)).is_some_and(|head| {
            Format::recognise(&head).is_some_and(|format| format.platform() == probe.platform())
        })
    };
    let entries = probe.entries().filter(|entry| !entry.is_dir && !entry.name.starts_with('.'));
    let found: Vec<&str> = entries.map(|entry| entry.name).filter(is_model).collect();
    if let [only] = found.as_slice() {
        return Ok(Some(only));
    }
    let own = MODEL_TYPES.iter().filter(|own| own.platform == probe.platform());
    let defaults = own.flat_map(|own| own.files);
    match defaults.copied().find_map(|name| found.iter().find(|found| **found == name)) {
        Some(name) => Ok(Some(name)),
        None if found.is_empty() => Ok(None),
        None => Err(Error::not_found(format_args!(
            "expected one model, found '{}': default_model_filename chooses one",
            found.join("', '")
        ))),
    }
}

fn read_head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD as u64).read_to_end(&mut head).ok()?;
    Some(head)
}
