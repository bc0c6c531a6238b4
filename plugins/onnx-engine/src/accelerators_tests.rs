//! Unit tests of `accelerators.rs` and `provider_options.rs`.

use super::*;
use trtserver_framework::config::{Accelerator, ConfigFacts};

/// On GPUs, name, parameters.
type Requested<'a> = (bool, &'a str, &'a [(&'a str, &'a str)]);

/// `gpu` and `other`: the model has such instances.
fn config(gpu: bool, other: bool, accelerators: &[Requested<'_>]) -> Config {
    let accelerators = accelerators.iter().map(|(gpu, name, parameters)| Accelerator {
        gpu: *gpu,
        name: (*name).to_owned(),
        parameters: owned(parameters),
    });
    let facts = ConfigFacts {
        accelerators: accelerators.collect(),
        gpu_instances: gpu,
        other_instances: other,
        ..ConfigFacts::default()
    };
    Config { model: "m".to_owned(), facts, ..Config::default() }
}

fn owned(options: &[(&str, &str)]) -> BTreeMap<String, String> {
    options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn with(
    config: &Config,
    params: &[(&str, &str)],
    settings: &AcceleratorSettings,
) -> Result<AcceleratorOptions, String> {
    AcceleratorOptions::new(config, params.iter().copied(), settings).map_err(|fault| fault.text)
}

fn plan(config: &Config) -> Result<AcceleratorOptions, String> {
    with(config, &[], &AcceleratorSettings::default())
}

fn providers(list: &[ProviderOptions]) -> Vec<ExecutionProvider> {
    list.iter().map(|one| one.provider).collect()
}

#[test]
fn gpu_instances_use_cuda_behind_the_requested_provider() {
    let plain = plan(&config(true, true, &[])).unwrap();
    assert_eq!((providers(&plain.gpu), plain.cpu.len()), (vec![ExecutionProvider::Cuda], 0));
    let both = plan(&config(true, false, &[(true, "tensorrt", &[])])).unwrap();
    assert_eq!(providers(&both.gpu), [ExecutionProvider::TensorRt, ExecutionProvider::Cuda]);
    let order = [(true, "cuda", &[][..]), (true, "tensorrt", &[])];
    let order = plan(&config(true, false, &order)).unwrap();
    assert_eq!(providers(&order.gpu), [ExecutionProvider::Cuda, ExecutionProvider::TensorRt]);
    assert_eq!(plan(&config(false, true, &[])), Ok(AcceleratorOptions::default()));
    let cpu = plan(&config(true, true, &[(false, "openvino", &[("precision", "FP16")])])).unwrap();
    assert_eq!(providers(&cpu.cpu), [ExecutionProvider::OpenVino]);
    assert_eq!(cpu.cpu[0].options, owned(&[("precision", "FP16")]));
}

#[test]
fn accelerators_that_cannot_be_used_are_refused() {
    for (config, expected) in [
        (
            config(true, false, &[(true, "magics", &[])]),
            "gpu_execution_accelerator 'magics' requested for model 'm': unknown execution accelerator; ONNX Runtime \
             has 'cuda' and 'tensorrt' for GPUs, and 'openvino' for CPUs",
        ),
        (config(true, true, &[(false, "cuda", &[])]), "cpu_execution_accelerator 'cuda' requested"),
        (config(true, true, &[(true, "openvino", &[])]), "unknown execution accelerator"),
        (config(true, false, &[(true, "cuda", &[]), (true, "cuda", &[])]), "it is requested twice"),
        (
            config(true, false, &[(true, "cuda", &[("gpu_mem_limits", "1")])]),
            "unknown parameter 'gpu_mem_limits'; known are: arena_extend_strategy, ",
        ),
        (
            config(true, false, &[(true, "cuda", &[("device_id", "1")])]),
            "parameter 'device_id': the instance group decides",
        ),
        (
            config(true, false, &[(true, "cuda", &[("user_compute_stream", "1")])]),
            "parameter 'user_compute_stream': sessions run on the stream of their instance",
        ),
        (
            config(true, false, &[(true, "tensorrt", &[("trt_cuda_graph_enable", "1")])]),
            "parameter 'trt_cuda_graph_enable': CUDA graphs are offered for sessions of the CUDA provider only",
        ),
        (
            config(true, false, &[(true, "tensorrt", &[("precision_mode", "FP8")])]),
            "unknown precision 'FP8'; known are: FP32, FP16, BF16, INT8",
        ),
    ] {
        let text = plan(&config).unwrap_err();
        assert!(text.contains(expected), "{text}\n{expected}");
    }
}

#[test]
fn names_of_triton_become_options_of_the_library() {
    let parameters = [
        ("precision_mode", "FP16, INT8"),
        ("max_workspace_size_bytes", "4096"),
        ("trt_dla_core", "1"),
    ];
    let config = config(
        true,
        false,
        &[(true, "tensorrt", &parameters), (true, "cuda", &[("use_tf32", "0")])],
    );
    let params = [
        ("cudnn_conv_algo_search", "1"),
        ("arena_extend_strategy", "kSameAsRequested"),
        ("do_copy_in_default_stream", "1"),
        ("gpu_mem_limit", "1000"),
        ("intra_op_thread_count", "2"),
    ];
    let all = with(&config, &params, &AcceleratorSettings::default()).unwrap();
    let expected = [
        ("trt_fp16_enable", "1"),
        ("trt_int8_enable", "1"),
        ("trt_max_workspace_size", "4096"),
        ("trt_dla_core", "1"),
    ];
    assert_eq!(all.gpu[0].options, owned(&expected));
    let expected = [
        ("use_tf32", "0"),
        ("cudnn_conv_algo_search", "HEURISTIC"),
        ("arena_extend_strategy", "kSameAsRequested"),
        ("gpu_mem_limit", "1000"),
    ];
    assert_eq!(all.gpu[1].options, owned(&expected));
    for (key, value, text) in [
        (
            "cudnn_conv_algo_search",
            "3",
            "must be a number below 3 or one of EXHAUSTIVE, HEURISTIC, DEFAULT, not '3'",
        ),
        (
            "do_copy_in_default_stream",
            "0",
            "must be 1, not '0': sessions run on the stream of their instance",
        ),
    ] {
        let refused = with(&config, &[(key, value)], &AcceleratorSettings::default()).unwrap_err();
        assert!(refused.contains(text) && refused.contains("model 'm'"), "{refused}");
    }
}

#[test]
fn convolution_search_is_heuristic_unless_accelerator_or_model_says_otherwise() {
    const KEY: &str = "cudnn_conv_algo_search";
    let cuda: Requested<'_> = (true, "cuda", &[(KEY, "DEFAULT")]);
    let tensorrt: Requested<'_> = (true, "tensorrt", &[]);
    for (accelerators, parameter, expected) in [
        (&[][..], None, "HEURISTIC"),
        (&[tensorrt][..], None, "HEURISTIC"),
        (&[][..], Some("0"), "EXHAUSTIVE"),
        (&[][..], Some("EXHAUSTIVE"), "EXHAUSTIVE"),
        (&[tensorrt][..], Some("2"), "DEFAULT"),
        (&[cuda][..], None, "DEFAULT"),
        (&[cuda][..], Some("0"), "DEFAULT"),
    ] {
        let params: Vec<_> = parameter.map(|value| (KEY, value)).into_iter().collect();
        let all =
            with(&config(true, false, accelerators), &params, &AcceleratorSettings::default())
                .unwrap();
        let last = all.gpu.last().unwrap();
        assert_eq!(last.provider, ExecutionProvider::Cuda);
        assert_eq!(last.options[KEY], expected, "{accelerators:?} {parameter:?}");
        let others = &all.gpu[..all.gpu.len() - 1];
        assert!(others.iter().all(|other| !other.options.contains_key(KEY)), "{others:?}");
    }
}

/// Which sessions run as graphs is decided when they are opened.
#[test]
fn option_for_graphs_is_taken_out() {
    let asks = [(true, "cuda", &[("enable_cuda_graph", "1"), ("use_tf32", "0")][..])];
    let mut all = plan(&config(true, false, &asks)).unwrap();
    assert_eq!(all.take_graph_option().as_deref(), Some("1"));
    assert_eq!(all.take_graph_option(), None);
    assert!(!all.gpu[0].options.contains_key("enable_cuda_graph"));
    assert_eq!(all.gpu[0].options["use_tf32"], "0");
}

#[test]
fn parameters_of_gpus_without_effect_are_named() {
    let params = [("gpu_mem_limit", "1"), ("x", "y"), ("arena_extend_strategy", "0")];
    let all = with(&config(false, true, &[]), &params, &AcceleratorSettings::default()).unwrap();
    assert_eq!(all.ineffective, ["gpu_mem_limit", "arena_extend_strategy"]);
}

#[test]
fn memory_limit_of_the_operator_is_default_and_maximum() {
    let settings = AcceleratorSettings { memory_limit: Some(1 << 20), directory: None };
    let limit = |params: &[(&str, &str)]| {
        with(&config(true, false, &[]), params, &settings)
            .map(|all| all.gpu[0].options["gpu_mem_limit"].clone())
    };
    assert_eq!(limit(&[]), Ok("1048576".to_owned()));
    assert_eq!(limit(&[("gpu_mem_limit", "4096")]), Ok("4096".to_owned()));
    let refused = limit(&[("gpu_mem_limit", "1048577")]).unwrap_err();
    let text = "gpu_mem_limit is 1048577 bytes, at most 1048576 are allowed by \
                --backend-config=onnxruntime,gpu-memory-limit=1048576";
    assert!(refused.ends_with(text), "{refused}");
    for value in ["0", "-1", "much"] {
        let refused = limit(&[("gpu_mem_limit", value)]).unwrap_err();
        assert!(refused.contains("gpu_mem_limit must be a number of bytes above 0"), "{refused}");
    }
    let settings = |key, value| {
        AcceleratorSettings::new(|asked| (asked == key).then_some(value)).map_err(|f| f.text)
    };
    assert_eq!(settings(LIMIT_SETTING, "12").unwrap().memory_limit, Some(12));
    assert!(
        settings(LIMIT_SETTING, "x").unwrap_err().contains("'gpu-memory-limit' must be a number")
    );
    assert!(settings(DIRECTORY_SETTING, "rel").unwrap_err().contains("absolute path, not 'rel'"));
}

#[test]
fn files_of_options_stay_in_the_directory_for_them() {
    let cache = |directory: Option<&str>, value: &str| {
        let settings =
            AcceleratorSettings { memory_limit: None, directory: directory.map(PathBuf::from) };
        let parameters = [("trt_engine_cache_path", value)];
        with(&config(true, false, &[(true, "tensorrt", &parameters)]), &[], &settings)
            .map(|all| all.gpu[0].options["trt_engine_cache_path"].clone())
    };
    assert_eq!(cache(Some("/cache"), "m"), Ok("/cache/m".to_owned()));
    assert_eq!(cache(Some("/cache"), "/cache/a; b"), Ok("/cache/a;/cache/b".to_owned()));
    assert!(cache(None, "m").unwrap_err().contains("accelerator-directory=DIRECTORY"));
    for outside in ["/etc", "../x", "a;/cache/../etc"] {
        let text = cache(Some("/cache"), outside).unwrap_err();
        assert!(text.contains("is not in /cache, the directory for such files"), "{text}");
    }
}

#[test]
fn missing_provider_is_named_with_those_that_the_library_has() {
    let all = plan(&config(true, false, &[])).unwrap();
    let available = ["CPUExecutionProvider".to_owned()];
    let fault =
        all.expect_available("m", "ONNX Runtime 1.31.1 from /lib/x.so", &available).unwrap_err();
    assert_eq!(
        fault.text,
        "the instances of KIND_GPU of model 'm' need the CUDAExecutionProvider, which ONNX Runtime 1.31.1 from \
         /lib/x.so does not have; it has: CPUExecutionProvider; `cargo xtask runtimes --gpu` or `pip install \
         onnxruntime-gpu` gets a library that has it"
    );
    let has = ["CUDAExecutionProvider".to_owned()];
    assert_eq!(all.expect_available("m", "x", &has), Ok(()));
}
