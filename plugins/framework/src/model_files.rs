//! Files that a model names: they lie in its directory, or where the operator allows links to lead.

use crate::fault::PluginFault;
use std::path::{Path, PathBuf};
use trtserver_model_files::ROOTS_SETTING;
pub use trtserver_model_files::{FilePlaces, FileRefusal};
use trtserver_plugin_api::author::ModelContext;

/// Where files of the model may lie.
pub fn file_places(context: &ModelContext) -> FilePlaces {
    let dir =
        Path::new(if context.dir().is_empty() { context.version_dir() } else { context.dir() });
    FilePlaces::with_setting(dir, context.setting(ROOTS_SETTING))
}

/// The path of a file in the directory of the version. It need not exist.
///
/// # Errors
/// The file lies elsewhere: names the model and the file.
pub fn in_version_dir(context: &ModelContext, name: &str) -> Result<PathBuf, PluginFault> {
    let found = file_places(context).resolve(Path::new(context.version_dir()), name);
    found.map_err(|refusal| file_refused(context.name(), &refusal))
}

/// The error for a file that a model must not name.
pub fn file_refused(model: &str, refusal: &FileRefusal) -> PluginFault {
    PluginFault::invalid(format!("unable to load model '{model}': {refusal}"))
}
