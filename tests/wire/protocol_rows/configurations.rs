//! docs/protocol/v1.md §7.2, §7.3 and v2.md §3.4, §3.7: texts of refused configurations, in the
//! repository index. `invalid_scheduling.rs` has the texts of schedulers.

use serde_json::Value;
use trtserver_tests::{Server, probe};

/// The configuration of a probe model with this change.
fn changed(name: &str, from: &str, to: &str) -> String {
    let config = probe(name, &[]);
    assert!(config.contains(from), "{config}");
    config.replacen(from, to, 1)
}

/// An ensemble of two steps `inner`, whose parts are replaced by `change`.
fn ensemble(name: &str, from: &str, to: &str) -> String {
    let tensor = "data_type: TYPE_FP32 dims: [ -1 ]";
    let step = |input: &str, output: &str| {
        format!(
            "step {{ model_name: \"inner\" model_version: -1 \
             input_map {{ key: \"INPUT0\" value: \"{input}\" }} output_map {{ key: \"OUTPUT0\" value: \"{output}\" }} }}"
        )
    };
    let config = format!(
        "name: \"{name}\" platform: \"ensemble\" max_batch_size: 8\ninput {{ name: \"IN\" {tensor} }}\noutput {{ name: \"OUT\" {tensor} }}\n\
         ensemble_scheduling {{ {} {} }}\n",
        step("IN", "mid"),
        step("mid", "OUT")
    );
    assert!(config.contains(from), "{config}");
    config.replacen(from, to, 1)
}

/// Editors on Windows write comments in GBK or Latin-1. Outside of comments the text is UTF-8.
#[test]
fn comments_may_be_in_any_encoding() {
    let config = probe("m", &[]);
    let comments = |code: &str| {
        [b"# \xb7\xd6\xc0\xe0 \xff\n".as_slice(), code.as_bytes(), b"# caf\xe9"].concat()
    };
    let server =
        Server::new().model("m", &config).file("m/config.pbtxt", comments(&config)).start();
    assert_eq!(server.infer("m", "").status, 200);
    assert!(server.stop().success());
    let wrong = [comments(&config), b"\nname: '\xe9' # \xe9\n".to_vec()].concat();
    let refused =
        Server::new().model("m", &config).file("m/config.pbtxt", wrong).refuses_to_start();
    let text = "not UTF-8 text, which only comments need not be";
    assert!(refused.stderr.contains(text), "{}", refused.stderr);
}

/// Name, configuration, and the text that the index shows.
fn refused() -> Vec<(&'static str, String, &'static str)> {
    let input = "name: \"INPUT0\"";
    let max = "max_batch_size: 8";
    let add = |name: &'static str, text: &str| (name, probe(name, &[]) + text + "\n");
    let with = |name: &'static str, text: &str, says: &'static str| {
        let (name, config) = add(name, text);
        (name, config, says)
    };
    let tensors = |name: &'static str, from: &str, to: &str, says: &'static str| {
        (name, changed(name, from, to), says)
    };
    let steps = |name: &'static str, from: &str, to: &str, says: &'static str| {
        (name, ensemble(name, from, to), says)
    };
    let reshape = |shape: &str| format!("dims: [ 4 ] reshape {{ shape: [ {shape} ] }}");
    let dims = "dims: [ -1 ]";
    vec![
        tensors(
            "batch",
            max,
            "max_batch_size: -1",
            "'max_batch_size' must be non-negative value for batch",
        ),
        tensors("nameless", input, "name: \"\"", "model input must specify 'name' for nameless"),
        tensors(
            "typeless",
            "data_type: TYPE_FP32",
            "",
            "model input 'INPUT0' must specify 'data_type' for typeless",
        ),
        tensors("dimless", dims, "", "model input 'INPUT0' must specify 'dims' for dimless"),
        tensors(
            "dim",
            dims,
            "dims: [ -2 ]",
            "model input 'INPUT0' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for dim",
        ),
        tensors(
            "reshape_dim",
            dims,
            &reshape("-2"),
            "model input 'INPUT0' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for \
             reshape_dim",
        ),
        tensors(
            "reshape_size",
            dims,
            &reshape("3"),
            "model input 'INPUT0' has different size for dims and reshape for reshape_size",
        ),
        tensors(
            "format",
            "data_type: TYPE_FP32",
            "data_type: TYPE_FP32 format: FORMAT_NHWC",
            "model input NHWC/NCHW require 3 dims for format",
        ),
        tensors(
            "shape_tensor",
            dims,
            "dims: [ -1 ] is_shape_tensor: true",
            "shape tensors are only supported for TensorRT platform for shape_tensor",
        ),
        tensors(
            "non_linear",
            dims,
            "dims: [ -1 ] is_non_linear_format_io: true",
            "Non-linear IO format is only supported for the TensorRT platform",
        ),
        with(
            "on_cpu",
            "instance_group { kind: KIND_CPU gpus: 0 }",
            "instance group on_cpu_0 of model on_cpu has kind KIND_CPU but specifies one or more GPUs",
        ),
        with(
            "by_model",
            "instance_group { kind: KIND_MODEL gpus: 0 }",
            "instance group by_model_0 of model by_model has kind KIND_MODEL but specifies one or more GPUs",
        ),
        with(
            "on_gpu",
            "instance_group { kind: KIND_GPU }",
            "instance group on_gpu_0 of model on_gpu has kind KIND_GPU but no GPUs are available",
        ),
        with(
            "auto",
            "instance_group { gpus: 0 }",
            "instance group auto_0 of model auto has kind KIND_CPU but specifies one or more GPUs",
        ),
        with(
            "policy",
            "version_policy { specific { versions: [ 9 ] } }",
            "at least one version must be available under the version policy of model 'policy'",
        ),
        with(
            "none_latest",
            "version_policy { latest { num_versions: 0 } }",
            "at least one version must be available under the version policy of model 'none_latest'",
        ),
        with(
            "cache",
            "response_cache { enable: true } sequence_batching { }",
            "Response Cache does not currently support model cache with sequence batching scheduler. Please disable the \
             response cache.",
        ),
        with(
            "cache_stream",
            "response_cache { enable: true } model_transaction_policy { decoupled: true }",
            "Response Cache does not currently support model cache_stream with 'decoupled' transaction policy. Please disable \
             the response cache.",
        ),
        with(
            "warm_dims",
            "model_warmup { name: \"w\" batch_size: 1 inputs { key: \"INPUT0\" value { data_type: TYPE_FP32 dims: [ -1 ] zero_data: true } } }",
            "warmup setting expects all variable-size dimensions are specified for input 'INPUT0' for warm_dims",
        ),
        with(
            "warm_data",
            "model_warmup { name: \"w\" batch_size: 1 inputs { key: \"INPUT0\" value { data_type: TYPE_FP32 dims: [ 1 ] } } }",
            "warmup setting expects input 'INPUT0' to have input_data_type set for warm_data",
        ),
        with(
            "metric_id",
            "model_metrics { metric_control { } }",
            "metric control must specify 'metric_identifier'",
        ),
        with(
            "metric_family",
            "model_metrics { metric_control { metric_identifier { } } }",
            "metric identifier must specify non-empty 'family'",
        ),
        with(
            "metric_options",
            "model_metrics { metric_control { metric_identifier { family: \"nv_inference_first_response_histogram_ms\" } } }",
            "metric control must specify 'histogram_options'",
        ),
        with(
            "metric_unknown",
            "model_metrics { metric_control { metric_identifier { family: \"x\" } histogram_options { buckets: 1 } } }",
            "Metric family 'x' in 'metric_identifier' is not a customizable metric in Triton core.",
        ),
        with(
            "labels",
            "output { name: \"MORE\" data_type: TYPE_FP32 dims: [ 1 ] label_filename: \"none.txt\" }",
            "none.txt",
        ),
        with(
            "labels_outside",
            "output { name: \"MORE\" data_type: TYPE_FP32 dims: [ 1 ] label_filename: \"../x\" }",
            "../x",
        ),
        (
            "platform",
            changed("platform", "backend: \"probe\"", "platform: \"strange\""),
            "unexpected platform type 'strange' for platform",
        ),
        (
            "unknown_backend",
            changed("unknown_backend", "backend: \"probe\"", "backend: \"strange\""),
            "unable to find backend library for backend 'strange', try specifying runtime on the model configuration. Model 'unknown_backend' needs it; installed backends: ",
        ),
        (
            "pair",
            changed(
                "pair",
                "backend: \"probe\"",
                "backend: \"onnxruntime\" platform: \"tensorrt_plan\"",
            ),
            "unexpected 'platform' and 'backend' pair, got:tensorrt_plan, onnxruntime",
        ),
        (
            "other_name",
            probe("another", &[]),
            "unexpected directory name 'other_name' for model 'another', directory name must equal model name",
        ),
        steps(
            "no_steps",
            "ensemble_scheduling {",
            "ensemble_scheduling { } #",
            "must specify 'step' for ensemble 'no_steps'",
        ),
        steps(
            "no_name",
            "model_name: \"inner\"",
            "",
            "must specify 'model_name' in step 0 of ensemble 'no_name'",
        ),
        steps(
            "no_input_map",
            "input_map { key: \"INPUT0\" value: \"IN\" }",
            "",
            "must specify 'input_map' in step 0 of ensemble 'no_input_map'",
        ),
        steps(
            "no_output_map",
            "output_map { key: \"OUTPUT0\" value: \"mid\" }",
            "",
            "must specify 'output_map' in step 0 of ensemble 'no_output_map'",
        ),
        steps(
            "twice",
            "value: \"OUT\"",
            "value: \"mid\"",
            "ensemble tensor 'mid' can appear in an output map only once for ensemble 'twice'",
        ),
        steps(
            "unread",
            "value: \"IN\"",
            "value: \"mid\"",
            "ensemble input 'IN' for ensemble unread",
        ),
        steps("unwritten", "value: \"OUT\"", "value: \"ELSE\"", "for ensemble"),
        steps("grouped", "name: \"IN\"", "name: \"IN\"", ""),
        steps(
            "unknown_step",
            "model_name: \"inner\"",
            "model_name: \"absent\"",
            "ensemble unknown_step contains models that are not available or ambiguous: absent",
        ),
        steps(
            "version",
            "model_version: -1",
            "model_version: 7",
            "ensemble 'version' depends on 'inner' whose required version 7 is not loaded",
        ),
        steps(
            "batches",
            max,
            "max_batch_size: 9",
            "ensemble batches allows maximum batch size 9, but it contains model inner which only allows maximum batch size to be 8",
        ),
        steps("type", "data_type: TYPE_FP32", "data_type: TYPE_INT32", "inconsistent data type: "),
        steps("input_name", "key: \"INPUT0\"", "key: \"INPUT9\"", "in ensemble input_name, "),
        steps(
            "grouped_ensemble",
            "name: \"grouped_ensemble\"",
            "name: \"grouped_ensemble\" instance_group { count: 1 }",
            "instance group should not be specified for ensemble 'grouped_ensemble'",
        ),
        steps(
            "optimized",
            "name: \"optimized\"",
            "name: \"optimized\" optimization { priority: PRIORITY_MAX }",
            "optimization should not be specified for ensemble 'optimized'",
        ),
        steps(
            "warm",
            "name: \"warm\"",
            "name: \"warm\" model_warmup { name: \"w\" }",
            "model_warmup can not be specified for ensemble 'warm'",
        ),
    ]
}

#[test]
fn refused_configurations_have_the_texts_of_both_generations() {
    let refused = refused();
    let server = Server::new().model("inner", probe("inner", &[])).flag("--exit-on-error=false");
    let server =
        refused.iter().fold(server, |server, (name, config, _)| server.model(name, config));
    let server = server.start();
    let index = server.post("/v2/repository/index", &[], "").json();
    let reason = |name: &str| {
        let entries = index.as_array().into_iter().flatten();
        let mut entries = entries.filter(|entry| entry["name"] == name);
        entries.next().map_or(Value::Null, |entry| entry["reason"].clone())
    };
    let wrong: Vec<String> = refused
        .iter()
        .filter(|(name, _, says)| match reason(name).as_str() {
            Some(reason) => says.is_empty() || !reason.contains(says),
            None => !says.is_empty(),
        })
        .map(|(name, _, says)| format!("{name}: expected {says:?}, found {}", reason(name)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(server.stop().success());
}
