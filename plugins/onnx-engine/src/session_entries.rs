//! Settings of a session by the library's own names, `session.…`: which of them a model may set.
//!
//! A configuration may come with a load request, so a parameter that names a file of the server is
//! for the operator: `--backend-config=onnxruntime,session.…=VALUE`, which sets any of them for all
//! models. Unknown parameters are refused.

use std::path::Path;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files::{FilePlaces, file_refused};

/// Names of such parameters and settings begin with it.
pub const PREFIX: &str = "session.";
/// The directory of the files that hold weights.
pub const EXTERNAL_FOLDER: &str = "session.model_external_initializers_file_folder_path";
/// `ORT` or `ONNX`; without it the file's extension decides.
pub const LOAD_FORMAT: &str = "session.load_model_format";

/// Who may set an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryRule {
    /// The model; the library checks the value.
    Model,
    /// The model; the value is a directory, relative to that of the version.
    ModelDirectory,
    /// The operator: with the reason.
    Operator(&'static str),
}
use EntryRule::{Model, ModelDirectory, Operator};

const WRITES: &str = "it makes the library write a file";
const READS: &str = "it names a file that the library reads";
const PROCESS: &str = "it concerns all models of the process";

/// Names up to ONNX Runtime 1.31.
const KNOWN: &[(&str, EntryRule)] = &[
    ("session.allow_released_opsets_only", Model),
    ("session.collect_node_memory_stats_to_file", Operator(WRITES)),
    ("session.compile_only", Model),
    ("session.debug_layout_transformation", Operator(WRITES)),
    ("session.disable_aot_function_inlining", Model),
    ("session.disable_cpu_ep_fallback", Model),
    ("session.disable_double_qdq_remover", Model),
    ("session.disable_model_compile", Model),
    ("session.disable_prepacking", Model),
    ("session.disable_qdq_constant_folding", Model),
    ("session.disable_quant_qdq", Model),
    ("session.dynamic_block_base", Model),
    ("session.enable_cpu_mem_arena", Model),
    ("session.enable_dq_matmulnbits_fusion", Model),
    ("session.enable_mem_pattern", Model),
    ("session.enable_moe_expert_counting", Operator(WRITES)),
    ("session.enable_moe_expert_statistics", Operator(WRITES)),
    ("session.enable_profiling", Operator(WRITES)),
    ("session.enable_quant_qdq_cleanup", Model),
    ("session.enable_saved_runtime_optimizations", Model),
    ("session.execution_mode", Model),
    ("session.fail_on_suboptimal_compiled_model", Model),
    ("session.force_spinning_stop", Model),
    ("session.function_expansion_byte_limit", Operator("it limits what a model may expand to")),
    ("session.function_expansion_node_limit", Operator("it limits what a model may expand to")),
    ("session.gqa_value_layout", Model),
    ("session.graph_optimization_level", Model),
    ("session.graph_optimizations_loop_level", Model),
    ("session.inter_op.allow_spinning", Model),
    ("session.inter_op.spin_backoff_max", Model),
    ("session.inter_op.spin_duration_us", Model),
    ("session.inter_op_num_threads", Model),
    ("session.intra_op.allow_spinning", Model),
    ("session.intra_op.spin_backoff_max", Model),
    ("session.intra_op.spin_duration_us", Model),
    ("session.intra_op_num_threads", Model),
    ("session.intra_op_thread_affinities", Model),
    ("session.layer_assignment_settings", Operator(READS)),
    (LOAD_FORMAT, Model),
    ("session.log_id", Model),
    ("session.log_severity_level", Model),
    ("session.log_verbosity_level", Model),
    ("session.max_shape_override", Model),
    (EXTERNAL_FOLDER, ModelDirectory),
    ("session.moe_expert_counter_alpha", Model),
    ("session.moe_expert_counter_beta", Model),
    ("session.moe_expert_counter_state_file", Operator(WRITES)),
    ("session.name_based_layer_assignment", Model),
    ("session.node_partition_config_file", Operator(READS)),
    ("session.optimized_model_external_initializers_file_name", Operator(WRITES)),
    ("session.optimized_model_external_initializers_min_size_in_bytes", Operator(WRITES)),
    ("session.optimized_model_filepath", Operator(WRITES)),
    ("session.prepack.enable_parallel", Model),
    ("session.qdq_matmulnbits_accuracy_level", Model),
    ("session.qdq_matmulnbits_block_size", Model),
    ("session.qdqisint8allowed", Model),
    ("session.record_ep_graph_assignment_info", Model),
    ("session.resource_cuda_partitioning_settings", Operator(READS)),
    ("session.save_external_prepacked_constant_initializers", Operator(WRITES)),
    ("session.save_model_format", Operator(WRITES)),
    ("session.set_denormal_as_zero", Model),
    ("session.strict_shape_type_inference", Model),
    ("session.strict_workspace_verification", Model),
    ("session.use_deterministic_compute", Model),
    ("session.use_device_allocator_for_initializers", Model),
    ("session.use_env_allocators", Operator(PROCESS)),
    ("session.use_external_initializer_file_buffers_directly", Model),
    ("session.use_memory_mapped_ort_model", Model),
    ("session.use_ort_model_bytes_directly", Model),
    ("session.use_ort_model_bytes_for_initializers", Model),
    ("session.use_per_session_threads", Operator(PROCESS)),
    ("session.x64quantprecision", Model),
];

/// The entries of a session, by name. Those of the model take precedence over the operator's where
/// both may set one, and these over the server's own.
///
/// # Errors
/// A parameter is unknown, is the operator's, or names a directory elsewhere.
pub fn read_entries<'a>(
    settings: impl Iterator<Item = (&'a str, &'a str)>,
    params: impl Iterator<Item = (&'a str, &'a str)>,
    (model, places, version_dir): (&str, &FilePlaces, &Path),
) -> Result<Vec<(String, String)>, PluginFault> {
    let mut entries: Vec<(String, String)> = Vec::new();
    let mut set = |key: &str, value: String| {
        entries.retain(|(known, _)| known != key);
        entries.push((key.to_owned(), value));
    };
    // Threads that spin between requests take CPU time from other models and from the network
    // threads.
    set("session.intra_op.allow_spinning", "0".to_owned());
    set("session.inter_op.allow_spinning", "0".to_owned());
    for (key, value) in settings.filter(|(key, _)| key.starts_with(PREFIX)) {
        set(key, value.to_owned());
    }
    for (key, value) in params.filter(|(key, _)| key.starts_with(PREFIX)) {
        match KNOWN.iter().find(|(known, _)| *known == key).map(|(_, rule)| *rule) {
            Some(Model) => set(key, value.to_owned()),
            Some(ModelDirectory) => {
                let folder = places.resolve(version_dir, value).map_err(|refusal| {
                    file_refused(model, &refusal).within(format_args!("parameter '{key}'"))
                })?;
                set(key, folder.display().to_string());
            }
            Some(Operator(why)) => {
                return Err(PluginFault::invalid(format!(
                    "parameter '{key}' is for the operator, because {why}: \
                     --backend-config=onnxruntime,{key}=VALUE"
                )));
            }
            None => {
                let known = KNOWN.iter().filter(|(_, rule)| !matches!(rule, Operator(_)));
                let known: Vec<_> = known.map(|(name, _)| *name).collect();
                return Err(PluginFault::invalid(format!(
                    "unknown parameter '{key}'; known are: {}; the operator can set others: \
                     --backend-config=onnxruntime,{key}=VALUE",
                    known.join(", ")
                )));
            }
        }
    }
    Ok(entries)
}

/// Whether the library reads the file as an ONNX model, not in its own format.
pub fn is_onnx_format(file: &Path, entries: &[(String, String)]) -> bool {
    match entries.iter().find(|(key, value)| key == LOAD_FORMAT && !value.is_empty()) {
        Some((_, format)) => format != "ORT",
        None => file.extension().is_none_or(|extension| extension != "ort"),
    }
}

#[cfg(test)]
#[path = "session_entries_tests.rs"]
mod tests;
