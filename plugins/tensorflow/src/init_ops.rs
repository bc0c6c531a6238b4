//! Operations of a GraphDef that are run once in each new session, for example to fill tables:
//! Triton's parameter `TF_INIT_OPS_FILE` names a JSON file with a list `init_ops` in the directory
//! of the version, or of the model.

use serde_json::Value;
use std::path::Path;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files;
use trtserver_plugin_api::author::ModelContext;

pub const PARAMETER: &str = "TF_INIT_OPS_FILE";
const LIST: &str = "init_ops";

/// The names of a model's operations; empty without the parameter.
///
/// # Errors
/// The file is missing or has no list of names, or the model is a SavedModel.
pub fn read_init_ops(
    context: &ModelContext,
    is_saved_model: bool,
) -> Result<Vec<String>, PluginFault> {
    let Some(name) = context.parameter(PARAMETER).filter(|name| !name.is_empty()) else {
        return Ok(Vec::new());
    };
    let place = format!("unable to load model '{}': parameter {PARAMETER}", context.name());
    if is_saved_model {
        return Err(PluginFault::invalid(format!(
            "{place} is for GraphDef models; a SavedModel names its own initialisation"
        )));
    }
    let (places, dirs) =
        (model_files::file_places(context), [context.version_dir(), context.dir()]);
    let paths = dirs.iter().map(|dir| places.resolve(Path::new(dir), name));
    let paths: Result<Vec<_>, _> = paths.collect();
    let paths = paths.map_err(|refusal| {
        model_files::file_refused(context.name(), &refusal)
            .within(format_args!("parameter {PARAMETER}"))
    })?;
    let path = paths.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        PluginFault::invalid(format!("{place}: there is no file '{name}' in {}", dirs.join(" or ")))
    })?;
    std::fs::read(&path)
        .map_err(|e| e.to_string())
        .and_then(|text| operation_names(&text))
        .map_err(|why| PluginFault::invalid(format!("{place}: {}: {why}", path.display())))
}

fn operation_names(text: &[u8]) -> Result<Vec<String>, String> {
    let json: Value = serde_json::from_slice(text).map_err(|e| e.to_string())?;
    let list = json.get(LIST).and_then(Value::as_array);
    let names = list.and_then(|list| {
        list.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
    });
    names.ok_or_else(|| format!("expected {{\"{LIST}\": [\"operation\", ...]}}"))
}

#[cfg(test)]
#[path = "init_ops_tests.rs"]
mod tests;
