//! The file of a version: which it is, its bytes, and its form.

use crate::contents::{Format, check_contents, recognise_file};
use crate::parameters::{LIGHTGBM_FILE, MODEL_TYPES, Parameters, XGBOOST_FILE};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files;
use trtserver_plugin_api::author::ModelContext;

/// A file that a library may read.
#[derive(Debug)]
pub struct ModelFile {
    pub path: PathBuf,
    pub format: Format,
    pub bytes: Vec<u8>,
}

impl ModelFile {
    /// # Errors
    /// There is none, or it is not a complete model of the configured type: names the model and the
    /// file.
    pub fn read(
        context: &ModelContext,
        platform: &str,
        parameters: &Parameters,
    ) -> Result<Self, PluginFault> {
        let exists = |name: &str| Path::new(context.version_dir()).join(name).is_file();
        let name = choose_name(context.file(), platform, parameters, exists);
        let path = model_files::in_version_dir(context, &name)?;
        let refuse = |why: &dyn Display| {
            PluginFault::invalid(format!(
                "unable to load model '{}' from {}: {why}",
                context.name(),
                path.display()
            ))
        };
        let bytes = std::fs::read(&path).map_err(|e| {
            let names = default_names(platform, parameters).join("', '");
            refuse(&format!(
                "{e}; expected the file '{names}', or the one that default_model_filename names"
            ))
        })?;
        let binary = name.ends_with(".model") || is_type(parameters, "xgboost");
        let format = recognise_file(&bytes, binary).map_err(|why| refuse(&why))?;
        expect_type(format, platform, parameters).map_err(|why| refuse(&why))?;
        check_contents(format, &bytes).map_err(|why| refuse(&why))?;
        Ok(Self { path, format, bytes })
    }
}

fn is_type(parameters: &Parameters, name: &str) -> bool {
    parameters.model_type.is_some_and(|own| own.name == name)
}

/// Names of the file if the configuration names none, best first.
fn default_names(platform: &str, parameters: &Parameters) -> Vec<&'static str> {
    if let Some(own) = parameters.model_type {
        return own.files.to_vec();
    }
    let served = |platform_of: &str| platform.is_empty() || platform_of == platform;
    let own = MODEL_TYPES.iter().filter(|own| served(own.platform));
    own.flat_map(|own| own.files).copied().collect()
}

/// The file of a version. The host completes `default_model_filename` with the default file of a
/// platform, where FIL has one for each `model_type`: such a name counts only if there is that
/// file, and it is one of the type.
fn choose_name(
    configured: &str,
    platform: &str,
    parameters: &Parameters,
    exists: impl Fn(&str) -> bool,
) -> String {
    let names = default_names(platform, parameters);
    let is_default = [LIGHTGBM_FILE, XGBOOST_FILE].contains(&configured) || configured.is_empty();
    if !is_default || names.contains(&configured) && exists(configured) {
        return configured.to_owned();
    }
    let found = names.iter().copied().find(|name| exists(name));
    // A file of another type is refused by its contents, with more to say.
    let found = found.or_else(|| Some(configured).filter(|name| !name.is_empty() && exists(name)));
    let fallback = names.first().copied().unwrap_or(configured);
    found.unwrap_or(fallback).to_owned()
}

/// # Errors
/// The configuration asks for a model of the other framework.
fn expect_type(format: Format, platform: &str, parameters: &Parameters) -> Result<(), String> {
    let title = format.title();
    match parameters.model_type {
        Some(own) if !own.accepts(format) => {
            Err(format!("the file is {title}, and the parameter 'model_type' is '{}'", own.name))
        }
        None if !platform.is_empty() && platform != format.platform() => Err(format!(
            "the file is {title}, and the platform is '{platform}': it needs platform '{}'",
            format.platform()
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "model_file_tests.rs"]
mod tests;
