//! Auto-complete: the backend derives missing configuration fields from the model file. What the configuration says
//! takes precedence.

use super::super::version_dirs::VersionDirs;
use crate::error::{Error, Result};
use crate::plugin::backend::Backend;
use crate::plugin::{ModelFacts, Patch};
use crate::request::Signature;
use prost::Message;
use std::path::Path;
use std::sync::Arc;
use trtserver_plugin_api::abi::host::patch_format;
use trtserver_proto::v2::ModelConfig;

/// Asks `backend` about the model's highest version and adds the fields that `config` lacks.
///
/// # Errors
/// The backend's error, or a patch that cannot be decoded.
pub fn autocomplete(
    config: &mut ModelConfig,
    backend: &Arc<Backend>,
    dir: &Path,
    found: &VersionDirs,
) -> Result<()> {
    let Some((number, dir_name)) = found.versions.iter().next_back() else { return Ok(()) };
    // The backend may read the tensors that are declared, so they are checked first.
    let signature = Signature::new(config, |_| None)?;
    let facts = ModelFacts {
        name: &config.name,
        version: *number,
        dir,
        version_dir: &dir.join(dir_name),
        file: &config.default_model_filename,
        config,
        signature: &signature,
        n_instances: 1,
        threads: 1,
    };
    if let Some(patch) = backend.complete(&facts)? {
        let patch = decode(&patch, &config.name, &backend.facts.name)?;
        merge(config, patch);
    }
    Ok(())
}

pub(crate) fn decode(patch: &Patch, model: &str, backend: &str) -> Result<ModelConfig> {
    let fail = |why: String| {
        Error::internal(format!(
            "model '{model}': cannot read the auto-complete result of backend '{backend}': {why}"
        ))
    };
    match patch.format {
        patch_format::PROTOBUF => {
            ModelConfig::decode(patch.data.as_slice()).map_err(|e| fail(e.to_string()))
        }
        patch_format::TEXT => {
            let text = std::str::from_utf8(&patch.data).map_err(|e| fail(e.to_string()))?;
            trtserver_proto::text::parse(text).map_err(|e| fail(e.to_string()))
        }
        format => Err(fail(format!("format {format}, expected protobuf (0) or text (2)"))),
    }
}

/// Adds the fields of `patch` that `config` lacks. The batch size belongs to the tensors: if the inputs are declared,
/// a batch size of 0 means no batching and is kept.
pub(crate) fn merge(config: &mut ModelConfig, patch: ModelConfig) {
    if config.max_batch_size == 0 && config.input.is_empty() {
        config.max_batch_size = patch.max_batch_size;
    }
    if config.input.is_empty() {
        config.input = patch.input;
    }
    if config.output.is_empty() {
        config.output = patch.output;
    }
    if config.default_model_filename.is_empty() {
        config.default_model_filename = patch.default_model_filename;
    }
}

#[cfg(test)]
#[path = "autocomplete_tests.rs"]
mod tests;
