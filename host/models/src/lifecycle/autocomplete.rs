//! Auto-complete: the backend derives missing configuration fields from the model file. What the
//! configuration says takes precedence.

use super::version_builder::CompletedVersion;
use crate::instance::load_cancel::LoadCancel;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_model_config::version_dirs::VersionDirs;
use trtserver_model_config::version_policy::select_versions;
use trtserver_plugin_api::abi::host::patch_format;
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::discovery::backends::VERSION_PARAMETER;
use trtserver_plugin_host::{ModelFacts, Patch, isolation};
use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::{DataType, ModelConfig, ModelInput, ModelOutput, ModelTensorReshape};
use trtserver_request::ModelSignature;

/// Asks `backend` about the highest version that the version policy selects, and adds the fields
/// that `config` lacks. `normalise` writes out defaults; the backend reads the configuration with
/// them. Returns the number of that version and what the backend hands over for opening it.
///
/// # Errors
/// The backend's error, or a patch that cannot be decoded or sets a field that it must not set.
pub fn autocomplete_config(
    config: &mut ModelConfig,
    backend: &Arc<PluginBackend>,
    dir: &Path,
    found: &VersionDirs,
    normalise: impl FnOnce(&mut ModelConfig),
    cancel: &LoadCancel,
) -> Result<Option<CompletedVersion>> {
    let existing: Vec<i64> = found.versions.keys().copied().collect();
    let policy = config.version_policy.clone().unwrap_or_default();
    let selected = select_versions(&policy, &existing).versions;
    let highest = selected.last().and_then(|number| found.versions.get_key_value(number));
    let Some((number, dir_name)) = highest else { return Ok(None) };
    // As in TRTIS, tensors may be declared without type or dims; the backend is asked for all then.
    let inputs = take_incomplete(&mut config.input, input_parts);
    let outputs = take_incomplete(&mut config.output, output_parts);
    // The backend may read the tensors that are declared, so they are checked first.
    let signature = ModelSignature::new(config, |_| None)?;
    let mut shown = config.clone();
    normalise(&mut shown);
    let facts = ModelFacts {
        name: &config.name,
        version: *number,
        dir,
        version_dir: &dir.join(dir_name),
        file: &shown.default_model_filename,
        config: &shown,
        signature: &signature,
        n_instances: 1,
        threads: 1,
        host_policy: None,
        state: std::ptr::null_mut(),
    };
    let configured = config.max_batch_size;
    let in_process = cancel.calls(backend, config)?;
    let mut completed = backend.complete(&facts, cancel.flag())?;
    drop(in_process);
    if let Some(patch) = completed.patch.take() {
        let (model, backend) = (&config.name.clone(), &backend.facts.name);
        let replaces = patch.format == patch_format::COMPLETED_JSON;
        let patch = decode_patch(&patch, model, backend)?;
        let merged =
            if replaces { replace_completed(config, patch) } else { merge_patch(config, patch) };
        merged.map_err(|why| {
            Error::internal(format!(
                "model '{model}': the auto-complete result of backend '{backend}' {why}"
            ))
        })?;
    }
    completed.adds_batch_size = configured == 0 && config.max_batch_size > 0;
    fill_tensors(&mut config.input, inputs, input_parts);
    fill_tensors(&mut config.output, outputs, output_parts);
    Ok(Some((*number, completed)))
}

/// What completion adds to a declared tensor.
struct TensorParts<'a> {
    name: &'a str,
    data_type: &'a mut i32,
    dims: &'a mut Vec<i64>,
    reshape: &'a mut Option<ModelTensorReshape>,
}

fn input_parts(tensor: &mut ModelInput) -> TensorParts<'_> {
    let ModelInput { name, data_type, dims, reshape, .. } = tensor;
    TensorParts { name, data_type, dims, reshape }
}

fn output_parts(tensor: &mut ModelOutput) -> TensorParts<'_> {
    let ModelOutput { name, data_type, dims, reshape, .. } = tensor;
    TensorParts { name, data_type, dims, reshape }
}

/// Removes the tensors of a list if one of them is incomplete.
fn take_incomplete<T>(tensors: &mut Vec<T>, parts: fn(&mut T) -> TensorParts<'_>) -> Vec<T> {
    let mut all = tensors.iter_mut().map(parts);
    let incomplete =
        all.any(|own| *own.data_type == DataType::TypeInvalid as i32 || own.dims.is_empty());
    if incomplete { std::mem::take(tensors) } else { Vec::new() }
}

/// Puts the declared tensors, if any, in place of the completed ones; what they leave out is
/// completed.
fn fill_tensors<T>(
    completed: &mut Vec<T>,
    mut declared: Vec<T>,
    parts: fn(&mut T) -> TensorParts<'_>,
) {
    for tensor in &mut declared {
        let own = parts(tensor);
        let Some(from) = completed.iter_mut().map(parts).find(|from| from.name == own.name) else {
            continue;
        };
        if *own.data_type == DataType::TypeInvalid as i32 {
            *own.data_type = *from.data_type;
        }
        if own.dims.is_empty() {
            own.dims.clone_from(from.dims);
            own.reshape.clone_from(from.reshape);
        }
    }
    if !declared.is_empty() {
        *completed = declared;
    }
}

/// # Errors
/// The patch cannot be decoded.
pub fn decode_patch(patch: &Patch, model: &str, backend: &str) -> Result<ModelConfig> {
    patch.decode().map_err(|why| {
        Error::internal(format!(
            "model '{model}': cannot read the auto-complete result of backend '{backend}': {why}"
        ))
    })
}

/// Adds the fields of `patch` that `config` lacks: a field is taken as a whole, of parameters and
/// other maps each key. The batch size belongs to the tensors: if the inputs are declared, a batch
/// size of 0 means no batching and is kept, and dynamic batching is not added.
///
/// # Errors
/// The patch sets a field that was decided before the backend was asked; completes "the patch …".
pub fn merge_patch(config: &mut ModelConfig, patch: ModelConfig) -> Result<(), String> {
    // Every field is named, so that none is forgotten.
    let ModelConfig {
        name,
        platform,
        backend,
        runtime,
        version_policy,
        max_batch_size,
        input,
        output,
        instance_group,
        default_model_filename,
        cc_model_filenames,
        metric_tags,
        optimization,
        parameters,
        model_warmup,
        model_operations,
        model_transaction_policy,
        batch_input,
        batch_output,
        model_repository_agents,
        response_cache,
        model_metrics,
        scheduling_choice,
    } = patch;
    for (field, ours, theirs) in [
        ("name", &config.name, &name),
        ("platform", &config.platform, &platform),
        ("backend", &config.backend, &backend),
    ] {
        if !theirs.is_empty() && theirs != ours {
            return Err(format!("sets '{field}' to '{theirs}', which is '{ours}' already"));
        }
    }
    for key in [isolation::KEY, VERSION_PARAMETER] {
        if parameters.contains_key(key) && !config.parameters.contains_key(key) {
            return Err(format!("sets the parameter '{key}', which must be in the configuration"));
        }
    }
    if matches!(scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_))) {
        return Err("sets 'ensemble_scheduling'".into());
    }
    if config.max_batch_size == 0 && config.input.is_empty() {
        config.max_batch_size = max_batch_size;
    }
    let batches = config.max_batch_size > 0;
    let dynamic = matches!(scheduling_choice, Some(SchedulingChoice::DynamicBatching(_)));
    if batches || !dynamic {
        config.scheduling_choice = config.scheduling_choice.take().or(scheduling_choice);
    }
    replace_list(&mut config.input, input);
    replace_list(&mut config.output, output);
    replace_list(&mut config.instance_group, instance_group);
    replace_list(&mut config.model_warmup, model_warmup);
    replace_list(&mut config.batch_input, batch_input);
    replace_list(&mut config.batch_output, batch_output);
    replace_text(&mut config.default_model_filename, default_model_filename);
    replace_text(&mut config.runtime, runtime);
    replace_map(&mut config.cc_model_filenames, cc_model_filenames);
    replace_map(&mut config.metric_tags, metric_tags);
    replace_map(&mut config.parameters, parameters);
    replace_message(&mut config.version_policy, version_policy);
    replace_message(&mut config.optimization, optimization);
    replace_message(&mut config.model_operations, model_operations);
    replace_message(&mut config.model_transaction_policy, model_transaction_policy);
    replace_message(&mut config.model_repository_agents, model_repository_agents);
    replace_message(&mut config.response_cache, response_cache);
    replace_message(&mut config.model_metrics, model_metrics);
    Ok(())
}

/// Takes over what the backend has decided, see [`patch_format::COMPLETED_JSON`]: the rule of
/// `TRITONBACKEND_ModelSetConfig`.
///
/// # Errors
/// It sets a scheduler that a backend must not set; completes "the patch …".
pub(crate) fn replace_completed(
    config: &mut ModelConfig,
    completed: ModelConfig,
) -> Result<(), String> {
    if matches!(completed.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_))) {
        return Err("sets 'ensemble_scheduling'".into());
    }
    config.max_batch_size = completed.max_batch_size;
    config.input = completed.input;
    config.output = completed.output;
    config.scheduling_choice = config.scheduling_choice.take().or(completed.scheduling_choice);
    if completed.model_transaction_policy.is_some() {
        config.model_transaction_policy = completed.model_transaction_policy;
    }
    Ok(())
}

fn replace_list<T>(ours: &mut Vec<T>, theirs: Vec<T>) {
    if ours.is_empty() {
        *ours = theirs;
    }
}

fn replace_text(ours: &mut String, theirs: String) {
    if ours.is_empty() {
        *ours = theirs;
    }
}

fn replace_map<V>(ours: &mut BTreeMap<String, V>, theirs: BTreeMap<String, V>) {
    for (key, value) in theirs {
        ours.entry(key).or_insert(value);
    }
}

fn replace_message<T>(ours: &mut Option<T>, theirs: Option<T>) {
    *ours = ours.take().or(theirs);
}

#[cfg(test)]
#[path = "autocomplete_tests.rs"]
mod tests;
