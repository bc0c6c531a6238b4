//! Conversions between the host's types and messages: backend, model and instance facts, errors.

use super::messages;
use prost::Message;
use std::collections::BTreeMap;
use std::path::Path;
use trtserver_base::error::{Error, Result};
use trtserver_base::host_policy::HostPolicy;
use trtserver_plugin_api::abi::extensions::BatchSize;
use trtserver_plugin_api::abi::types::tensor_flags;
use trtserver_plugin_host::backend_facts::{BackendFacts, MIN_STACK};
use trtserver_plugin_host::batch::views::tensor_flags;
use trtserver_plugin_host::library::table;
use trtserver_plugin_host::text::{PluginError, c_text, to_code_number};
use trtserver_plugin_host::{InstanceFacts, ModelFacts, Patch, ProbeFacts};
use trtserver_request::{ModelSignature, TensorSpec};

pub fn model_facts(facts: &ModelFacts<'_>) -> messages::ModelFacts {
    let signature = facts.signature;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    messages::ModelFacts {
        name: facts.name.to_owned(),
        version: facts.version,
        dir: text(facts.dir),
        version_dir: text(facts.version_dir),
        file: facts.file.to_owned(),
        config: facts.config.encode_to_vec(),
        n_instances: facts.n_instances,
        threads: facts.threads,
        inputs: signature.inputs.iter().chain(&signature.hidden).map(tensor).collect(),
        outputs: signature.outputs.iter().map(tensor).chain(lone_states(signature)).collect(),
        n_declared_inputs: signature.inputs.len() as u32,
        n_declared_outputs: signature.outputs.len() as u32,
        host_settings: facts.host_policy.map(|p| p.settings().clone()).unwrap_or_default(),
    }
}

pub fn batch_sizes_message(sizes: &[BatchSize]) -> Vec<messages::BatchSize> {
    let message = |size: &BatchSize| messages::BatchSize { rows: size.rows, run_ns: size.run_ns };
    sizes.iter().map(message).collect()
}

pub fn read_batch_sizes(message: &[messages::BatchSize]) -> Vec<BatchSize> {
    let size = |of: &messages::BatchSize| BatchSize { rows: of.rows, pad: 0, run_ns: of.run_ns };
    message.iter().map(size).collect()
}

fn tensor(spec: &TensorSpec) -> messages::TensorSpec {
    messages::TensorSpec {
        name: spec.name.to_string(),
        dtype: spec.dtype.number(),
        dims: spec.model_dims.clone(),
        flags: tensor_flags(spec),
        caller_dims: if spec.dims == spec.model_dims { Vec::new() } else { spec.dims.clone() },
    }
}

/// States that are not declared as outputs.
fn lone_states(signature: &ModelSignature) -> impl Iterator<Item = messages::TensorSpec> {
    let lone = signature.states.iter().filter(|s| signature.output(&s.output).is_none());
    lone.map(|state| messages::TensorSpec {
        name: state.output.to_string(),
        dtype: state.dtype.number(),
        dims: state.dims.clone(),
        flags: tensor_flags::STATE,
        caller_dims: Vec::new(),
    })
}

/// Positions of the states among the outputs of [`model_facts`].
pub fn state_positions(signature: &ModelSignature) -> Vec<u32> {
    let mut lone = signature.outputs.len()..;
    let position = |output: &str| signature.output(output).or_else(|| lone.next());
    let outputs = signature.states.iter().map(|state| &*state.output);
    outputs.filter_map(position).map(|position| position as u32).collect()
}

pub fn instance_facts(facts: &InstanceFacts<'_>) -> messages::InstanceFacts {
    let secondary = facts.secondary_devices.iter();
    let secondary =
        secondary.map(|(kind, id)| messages::SecondaryDevice { kind: kind.clone(), id: *id });
    messages::InstanceFacts {
        name: facts.name.to_owned(),
        kind: facts.kind,
        ordinal: facts.ordinal,
        device: facts.device,
        threads: facts.threads,
        max_rows: facts.max_rows,
        profiles: facts.profiles.to_vec(),
        nice: facts.nice,
        secondary_devices: secondary.collect(),
        host_policy: facts.host_policy.name.clone(),
        host_settings: facts.host_policy.settings().clone(),
        load_limit: facts.load_limit,
    }
}

/// The host policy of a message.
///
/// # Errors
/// Settings that no server sends.
pub fn host_policy(name: &str, settings: &BTreeMap<String, String>) -> Result<HostPolicy> {
    HostPolicy::from_settings(name, settings).map_err(Error::internal)
}

pub fn probe_facts(facts: &ProbeFacts<'_>) -> messages::ProbeFacts {
    let entry = |(name, is_dir): &(String, bool)| messages::DirEntry {
        name: name.clone(),
        is_dir: *is_dir,
    };
    messages::ProbeFacts {
        model: facts.model.to_owned(),
        version: facts.version,
        version_dir: facts.version_dir.to_string_lossy().into_owned(),
        platform: facts.platform.to_owned(),
        default_file: facts.default_file.to_owned(),
        entries: facts.entries.iter().map(entry).collect(),
    }
}

/// Largest stack that a backend info can ask for: a `u32` of KiB.
const MAX_STACK: u64 = (u32::MAX as u64) << 10;

/// Checks the facts again that a sound child has checked: the plugin controls its process.
///
/// # Errors
/// A value that no plugin could have in this process.
pub fn to_backend_facts(info: messages::BackendInfo) -> Result<BackendFacts> {
    table::check_facts(&info.name, info.align).map_err(Error::invalid)?;
    if !(MIN_STACK as u64..=MAX_STACK).contains(&info.stack_bytes) {
        return Err(Error::invalid(format!(
            "it requires a stack of {} bytes, which is not between {MIN_STACK} and {MAX_STACK}",
            info.stack_bytes
        )));
    }
    let mut platforms = info.platforms.into_iter();
    let pairs = std::iter::from_fn(|| Some((platforms.next()?, platforms.next()?)));
    let preferred = info.preferred.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    Ok(BackendFacts {
        name: info.name,
        version: info.version,
        platforms: pairs.collect(),
        default_file: None,
        flags: info.flags,
        max_in_flight: info.max_in_flight.max(1) as usize,
        decoupled_max_in_flight: match info.decoupled_max_in_flight {
            0 => None,
            most => Some(most as usize),
        },
        gpu_max_in_flight: info.gpu_max_in_flight.max(1) as usize,
        // The child places inputs, and has read the facts itself.
        input_memory_types: 0,
        align: info.align as usize,
        stack_bytes: info.stack_bytes as usize,
        instance_kinds: info.instance_kinds,
        preferred: preferred.collect(),
        abi: (info.abi_major, info.abi_minor),
        runtime: info.runtime,
    })
}

pub fn config_patch(patch: messages::PatchMessage) -> Patch {
    Patch { format: patch.format, data: patch.data }
}

/// Errors and log records are truncated to this many bytes.
pub const MAX_TEXT: usize = 1 << 20;

pub fn failure_message(error: &Error) -> messages::FailureMessage {
    let text = &error.message;
    messages::FailureMessage {
        code: to_code_number(error.code),
        text: text[..text.floor_char_boundary(MAX_TEXT)].into(),
        model_broken: error.model_broken,
    }
}

pub fn failure_error(failure: &messages::FailureMessage) -> Error {
    PluginError { code: failure.code, flags: 0, text: c_text(&failure.text) }.to_error()
}
