//! Every field of a model configuration (`config.pbtxt`) and what uses it. A setting that nothing
//! uses is a warning at load and a finding of `trtserver check`.

use std::collections::BTreeSet;

use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_proto::set_fields::set_fields;
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_proto::v2::{ModelConfig, ModelInstanceGroup};

use super::ConfigWarning;
use super::platforms::ENSEMBLE;

/// What uses a field.
enum FieldUse {
    /// The server, for some models at least: scheduling, checks, metrics, metadata that clients
    /// read.
    Server,
    /// The backend. What it ignores is not known here.
    Backend,
    /// Among the backends that declare `LISTS_FIELDS`, those that declare this flag, or none if it
    /// is 0; other backends may use the field or not.
    Declared(u32, &'static str),
    /// Nothing, for this reason.
    Nothing(&'static str),
    /// Nothing yet: `check::unsupported` refuses it or warns of it.
    Unsupported,
    /// Nothing, if the function gives a reason.
    Unless(fn(&ModelConfig) -> Option<&'static str>),
}
use FieldUse::{Backend, Declared, Nothing, Server, Unless, Unsupported};

/// Fields of one message, or of several whose path is written out, that are used by the same.
struct FieldRow {
    used_by: FieldUse,
    /// Path of the message; empty for the configuration itself.
    within: &'static str,
    fields: &'static [&'static str],
}

const fn field_row(
    used_by: FieldUse,
    within: &'static str,
    fields: &'static [&'static str],
) -> FieldRow {
    FieldRow { used_by, within, fields }
}

const NO_FILE: &str = "an ensemble has no model file";

/// A new field of the configuration needs an entry here: a test compares the table with the message
/// type.
const TABLE: &[FieldRow] = &[
    field_row(Server, "", &["name", "platform", "backend", "max_batch_size"]),
    field_row(Server, "version_policy", &["latest.num_versions", "specific.versions"]),
    field_row(
        Server,
        "input",
        &["name", "data_type", "format", "dims", "reshape.shape", "optional"],
    ),
    field_row(Server, "input", &["is_shape_tensor", "allow_ragged_batch"]),
    field_row(Server, "output", &["name", "data_type", "dims", "label_filename", "reshape.shape"]),
    field_row(Server, "output", &["is_shape_tensor"]),
    field_row(Backend, "", &["input.is_non_linear_format_io", "output.is_non_linear_format_io"]),
    field_row(Server, "instance_group", &["name", "count", "gpus", "kind", "host_policy"]),
    field_row(
        Server,
        "instance_group",
        &[
            "rate_limiter.resources.name",
            "rate_limiter.resources.global",
            "rate_limiter.resources.count",
            "rate_limiter.priority",
        ],
    ),
    field_row(
        Backend,
        "instance_group",
        &["profile", "secondary_devices.kind", "secondary_devices.device_id"],
    ),
    field_row(Unsupported, "instance_group", &["passive"]),
    field_row(Unless(no_file), "", &["default_model_filename"]),
    field_row(Unless(no_file), "cc_model_filenames", &["key", "value"]),
    field_row(Server, "metric_tags", &["key", "value"]),
    field_row(
        Server,
        "dynamic_batching",
        &[
            "preferred_batch_size",
            "max_queue_delay_microseconds",
            "preserve_ordering",
            "priority_levels",
            "default_priority_level",
            "priority_queue_policy.key",
        ],
    ),
    field_row(Server, "dynamic_batching.default_queue_policy", QUEUE_POLICY),
    field_row(Server, "dynamic_batching.priority_queue_policy.value", QUEUE_POLICY),
    field_row(
        Declared(backend_flags::GRAPH_LEVELS, "it has no levels of graph optimization"),
        "optimization",
        &["graph.level"],
    ),
    field_row(Server, "optimization", &["priority"]),
    field_row(
        Declared(backend_flags::CUDA_GRAPHS, "it does not execute CUDA graphs"),
        "optimization.cuda",
        &[
            "graphs",
            "graph_spec.batch_size",
            "graph_spec.input.key",
            "graph_spec.input.value.dim",
            "graph_spec.graph_lower_bound.batch_size",
            "graph_spec.graph_lower_bound.input.key",
            "graph_spec.graph_lower_bound.input.value.dim",
        ],
    ),
    field_row(
        Declared(0, "the host orders its work on the GPU"),
        "optimization.cuda",
        &["busy_wait_events", "output_copy_stream"],
    ),
    field_row(
        // Which of them they have, they say at load.
        Backend,
        "optimization.execution_accelerators",
        &[
            "gpu_execution_accelerator.name",
            "gpu_execution_accelerator.parameters.key",
            "gpu_execution_accelerator.parameters.value",
            "cpu_execution_accelerator.name",
            "cpu_execution_accelerator.parameters.key",
            "cpu_execution_accelerator.parameters.value",
        ],
    ),
    field_row(
        Server,
        "optimization",
        // `true` is what the server does anyway; `pinned_memory` warns of `false`.
        &["input_pinned_memory.enable", "output_pinned_memory.enable"],
    ),
    field_row(
        Nothing("inputs are gathered by copies, for any number of them"),
        "optimization",
        &["gather_kernel_buffer_threshold"],
    ),
    field_row(Unless(no_copy_ahead), "optimization", &["eager_batching"]),
    field_row(
        Server,
        "sequence_batching",
        &["max_sequence_idle_microseconds", "control_input.name"],
    ),
    field_row(
        Server,
        "sequence_batching.control_input.control",
        &["kind", "int32_false_true", "fp32_false_true", "data_type", "bool_false_true"],
    ),
    field_row(
        Server,
        "sequence_batching.direct",
        &["max_queue_delay_microseconds", "minimum_slot_utilization"],
    ),
    field_row(
        Server,
        "sequence_batching.oldest",
        &[
            "max_candidate_sequences",
            "preferred_batch_size",
            "max_queue_delay_microseconds",
            "preserve_ordering",
        ],
    ),
    field_row(
        Server,
        "sequence_batching.state",
        &[
            "input_name",
            "output_name",
            "data_type",
            "dims",
            "initial_state.data_type",
            "initial_state.dims",
            "initial_state.zero_data",
            "initial_state.data_file",
            "initial_state.name",
        ],
    ),
    field_row(
        Nothing("the new state has memory of its own, so that a failed request keeps the old one"),
        "sequence_batching.state",
        &["use_same_buffer_for_input_output"],
    ),
    field_row(
        Unsupported,
        "sequence_batching",
        &["state.use_growable_memory", "iterative_sequence"],
    ),
    field_row(
        Server,
        "ensemble_scheduling.step",
        &[
            "model_name",
            "model_version",
            "input_map.key",
            "input_map.value",
            "output_map.key",
            "output_map.value",
            "model_namespace",
        ],
    ),
    field_row(Server, "ensemble_scheduling", &["max_inflight_requests"]),
    field_row(Backend, "parameters", &["key", "value.string_value"]),
    field_row(
        Server,
        "model_warmup",
        &[
            "name",
            "batch_size",
            "count",
            "inputs.key",
            "inputs.value.data_type",
            "inputs.value.dims",
            "inputs.value.zero_data",
            "inputs.value.random_data",
            "inputs.value.input_data_file",
        ],
    ),
    field_row(
        Declared(backend_flags::OPERATION_LIBRARIES, "it loads no libraries of custom operations"),
        "model_operations",
        &["op_library_filename"],
    ),
    field_row(Server, "model_transaction_policy", &["decoupled"]),
    field_row(Server, "batch_input", &["kind", "target_name", "data_type", "source_input"]),
    field_row(Server, "batch_output", &["kind", "target_name", "source_input"]),
    field_row(
        Unsupported,
        "model_repository_agents.agents",
        &["name", "parameters.key", "parameters.value"],
    ),
    field_row(Server, "response_cache", &["enable"]),
    field_row(Backend, "", &["runtime"]),
    field_row(
        Server,
        "model_metrics.metric_control",
        &["metric_identifier.family", "histogram_options.buckets"],
    ),
];

const QUEUE_POLICY: &[&str] =
    &["timeout_action", "default_timeout_microseconds", "allow_timeout_override", "max_queue_size"];

/// Whether a backend on a GPU takes its inputs there, the instance says when it is opened.
fn no_copy_ahead(config: &ModelConfig) -> Option<&'static str> {
    let on_gpu = |group: &ModelInstanceGroup| group.kind() == Kind::Gpu;
    (!config.instance_group.iter().any(on_gpu))
        .then_some("inputs are copied ahead to GPUs, and the model has no instance of KIND_GPU")
}

fn no_file(config: &ModelConfig) -> Option<&'static str> {
    (config.platform == ENSEMBLE).then_some(NO_FILE)
}

/// Warnings for fields that are set and have no effect for this model. `flags` are those of its
/// backend; 0 = not known.
pub fn without_effect(config: &ModelConfig, flags: u32) -> Vec<ConfigWarning> {
    let set = set_fields(config);
    let mut warnings = Vec::new();
    let mut warned = BTreeSet::new();
    for row in TABLE {
        for path in row.fields.iter().map(|field| row.path(field)) {
            if !set.contains(&path) {
                continue;
            }
            let reason = match &row.used_by {
                Server | Backend | Unsupported => continue,
                Nothing(reason) => (*reason).to_owned(),
                Unless(reason) => match reason(config) {
                    Some(reason) => reason.to_owned(),
                    None => continue,
                },
                Declared(flag, reason) => {
                    let uses = *flag != 0 && flags & flag != 0;
                    if uses || flags & backend_flags::LISTS_FIELDS == 0 {
                        continue;
                    }
                    format!("backend '{}' does not use it: {reason}", config.backend)
                }
            };
            // A warning names the field that holds a map or a list of messages, and names it once.
            let field = shown_path(&path);
            if warned.insert(field.clone()) {
                let message = format!("'{field}' has no effect: {reason}");
                warnings.push(ConfigWarning { field, message });
            }
        }
    }
    warnings.extend(pinned_memory(config));
    warnings
}

/// The field of a message type that a user would look for: a map instead of its keys and values,
/// `graph_spec` instead of its parts.
fn shown_path(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    let end = parts.iter().position(|part| ["key", "value"].contains(part));
    let spec = parts.iter().position(|part| *part == "graph_spec").map(|at| at + 1);
    parts[..end.into_iter().chain(spec).min().unwrap_or(parts.len())].join(".")
}

/// `enable: false`, which is the default of the field and thus in no list of fields that are set.
fn pinned_memory(config: &ModelConfig) -> Vec<ConfigWarning> {
    let optimization = config.optimization.clone().unwrap_or_default();
    let sides = [
        ("input_pinned_memory", optimization.input_pinned_memory),
        ("output_pinned_memory", optimization.output_pinned_memory),
    ];
    let off = sides.into_iter().filter(|(_, pinned)| pinned.is_some_and(|pinned| !pinned.enable));
    off.map(|(side, _)| {
        let field = format!("optimization.{side}");
        let message = format!(
            "'{field}' has no effect: instances on a GPU copy through pinned memory, within \
             --pinned-memory-pool-byte-size"
        );
        ConfigWarning { field, message }
    })
    .collect()
}

impl FieldRow {
    fn path(&self, field: &str) -> String {
        if self.within.is_empty() { field.to_owned() } else { format!("{}.{field}", self.within) }
    }
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
