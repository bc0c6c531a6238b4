//! The parameter `EXECUTION_ENV_PATH` of models of Triton's Python backend: an archive or a
//! directory with a Python environment, which the backend unpacks and runs.
//!
//! It lies where files of the model may lie, or in a directory of the setting [`DIRECTORIES`],
//! which is the operator's.

use crate::fault::{Result, TritonFault};
use std::path::Path;
use trtserver_model_files::FilePlaces;

const PARAMETER: &str = "EXECUTION_ENV_PATH";
/// What stands for the model's directory in its value.
const MODEL_DIRECTORY: &str = "$$TRITON_MODEL_DIRECTORY";
/// Setting: directories of environments, with semicolons between.
pub const DIRECTORIES: &str = "execution-env-directory";

/// Judges the parameter of a configuration (JSON). `directories` is the value of the setting.
///
/// # Errors
/// It leads elsewhere.
pub fn check_execution_env(config: &str, places: &FilePlaces, directories: &str) -> Result<()> {
    let config: serde_json::Value = serde_json::from_str(config).unwrap_or_default();
    let value = &config["parameters"][PARAMETER]["string_value"];
    let Some(value) = value.as_str().filter(|value| !value.is_empty()) else { return Ok(()) };
    let path = value.replace(MODEL_DIRECTORY, &places.model_dir().display().to_string());
    // The backend opens the path as it is, so a relative one would begin at the directory of the
    // process.
    let path = Path::new(&path);
    if places.judge(path).is_ok() {
        return Ok(());
    }
    let named = directories.split(';').map(str::trim).filter(|dir| !dir.is_empty());
    let mut named = named.map(|dir| FilePlaces::new(Path::new(dir), []));
    if named.any(|places| places.judge(path).is_ok()) {
        return Ok(());
    }
    Err(TritonFault::invalid(format_args!(
        "parameter '{PARAMETER}': '{value}' is neither in the model's directory '{}' ({MODEL_DIRECTORY}) nor in a repository, \
         a --model-link-dir or a directory of --backend-config=python,{DIRECTORIES}=DIRECTORY",
        places.model_dir().display()
    )))
}

#[cfg(test)]
#[path = "execution_env_tests.rs"]
mod tests;
