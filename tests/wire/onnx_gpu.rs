//! ONNX models on GPUs, with test doubles of ONNX Runtime (`tests/fakes/onnxruntime`) and of the
//! CUDA driver: sessions on the host's stream, tensors in device memory, limits, accelerators,
//! placement. Nothing here is a result on a GPU.

use serde_json::{Value, json};
use std::fs::read_to_string;
use trtserver_tests::control::Control;
use trtserver_tests::fakes::Fakes;
use trtserver_tests::{Response, Running, Server, dist, probe};

/// SUM is written into a block of the host; ANY, whose shape the file does not give, into memory of
/// the library. N is read and COPY written by the CPU. The output A is the input A.
const MODEL: &str = "fake onnx
weights 1000
input A FP32 -1 4
input B FP32 -1 4
input N INT64 -1 1 cpu
output SUM FP32 -1 4 = add A B
output ANY FP32 -1 -1 = add B B
output COPY INT64 -1 1 cpu = copy N
output A FP32 -1 4 = pass A
";

fn config(name: &str, groups: &str, more: &str) -> String {
    let tensor = |kind: &str, name: &str, dtype: &str, dims: &str| {
        format!("{kind} {{ name: \"{name}\" data_type: TYPE_{dtype} dims: [ {dims} ] }}\n")
    };
    [
        format!("name: \"{name}\"\nplatform: \"onnxruntime_onnx\"\nmax_batch_size: 8\n{groups}\n{more}\n"),
        tensor("input", "A", "FP32", "4"),
        tensor("input", "B", "FP32", "4"),
        tensor("input", "N", "INT64", "1"),
        tensor("output", "SUM", "FP32", "4"),
        tensor("output", "ANY", "FP32", "4"),
        tensor("output", "COPY", "INT64", "1"),
        tensor("output", "A", "FP32", "4"),
    ]
    .concat()
}

pub fn parameter(key: &str, value: &str) -> String {
    format!("parameters {{ key: \"{key}\" value {{ string_value: \"{value}\" }} }}\n")
}

/// `kind` is `gpu` or `cpu`, `parameters` are pairs of words.
fn accelerator(kind: &str, name: &str, parameters: &[(&str, &str)]) -> String {
    let parameters: String = parameters
        .iter()
        .map(|(key, value)| format!("parameters {{ key: \"{key}\" value: \"{value}\" }} "))
        .collect();
    format!(
        "optimization {{ execution_accelerators {{ {kind}_execution_accelerator [ {{ name: \"{name}\" {parameters} }} ] }} }}\n"
    )
}

pub fn server(fakes: &Fakes) -> Server {
    let library = dist().join("gpu-test/fake-onnxruntime/libonnxruntime.so.1");
    fakes
        .server()
        .env("TRTSERVER_ONNXRUNTIME_LIBRARY", library)
        .env("FAKE_ORT_LOG", fakes.path("sessions"))
}

pub trait OnnxModel {
    fn onnx(self, name: &str, groups: &str, more: &str) -> Self;
}

impl OnnxModel for Server {
    fn onnx(self, name: &str, groups: &str, more: &str) -> Self {
        self.model(name, config(name, groups, more)).file(&format!("{name}/1/model.onnx"), MODEL)
    }
}

pub fn send(server: &Running, model: &str, rows: usize, first: usize) -> Response {
    let floats =
        |factor: usize| -> Vec<usize> { (0..rows * 4).map(|i| factor * (first + i)).collect() };
    let numbers: Vec<usize> = (0..rows).map(|i| first + i).collect();
    let body = json!({ "inputs": [
        { "name": "A", "datatype": "FP32", "shape": [rows, 4], "data": floats(1) },
        { "name": "B", "datatype": "FP32", "shape": [rows, 4], "data": floats(10) },
        { "name": "N", "datatype": "INT64", "shape": [rows, 1], "data": numbers },
    ] });
    server.post(&format!("/v2/models/{model}/infer"), &[], body.to_string())
}

#[track_caller]
pub fn computes(server: &Running, model: &str, rows: usize, first: usize) {
    let response = send(server, model, rows, first);
    assert_eq!(response.status, 200, "{}", response.text());
    let body = response.json();
    let outputs = body["outputs"].as_array().cloned().unwrap_or_default();
    let data = |name: &str| -> Vec<f64> {
        let output = outputs.iter().find(|output| output["name"] == name);
        let data = output.and_then(|output| output["data"].as_array());
        data.into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let floats = |factor: usize| -> Vec<f64> {
        (0..rows * 4).map(|i| (factor * (first + i)) as f64).collect()
    };
    assert_eq!(data("SUM"), floats(11), "{model}");
    assert_eq!(data("ANY"), floats(20), "{model}");
    assert_eq!(data("A"), floats(1), "{model}");
    assert_eq!(data("COPY"), (0..rows).map(|i| (first + i) as f64).collect::<Vec<_>>(), "{model}");
}

fn group(server: &Running, model: &str) -> Value {
    server.get(&format!("/v2/models/{model}/config")).json()["instance_group"][0]["kind"].clone()
}

/// Lines of the fake library's log that contain all words.
pub fn logged(fakes: &Fakes, words: &[&str]) -> Vec<String> {
    let log = read_to_string(fakes.path("sessions")).unwrap_or_default();
    let has = |line: &&str| words.iter().all(|word| line.contains(word));
    log.lines().filter(has).map(str::to_owned).collect()
}

#[test]
fn sessions_run_on_the_stream_of_the_host_and_wait_for_it() {
    let fakes = Fakes::new();
    let batching =
        "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 20000 }";
    let on_gpu = "instance_group { kind: KIND_GPU count: 2 }";
    let server = server(&fakes)
        .env("FAKE_CUDA_DEVICES", "A/7.5/64,B/8.0/64")
        .onnx("gpu", on_gpu, batching)
        .onnx(
            "isolated",
            "instance_group { kind: KIND_GPU gpus: 1 }",
            &parameter("isolation", "process"),
        )
        .onnx("both", "instance_group [ { kind: KIND_GPU gpus: 0 }, { kind: KIND_CPU } ]", "")
        .onnx("cpu", "instance_group { kind: KIND_CPU }", "")
        .start();
    for model in ["gpu", "isolated", "both", "cpu"] {
        for (rows, first) in [(1, 1), (3, 5), (8, 9), (1, 2), (1, 3)] {
            computes(&server, model, rows, first);
        }
    }
    std::thread::scope(|scope| {
        for rows in [1, 2, 3, 2] {
            let server = &server;
            scope
                .spawn(move || (0..20).for_each(|i| computes(server, "gpu", rows, 100 * rows + i)));
        }
    });
    assert!(server.stop().success());
    // Two instances on each GPU, one isolated, one beside the CPU, each with sessions for the sizes
    // 1, 2, 4 and 8; none for the CPU.
    let sessions = logged(&fakes, &["session CUDA"]);
    assert_eq!(sessions.len(), 4 * (4 + 1 + 1), "{sessions:?}");
    assert!(sessions.iter().all(|line| line.contains("stream=the caller's")), "{sessions:?}");
    assert_eq!(
        logged(&fakes, &["session CUDA", "\"device_id\": \"1\""]).len(),
        4 * 3,
        "{sessions:?}"
    );
    // The real library ends the process when a run on a stream of the caller is told not to wait.
    assert!(!logged(&fakes, &["run CUDA device=1", "wait=true"]).is_empty());
    assert_eq!(logged(&fakes, &["wait=false"]), [""; 0]);
    assert_eq!(logged(&fakes, &["release CUDA", "idle=true"]).len(), sessions.len());
    for leak in ["device_blocks", "device_bytes", "streams", "double_frees", "bad_handles"] {
        assert_eq!(fakes.reported(leak), 0, "{leak}");
    }
}

/// The model is refused after its session was opened, which has queued the copy of the weights.
#[test]
fn session_is_released_when_its_stream_is_idle() {
    let fakes = Fakes::new();
    let on_gpu = "instance_group { kind: KIND_GPU }";
    // One session, which does not run when it is opened.
    let plain = parameter("batch_buckets", "0");
    let other = config("other", on_gpu, &plain).replace("name: \"SUM\"", "name: \"DIFFERENCE\"");
    let server = server(&fakes)
        .env("FAKE_CUDA_DELAY_US", "200000")
        .flag("--model-control-mode=explicit")
        .onnx("m", on_gpu, &plain)
        .model("other", other)
        .file("other/1/model.onnx", MODEL)
        .start();
    let refused = server.load("other");
    assert!(refused.text().contains("DIFFERENCE"), "{}", refused.text());
    assert_eq!(logged(&fakes, &["session CUDA"]).len(), 1);
    assert_eq!(logged(&fakes, &["release CUDA"]), ["release CUDA device=0 idle=true"]);
    // Unloaded while the weights are copied.
    assert_eq!(server.load("m").status, 200);
    assert_eq!(server.unload("m").status, 200);
    assert!(server.stop().success());
    assert_eq!(logged(&fakes, &["release CUDA", "idle=true"]).len(), 2);
    assert_eq!(logged(&fakes, &["idle=false"]), [""; 0]);
    assert_eq!(fakes.reported("device_blocks"), 0);
}

#[test]
fn convolution_search_is_heuristic_by_default() {
    let fakes = Fakes::new();
    let on_gpu = "instance_group { kind: KIND_GPU }";
    let server = server(&fakes)
        .flag("--model-control-mode=explicit")
        .onnx("default", on_gpu, "")
        .onnx("chosen", on_gpu, &parameter("cudnn_conv_algo_search", "EXHAUSTIVE"))
        .start();
    for (model, expected) in [("default", "HEURISTIC"), ("chosen", "EXHAUSTIVE")] {
        assert_eq!(server.load(model).status, 200);
        let option = format!("\"cudnn_conv_algo_search\": \"{expected}\"");
        // One for each of the sizes 1, 2, 4 and 8.
        assert_eq!(logged(&fakes, &["session CUDA", &option]).len(), 4, "{model}");
    }
    assert!(server.stop().success());
}

#[test]
fn arena_is_limited_and_shown_in_the_ledger() {
    let fakes = Fakes::new();
    let on_gpu = "instance_group { kind: KIND_GPU }";
    let server = server(&fakes)
        .flag("--model-control-mode=explicit")
        .flag("--backend-config=onnxruntime,gpu-memory-limit=100000")
        .flag("--backend-config=onnxruntime,batch-buckets=0")
        .onnx("m", on_gpu, &parameter("gpu_mem_limit", "1100"))
        .onnx("default", on_gpu, "")
        .onnx("greedy", on_gpu, &parameter("gpu_mem_limit", "100001"))
        .start();
    for model in ["m", "default"] {
        assert_eq!(server.load(model).status, 200);
    }
    let refused = server.load("greedy");
    let text = "gpu_mem_limit is 100001 bytes, at most 100000 are allowed";
    assert!(refused.status >= 400 && refused.text().contains(text), "{}", refused.text());
    let options = logged(&fakes, &["session CUDA"]);
    assert!(options[0].contains("\"gpu_mem_limit\": \"1100\""), "{options:?}");
    assert!(options[1].contains("\"gpu_mem_limit\": \"100000\""), "{options:?}");
    let arena = |server: &Running| {
        let report = server.get("/v2/trtserver/memory").json();
        let models = report["models"].as_array().unwrap().clone();
        let model = models
            .into_iter()
            .find(|entry| entry["name"] == "m" && entry["version"] == "1")
            .unwrap();
        let entries = model["memory"].as_array().unwrap().clone();
        let own =
            |entry: &Value| entry["holder"] == "reported_by_backend" && entry["type"] == "GPU";
        entries.into_iter().find(own).map_or(0, |entry| entry["byte_size"].as_u64().unwrap())
    };
    assert_eq!(arena(&server), 1000);
    // ANY of one row has 16 bytes, of eight rows 128, which do not fit.
    computes(&server, "m", 1, 1);
    assert_eq!(arena(&server), 1016);
    let refused = send(&server, "m", 8, 1);
    assert_eq!(refused.status, 429, "{}", refused.text());
    let text =
        "GPU 0 has too little memory for a run (gpu_mem_limit limits the arena of an instance)";
    assert!(refused.text().contains(text), "{}", refused.text());
    computes(&server, "m", 1, 7);
    assert_eq!(server.unload("m").status, 200);
    assert!(server.stop().success());
    assert_eq!(fakes.reported("device_blocks"), 0);
}

#[test]
fn model_that_exceeds_the_device_fails_alone() {
    let fakes = Fakes::new();
    let on_gpu = "instance_group { kind: KIND_GPU }";
    let large = MODEL.replace("weights 1000", "weights 2000000");
    let server = server(&fakes)
        .env("FAKE_CUDA_DEVICES", "Small/7.5/1")
        .flag("--model-control-mode=explicit")
        .onnx("small", on_gpu, "")
        .model("large", config("large", on_gpu, ""))
        .file("large/1/model.onnx", large)
        .model("text", config("text", on_gpu, ""))
        .file("text/1/model.onnx", "not a model")
        .start();
    assert_eq!(server.load("small").status, 200);
    for (model, expected) in [("large", "CUDA failure 2: "), ("text", "Protobuf parsing failed")] {
        let refused = server.load(model);
        assert!(refused.status >= 400, "{}", refused.text());
        for part in [
            format!("unable to load model '{model}' from "),
            "/1/model.onnx: ".to_owned(),
            expected.to_owned(),
        ] {
            assert!(refused.text().contains(&part), "{}\n{part}", refused.text());
        }
    }
    computes(&server, "small", 3, 1);
    assert!(server.stop().success());
    assert_eq!(fakes.reported("device_blocks"), 0);
}

/// R = 31 A: the sum of SUM and ANY of `first`, which are in a block of the host and in memory of
/// the library.
fn ensemble(first: &str, second: &str) -> String {
    let tensor = |kind: &str, name: &str, dtype: &str, dims: u32| {
        format!("{kind} {{ name: \"{name}\" data_type: TYPE_{dtype} dims: [ {dims} ] }}\n")
    };
    let map = |kind: &str, key: &str, value: &str| {
        format!("{kind}_map {{ key: \"{key}\" value: \"{value}\" }} ")
    };
    let step = |model: &str, maps: &[String]| {
        format!("step {{ model_name: \"{model}\" model_version: -1 {} }}\n", maps.concat())
    };
    let inputs =
        |a: &str, b: &str| [map("input", "A", a), map("input", "B", b), map("input", "N", "N")];
    [
        "platform: \"ensemble\"\nmax_batch_size: 8\n".to_owned(),
        tensor("input", "A", "FP32", 4),
        tensor("input", "B", "FP32", 4),
        tensor("input", "N", "INT64", 1),
        tensor("output", "R", "FP32", 4),
        "ensemble_scheduling {\n".to_owned(),
        step(
            first,
            &[&inputs("A", "B")[..], &[map("output", "SUM", "s"), map("output", "ANY", "t")]]
                .concat(),
        ),
        step(second, &[&inputs("s", "t")[..], &[map("output", "SUM", "R")]].concat()),
        "}\n".to_owned(),
    ]
    .concat()
}

#[test]
fn steps_of_an_ensemble_read_outputs_in_gpu_memory() {
    let fakes = Fakes::new();
    let on_gpu = "instance_group { kind: KIND_GPU gpus: 0 }";
    let server = server(&fakes)
        .onnx("first", on_gpu, "")
        .onnx("second", on_gpu, "")
        .onnx("cpu", "instance_group { kind: KIND_CPU }", "")
        .model("gpus", ensemble("first", "second"))
        .model("mixed", ensemble("first", "cpu"))
        .start();
    for first in 1..20 {
        for model in ["gpus", "mixed"] {
            let response = send(&server, model, 2, first);
            let data = &response.json()["outputs"][0]["data"];
            let expected: Vec<f64> = (0..8).map(|i| (31 * (first + i)) as f64).collect();
            assert_eq!(*data, json!(expected), "{model}: {}", response.text());
        }
    }
    assert!(server.stop().success());
    for leak in ["device_blocks", "double_frees", "bad_handles"] {
        assert_eq!(fakes.reported(leak), 0, "{leak}");
    }
}

#[test]
fn accelerators_reach_the_session_or_are_refused() {
    let fakes = Fakes::new();
    let on_gpu = "instance_group { kind: KIND_GPU }";
    let tensorrt = accelerator("gpu", "tensorrt", &[("precision_mode", "FP16")]);
    let running = server(&fakes).onnx("m", on_gpu, &tensorrt).start();
    computes(&running, "m", 2, 3);
    assert!(running.stop().success());
    let sessions = logged(&fakes, &["session "]);
    assert!(
        sessions[0].starts_with("session TensorRT stream=the caller's")
            && sessions[0].contains("\"trt_fp16_enable\": \"1\"")
            && sessions[1].starts_with("session CUDA stream=the caller's"),
        "{sessions:?}"
    );
    // Accelerators of a GPU are ignored where no instance is on one, even unknown ones.
    let on_cpu = "instance_group { kind: KIND_CPU }";
    let idle = accelerator("gpu", "magics", &[]);
    let running = server(&fakes).onnx("m", on_cpu, &idle).start();
    running.wait_for_log_with(&[
        "model 'm'",
        "gpu_execution_accelerator' has no effect: the model has no instance of KIND_GPU",
    ]);
    computes(&running, "m", 2, 3);
    assert!(running.stop().success());
    let unknown = accelerator("gpu", "cuda", &[("gpu_mem_limits", "1")]);
    for (groups, more, expected) in [
        (
            on_gpu,
            accelerator("gpu", "magics", &[]),
            "gpu_execution_accelerator 'magics' requested for model 'm': unknown",
        ),
        (on_gpu, unknown, "unknown parameter 'gpu_mem_limits'; known are: "),
        (
            "instance_group { kind: KIND_CPU }",
            accelerator("cpu", "openvino", &[]),
            "the instances of KIND_CPU of model 'm' need the OpenVINOExecutionProvider, which ONNX Runtime \
             1.31.0-test-double from ",
        ),
    ] {
        let refused = server(&fakes).onnx("m", groups, &more).refuses_to_start();
        assert!(refused.stderr.contains(expected), "{}\n{expected}", refused.stderr);
    }
}

#[test]
fn library_decides_whether_the_gpu_is_used() {
    let fakes = Fakes::new();
    let isolated = parameter("isolation", "process");
    let with = |providers: &str| server(&fakes).env("FAKE_ORT_PROVIDERS", providers);
    for (providers, kind) in [
        ("CUDAExecutionProvider,CPUExecutionProvider", "KIND_GPU"),
        ("CPUExecutionProvider", "KIND_CPU"),
    ] {
        let running = with(providers).onnx("local", "", "").onnx("isolated", "", &isolated).start();
        for model in ["local", "isolated"] {
            assert_eq!(group(&running, model), kind, "{model}");
            computes(&running, model, 2, 3);
        }
        assert!(running.stop().success());
    }
    for more in ["", &*isolated] {
        let refused = with("CPUExecutionProvider")
            .onnx("m", "instance_group { kind: KIND_GPU }", more)
            .refuses_to_start();
        for part in [
            "the instances of KIND_GPU of model 'm' need the CUDAExecutionProvider, which ONNX Runtime 1.31.0-test-double from ",
            "fake-onnxruntime/libonnxruntime.so.1 does not have; it has: CPUExecutionProvider; ",
        ] {
            assert!(refused.stderr.contains(part), "{}\n{part}", refused.stderr);
        }
    }
}

#[test]
fn library_for_the_cpu_serves_on_a_machine_with_gpus() {
    let fakes = Fakes::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/models/addsub_fp32");
    // With the real library, which has no CUDA provider.
    let running = fakes.server().copy_model("tests/models/addsub_fp32").start();
    assert_eq!(group(&running, "addsub_fp32"), "KIND_CPU");
    assert!(running.stop().success());
    let config = read_to_string(format!("{model}/config.pbtxt")).unwrap();
    let config = config.replace("addsub_fp32", "m") + "\ninstance_group { kind: KIND_GPU }\n";
    let file = std::fs::read(format!("{model}/1/model.onnx")).unwrap();
    let refused = fakes.server().model("m", config).file("m/1/model.onnx", file).refuses_to_start();
    let part = "model 'm' need the CUDAExecutionProvider, which ONNX Runtime ";
    assert!(refused.stderr.contains(part), "{}", refused.stderr);
}

#[test]
fn accelerators_are_refused_for_backends_that_ignore_them() {
    let openvino = accelerator("cpu", "openvino", &[]);
    for (config, expected) in [
        (
            probe("m", &[]) + &openvino,
            "cpu_execution_accelerator 'openvino' requested for model 'm': backend 'probe' supports no execution accelerators",
        ),
        (
            probe("m", &[("isolation", "process")]) + &openvino,
            "cpu_execution_accelerator 'openvino' requested for model 'm': backend 'probe' supports no execution accelerators",
        ),
        (
            "name: \"m\" platform: \"caffe2_netdef\" input { name: \"x\" data_type: TYPE_FP32 dims: [ 1 ] } output { name: \"y\" \
             data_type: TYPE_FP32 dims: [ 1 ] } "
                .to_owned()
                + &openvino,
            "backend 'caffe2' supports no execution accelerators",
        ),
    ] {
        let refused = Server::new().model("m", config).refuses_to_start();
        assert!(refused.stderr.contains(expected), "{}\n{expected}", refused.stderr);
    }
    let idle = probe("m", &[]) + &accelerator("gpu", "tensorrt", &[]);
    let server = Server::new().model("m", idle).start();
    server.wait_for_log_with(&["gpu_execution_accelerator' has no effect"]);
    assert_eq!(server.infer("m", "").status, 200);
    assert!(server.stop().success());
}
