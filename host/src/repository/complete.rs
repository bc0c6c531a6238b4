//! Auto-completion through the backend: it tells what the model file says, the file's owner has the last word.

use super::policy::Found;
use crate::error::{Error, Result};
use crate::plugin::backend::Backend;
use crate::plugin::{ModelFacts, Patch};
use crate::request::Signature;
use prost::Message;
use std::path::Path;
use std::sync::Arc;
use trtserver_plugin_api::abi::host::patch_format;
use trtserver_proto::v2::ModelConfig;

/// Asks `backend` about the model's highest version and fills in what `config` leaves out.
///
/// # Errors
/// The backend's own, or a patch that is no configuration.
pub fn from_backend(
    config: &mut ModelConfig,
    backend: &Arc<Backend>,
    dir: &Path,
    found: &Found,
) -> Result<()> {
    let Some((number, entry)) = found.versions.iter().next_back() else { return Ok(()) };
    // Tensors that are declared already must make sense; the backend may look at them.
    let signature = Signature::new(config, |_| None)?;
    let facts = ModelFacts {
        name: &config.name,
        version: *number,
        dir,
        version_dir: &dir.join(entry),
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
            "model '{model}': backend '{backend}' completed the configuration with something unreadable: {why}"
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
        format => Err(fail(format!("format {format}; protobuf (0) and text (2) are taken"))),
    }
}

/// Takes from `patch` only what may be completed and is absent. A batch size belongs to the tensors:
/// when the inputs are declared, 0 means no batching and stays.
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
#[path = "complete_tests.rs"]
mod tests;
