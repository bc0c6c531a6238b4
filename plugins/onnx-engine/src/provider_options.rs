//! Options of execution providers that a configuration may set: names of ONNX Runtime, and those of
//! Triton's backend.

use crate::gpu::buckets::GRAPHS;
use crate::provider::ExecutionProvider;

/// The CUDA provider's limit of an arena.
pub const MEMORY_LIMIT: &str = "gpu_mem_limit";

/// How the CUDA provider chooses the algorithm of a convolution, and what it does without the
/// option: the library's own default, EXHAUSTIVE, measures all of them at each change of a shape,
/// which stalls a network for most of a second.
pub const CONVOLUTION_SEARCH: (&str, &str) = ("cudnn_conv_algo_search", "HEURISTIC");

/// What happens with an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionRule {
    /// Passed to the library, which checks the value.
    Passed,
    /// The same; the value is one file or directory, or several with semicolons between.
    Path,
    /// The same; the value is a part of the names of files.
    Name,
    /// As [`OptionRule::Passed`], under the library's name.
    Renamed(&'static str),
    /// A list of precisions, see [`precision_mode`].
    Precisions,
    /// With the reason.
    Refused(&'static str),
}
use OptionRule::{Name, Passed, Path, Precisions, Refused, Renamed};

const BY_GROUP: &str = "the instance group decides";
const STREAM: &str = "sessions run on the stream of their instance";
const ADDRESS: &str = "its value is an address in the process";
const GRAPH: &str = "CUDA graphs are offered for sessions of the CUDA provider only";
const DUMP: &str = "it writes files into the working directory of the server";

const CUDA: &[(&str, OptionRule)] = &[
    ("arena_extend_strategy", Passed),
    ("cudnn_conv1d_pad_to_nc1d", Passed),
    ("cudnn_conv_algo_search", Passed),
    ("cudnn_conv_use_max_workspace", Passed),
    ("device_id", Refused(BY_GROUP)),
    ("do_copy_in_default_stream", Refused(STREAM)),
    (GRAPHS, Passed),
    ("enable_skip_layer_norm_strict_mode", Passed),
    ("fuse_conv_bias", Passed),
    ("gpu_external_alloc", Refused(ADDRESS)),
    ("gpu_external_empty_cache", Refused(ADDRESS)),
    ("gpu_external_free", Refused(ADDRESS)),
    (MEMORY_LIMIT, Passed),
    ("has_user_compute_stream", Refused(STREAM)),
    ("prefer_nhwc", Passed),
    ("sdpa_kernel", Passed),
    ("tunable_op_enable", Passed),
    ("tunable_op_max_tuning_duration_ms", Passed),
    ("tunable_op_tuning_enable", Passed),
    ("use_ep_level_unified_stream", Passed),
    ("use_tf32", Passed),
    ("user_compute_stream", Refused(STREAM)),
];

const TENSORRT: &[(&str, OptionRule)] = &[
    ("device_id", Refused(BY_GROUP)),
    ("has_user_compute_stream", Refused(STREAM)),
    ("max_workspace_size_bytes", Renamed("trt_max_workspace_size")),
    ("precision_mode", Precisions),
    ("trt_auxiliary_streams", Passed),
    ("trt_bf16_enable", Passed),
    ("trt_build_heuristics_enable", Passed),
    ("trt_builder_optimization_level", Passed),
    ("trt_context_memory_sharing_enable", Passed),
    ("trt_cuda_graph_enable", Refused(GRAPH)),
    ("trt_detailed_build_log", Passed),
    ("trt_dla_core", Passed),
    ("trt_dla_enable", Passed),
    ("trt_dump_ep_context_model", Refused(DUMP)),
    ("trt_dump_subgraphs", Refused(DUMP)),
    ("trt_engine_cache_enable", Passed),
    ("trt_engine_cache_path", Path),
    ("trt_engine_cache_prefix", Name),
    ("trt_engine_decryption_enable", Passed),
    ("trt_engine_decryption_lib_path", Path),
    ("trt_engine_hw_compatible", Passed),
    ("trt_extra_plugin_lib_paths", Path),
    ("trt_force_sequential_engine_build", Passed),
    ("trt_force_timing_cache", Passed),
    ("trt_fp16_enable", Passed),
    ("trt_int8_calibration_table_name", Path),
    ("trt_int8_enable", Passed),
    ("trt_int8_use_native_calibration_table", Passed),
    ("trt_layer_norm_fp32_fallback", Passed),
    ("trt_max_partition_iterations", Passed),
    ("trt_max_workspace_size", Passed),
    ("trt_min_subgraph_size", Passed),
    ("trt_op_types_to_exclude", Passed),
    ("trt_preview_features", Passed),
    ("trt_profile_max_shapes", Passed),
    ("trt_profile_min_shapes", Passed),
    ("trt_profile_opt_shapes", Passed),
    ("trt_sparsity_enable", Passed),
    ("trt_tactic_sources", Passed),
    ("trt_timing_cache_enable", Passed),
    ("trt_timing_cache_path", Path),
    ("user_compute_stream", Refused(STREAM)),
];

const OPENVINO: &[(&str, OptionRule)] = &[
    ("cache_dir", Path),
    ("device_type", Passed),
    ("disable_dynamic_shapes", Passed),
    ("enable_qdq_optimizer", Passed),
    ("load_config", Path),
    ("model_priority", Passed),
    ("num_of_threads", Passed),
    ("num_streams", Passed),
    ("precision", Passed),
];

fn table(provider: ExecutionProvider) -> &'static [(&'static str, OptionRule)] {
    match provider {
        ExecutionProvider::Cuda => CUDA,
        ExecutionProvider::TensorRt => TENSORRT,
        ExecutionProvider::OpenVino => OPENVINO,
    }
}

/// `None`: an unknown option.
pub fn option_rule(provider: ExecutionProvider, name: &str) -> Option<OptionRule> {
    table(provider).iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule)
}

/// The options that are not refused.
pub fn known_options(provider: ExecutionProvider) -> impl Iterator<Item = &'static str> {
    table(provider).iter().filter(|(_, rule)| !matches!(rule, Refused(_))).map(|(name, _)| *name)
}

/// The option that allows TensorRT a precision beside FP32; empty for FP32, `None` for an unknown
/// one.
pub fn precision_mode(name: &str) -> Option<&'static str> {
    match name {
        "FP32" => Some(""),
        "FP16" => Some("trt_fp16_enable"),
        "BF16" => Some("trt_bf16_enable"),
        "INT8" => Some("trt_int8_enable"),
        _ => None,
    }
}

/// A parameter of a model that sets an option of the CUDA provider, as in Triton.
#[derive(Debug, PartialEq, Eq)]
pub struct ModelParameter<'a> {
    pub key: &'a str,
    value: &'a str,
    /// What its numbers stand for.
    values: &'static [&'static str],
}

/// `None`: another parameter.
pub fn parse_model_parameter<'a>((key, value): (&'a str, &'a str)) -> Option<ModelParameter<'a>> {
    let values: &[&str] = match key {
        MEMORY_LIMIT | "do_copy_in_default_stream" => &[],
        "arena_extend_strategy" => &["kNextPowerOfTwo", "kSameAsRequested"],
        "cudnn_conv_algo_search" => &["EXHAUSTIVE", "HEURISTIC", "DEFAULT"],
        _ => return None,
    };
    Some(ModelParameter { key, value: value.trim(), values })
}

impl ModelParameter<'_> {
    /// The option and its value; an empty name if the parameter asks for what is done anyway.
    pub fn option(&self) -> Result<(String, String), String> {
        let Self { key, value, values } = self;
        if *key == "do_copy_in_default_stream" {
            return match *value {
                "1" | "true" => Ok((String::new(), String::new())),
                _ => Err(format!("parameter '{key}' must be 1, not '{value}': {STREAM}")),
            };
        }
        if values.is_empty() {
            return Ok(((*key).to_owned(), (*value).to_owned()));
        }
        let by_number = value.parse().ok().and_then(|n: usize| values.get(n));
        let found = by_number.or_else(|| values.iter().find(|known| *known == value));
        match found {
            Some(found) => Ok(((*key).to_owned(), (*found).to_owned())),
            None => Err(format!(
                "parameter '{key}' must be a number below {} or one of {}, not '{value}'",
                values.len(),
                values.join(", ")
            )),
        }
    }
}
