//! ONNX models on GPUs that are prepared for some batch sizes: padding, CUDA graphs, and what is
//! done without them. With test doubles of ONNX Runtime and of the CUDA driver.

use crate::onnx_gpu::{logged, parameter, server};
use serde_json::{Value, json};
use std::fs::read_to_string;
use trtserver_client::blocking::v2::BlockingClient;
use trtserver_client::v2::{InferRequest, Input};
use trtserver_client::{Bytes, Protocol, Settings};
use trtserver_tests::fakes::Fakes;
use trtserver_tests::{Response, Running, Server, SharedObject};

const ON_GPU: &str = "instance_group { kind: KIND_GPU }\n";

/// All of it can be a CUDA graph.
const SUM: &str = "fake onnx
weights 1000
input A FP32 -1 4
input B FP32 -1 4
output SUM FP32 -1 4 = add A B
";

/// Row i of NEXT is row i + 1 of A: rows depend on each other.
const ROLL: &str = "fake onnx
weights 1000
input A FP32 -1 4
input B FP32 -1 4
output SUM FP32 -1 4 = roll A
";

fn config(name: &str, dims: &str, more: &str) -> String {
    let tensor = |kind: &str, name: &str| {
        format!("{kind} {{ name: \"{name}\" data_type: TYPE_FP32 dims: [ {dims} ] }}\n")
    };
    [
        format!("name: \"{name}\"\nplatform: \"onnxruntime_onnx\"\nmax_batch_size: 8\n{more}\n"),
        tensor("input", "A"),
        tensor("input", "B"),
        tensor("output", "SUM"),
    ]
    .concat()
}

trait BucketModel {
    fn fake(self, name: &str, file: &str, more: &str) -> Self;
}

impl BucketModel for Server {
    fn fake(self, name: &str, file: &str, more: &str) -> Self {
        self.model(name, config(name, "4", more)).file(&format!("{name}/1/model.onnx"), file)
    }
}

fn send(server: &Running, model: &str, rows: usize, first: usize) -> Response {
    let floats =
        |factor: usize| -> Vec<usize> { (0..rows * 4).map(|i| factor * (first + i)).collect() };
    let body = json!({ "inputs": [
        { "name": "A", "datatype": "FP32", "shape": [rows, 4], "data": floats(1) },
        { "name": "B", "datatype": "FP32", "shape": [rows, 4], "data": floats(10) },
    ] });
    server.post(&format!("/v2/models/{model}/infer"), &[], body.to_string())
}

#[track_caller]
fn output(server: &Running, model: &str, rows: usize, first: usize) -> Vec<f64> {
    let response = send(server, model, rows, first);
    assert_eq!(response.status, 200, "{}", response.text());
    let output = &response.json()["outputs"][0];
    assert_eq!(output["shape"], json!([rows, 4]));
    output["data"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

#[track_caller]
fn adds(server: &Running, model: &str, rows: usize, first: usize) {
    let expected: Vec<f64> = (0..rows * 4).map(|i| (11 * (first + i)) as f64).collect();
    assert_eq!(output(server, model, rows, first), expected, "{model}, {rows} rows");
}

/// Rows of requests and rows of padding.
fn rows(server: &Running, model: &str) -> [Option<f64>; 2] {
    ["prepared", "padding"].map(|what| {
        let labels = format!("{{model=\"{model}\",version=\"1\"}}");
        server.metrics(&format!("onnxruntime_{what}_rows_total{labels}"))
    })
}

fn padding_in_statistics(server: &Running, model: &str) -> Option<u64> {
    let statistics = server.get(&format!("/v2/models/{model}/stats")).json();
    statistics["model_stats"][0]["padding_rows"].as_u64()
}

#[track_caller]
fn leaves_nothing(server: Running, fakes: &Fakes) {
    assert!(server.stop().success());
    for leak in ["device_blocks", "device_bytes", "streams", "double_frees", "bad_handles"] {
        assert_eq!(fakes.reported(leak), 0, "{leak}");
    }
}

#[test]
fn each_session_runs_one_batch_size_as_a_graph() {
    let fakes = Fakes::new();
    let server = server(&fakes).fake("m", SUM, ON_GPU).start();
    server.wait_for_log("model 'm': prepared for batches of 1, 2, 4, 8 rows with CUDA graphs: ");
    server.wait_for_log("in 4 sessions, each with weights of its own");
    server.wait_for_log("model 'm': batches are formed for [1, 2, 4, 8] rows");
    let sessions = logged(&fakes, &["session CUDA", "\"enable_cuda_graph\": \"1\""]);
    assert_eq!(sessions.len(), 4, "{sessions:?}");
    let report = server.get("/v2/trtserver/memory").json();
    let model = report["models"].as_array().unwrap().iter().find(|model| model["version"] == "1");
    let growth = &model.unwrap()["gpu_at_load"];
    assert!(growth[0]["byte_size"].as_u64().unwrap() >= 4000, "{growth}");
    assert_eq!((&growth[0]["id"], &growth[0]["loads"]), (&json!(0), &json!(1)));
    server.wait_for_log_with(&["model 'm' version 1: its load has taken ", "bytes of GPU 0"]);
    let at_load = logged(&fakes, &["run CUDA"]).len();
    let captures = logged(&fakes, &["graph=capture"]).len();
    for (count, first) in (1..=8).chain([1, 8, 3, 8, 5]).zip(100..) {
        adds(&server, "m", count, first);
    }
    assert_eq!(logged(&fakes, &["graph=capture"]).len(), captures, "all were captured at load");
    assert_eq!(logged(&fakes, &["run CUDA"]).len() - at_load, 13);
    assert_eq!(logged(&fakes, &["changed=true"]), [""; 0]);
    // 3 of 4, 5, 6 and 7 of 8, and the same for the last 3 and 5.
    let padding = 1 + 3 + 2 + 1 + 1 + 3;
    assert_eq!(rows(&server, "m"), [Some(f64::from(36 + 25)), Some(padding as f64)]);
    assert_eq!(padding_in_statistics(&server, "m"), Some(padding));
    leaves_nothing(server, &fakes);
}

#[test]
fn graphs_of_one_session_share_its_weights() {
    let fakes = Fakes::new();
    let shared = format!("{ON_GPU}{}", parameter("batch_buckets_share_weights", "1"));
    let server = server(&fakes).fake("m", SUM, &shared).start();
    server.wait_for_log_with(&[
        "model 'm': prepared for batches of 1, 2, 4, 8 rows with",
        "in one session;",
    ]);
    assert_eq!(logged(&fakes, &["session CUDA"]).len(), 1);
    assert_eq!(logged(&fakes, &["graph=capture"]).len(), 4);
    let at_load = logged(&fakes, &["run CUDA"]).len();
    for (count, first) in [8, 1, 3, 5, 2, 8].into_iter().zip(50..) {
        adds(&server, "m", count, first);
    }
    let served: Vec<_> = logged(&fakes, &["run CUDA"]).split_off(at_load);
    let replays = |line: &String| line.contains("changed=false graph=replay");
    assert!(served.len() == 6 && served.iter().all(replays), "{served:?}");
    assert_eq!(rows(&server, "m"), [Some(27.0), Some(1.0 + 3.0)]);
    leaves_nothing(server, &fakes);
}

#[test]
fn without_prepared_sizes_the_library_sees_every_change() {
    let fakes = Fakes::new();
    let off = format!("{ON_GPU}{}", parameter("batch_buckets", "0"));
    let server = server(&fakes).fake("m", SUM, &off).start();
    server.wait_for_log(
        "model 'm': batches are not padded to prepared sizes, and CUDA graphs are off: batch_buckets is 0",
    );
    for count in [1, 3, 1] {
        adds(&server, "m", count, 7);
    }
    assert_eq!(logged(&fakes, &["session CUDA"]).len(), 1);
    assert_eq!(logged(&fakes, &["run CUDA", "changed=true"]).len(), 2);
    assert_eq!(rows(&server, "m"), [None, None]);
    assert!(!server.log().contains("batches are formed for"));
    assert_eq!(padding_in_statistics(&server, "m"), None);
    leaves_nothing(server, &fakes);
}

#[test]
fn five_requests_run_as_one_batch_of_eight_when_the_delay_ends() {
    let fakes = Fakes::new();
    let batching = "dynamic_batching { max_queue_delay_microseconds: 4000000 }";
    let isolated = parameter("isolation", "process");
    // Two runs of other sizes shall not seem faster than one of eight on a busy machine.
    let server = server(&fakes)
        .env("FAKE_CUDA_DELAY_US", "20000")
        .fake("local", SUM, &format!("{ON_GPU}{batching}"))
        .fake("isolated", SUM, &format!("{ON_GPU}{batching}\n{isolated}"))
        .start();
    for model in ["local", "isolated"] {
        server.wait_for_log(&format!("model '{model}': batches are formed for [1, 2, 4, 8] rows"));
        std::thread::scope(|scope| {
            for first in 1..=5 {
                let server = &server;
                scope.spawn(move || adds(server, model, 1, 10 * first));
            }
        });
        server.poll_until("rows of the batch", |server| {
            rows(server, model) == [Some(5.0), Some(3.0)]
        });
        assert_eq!(padding_in_statistics(&server, model), Some(3), "{model}");
    }
    leaves_nothing(server, &fakes);
}

#[test]
fn preferred_sizes_are_prepared() {
    let fakes = Fakes::new();
    let preferred = "dynamic_batching { preferred_batch_size: [ 6, 2 ] }";
    let server = server(&fakes).fake("m", SUM, &format!("{ON_GPU}{preferred}")).start();
    server.wait_for_log("model 'm': prepared for batches of 2, 6, 8 rows with CUDA graphs: ");
    for count in [1, 3, 7] {
        adds(&server, "m", count, 5);
    }
    assert_eq!(rows(&server, "m"), [Some(11.0), Some(1.0 + 3.0 + 1.0)]);
    leaves_nothing(server, &fakes);
}

/// Rolled rows, of which the last comes from the row behind it in a padded batch.
fn rolled(rows: usize, first: usize, padded: bool) -> Vec<f64> {
    let values: Vec<f64> = (0..rows * 4).map(|i| (first + i) as f64).collect();
    let last = if padded { vec![0.0; 4] } else { values[..4].to_vec() };
    [&values[4..], &last].concat()
}

#[test]
fn rows_that_depend_on_each_other_are_not_padded() {
    let fakes = Fakes::new();
    let on = format!("{ON_GPU}{}", parameter("batch_buckets", "1"));
    let server = server(&fakes).fake("proved", ROLL, ON_GPU).fake("declared", ROLL, &on).start();
    server.wait_for_log(
        "model 'proved': batches are not padded to prepared sizes, and CUDA graphs are off: the first row of output \
         'SUM' changes with the other rows",
    );
    server.wait_for_log("model 'declared': prepared for batches of 1, 2, 4, 8 rows");
    for (count, first) in [(4, 1), (3, 50), (8, 9), (5, 70)] {
        assert_eq!(output(&server, "proved", count, first), rolled(count, first, false));
        // Padding is zeros, also where an earlier batch was.
        let padded = ![1, 2, 4, 8].contains(&count);
        assert_eq!(output(&server, "declared", count, first), rolled(count, first, padded));
    }
    assert_eq!(rows(&server, "proved"), [None, None]);
    leaves_nothing(server, &fakes);
}

#[test]
fn graphs_that_cannot_be_captured_are_off_or_refused() {
    let fakes = Fakes::new();
    let on_cpu =
        SUM.replace("input B FP32 -1 4", "input B FP32 -1 4 cpu").replace("add A B", "copy A");
    let partitioned =
        "all compute graph nodes have not been partitioned to the CUDAExecutionProvider";
    let on = parameter("enable_cuda_graph", "1");
    let running = server(&fakes).fake("m", &on_cpu, ON_GPU).start();
    running.wait_for_log_with(&["model 'm': CUDA graphs are off: ", partitioned]);
    running.wait_for_log("model 'm': prepared for batches of 1, 2, 4, 8 rows: ");
    for count in [5, 8, 3] {
        let expected: Vec<f64> = (0..count * 4).map(|i| (2 + i) as f64).collect();
        assert_eq!(output(&running, "m", count, 2), expected);
    }
    assert_eq!(logged(&fakes, &["graph=replay"]), [""; 0]);
    assert_eq!(logged(&fakes, &["changed=true"]), [""; 0]);
    leaves_nothing(running, &fakes);
    let off = parameter("enable_cuda_graph", "0");
    let running = server(&fakes).fake("m", SUM, &format!("{ON_GPU}{off}")).start();
    running.wait_for_log("model 'm': prepared for batches of 1, 2, 4, 8 rows: ");
    adds(&running, "m", 3, 1);
    assert!(running.stop().success());
    let both = format!("{ON_GPU}{on}{}", parameter("batch_buckets", "0"));
    let bad = format!("{ON_GPU}{}", parameter("batch_buckets", "yes"));
    for (file, more, expected) in [
        (&*on_cpu, &*format!("{ON_GPU}{on}"), partitioned),
        (SUM, &*both, "enable_cuda_graph is 1, which cannot be done: batch_buckets is 0"),
        (SUM, &*bad, "parameter 'batch_buckets' must be 0, 1 or auto, not 'yes'"),
    ] {
        let refused = server(&fakes).fake("m", file, more).refuses_to_start();
        assert!(refused.stderr.contains(expected), "{}\n{expected}", refused.stderr);
    }
}

#[test]
fn models_of_variable_shape_have_one_session() {
    let fakes = Fakes::new();
    let variable = SUM.replace("-1 4", "-1 -1");
    let model = |more: &str| {
        server(&fakes).model("m", config("m", "-1", more)).file("m/1/model.onnx", &variable)
    };
    let running = model(ON_GPU).start();
    running.wait_for_log(
        "model 'm': batches are not padded to prepared sizes, and CUDA graphs are off: input 'A' of shape [-1] has a \
         variable dimension",
    );
    adds(&running, "m", 3, 1);
    assert_eq!(logged(&fakes, &["session CUDA"]).len(), 1);
    leaves_nothing(running, &fakes);
    let refused = model(&format!("{ON_GPU}{}", parameter("batch_buckets", "1"))).refuses_to_start();
    let expected = "model 'm': batch_buckets is 1, which cannot be done: input 'A' of shape [-1]";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
}

#[test]
fn model_without_a_batch_is_one_graph() {
    let fakes = Fakes::new();
    let fixed = SUM.replace("-1 4", "2 4");
    let config = config("m", "2, 4", ON_GPU).replace("max_batch_size: 8", "max_batch_size: 0");
    let server = server(&fakes).model("m", config).file("m/1/model.onnx", fixed).start();
    server.wait_for_log("model 'm': prepared for its one shape with CUDA graphs: ");
    for first in [3, 4] {
        adds(&server, "m", 2, first);
    }
    assert_eq!(logged(&fakes, &["session CUDA"]).len(), 1);
    assert!(!logged(&fakes, &["graph=replay"]).is_empty());
    leaves_nothing(server, &fakes);
}

/// Two sessions of 1000 bytes fit the limit, four do not.
#[test]
fn sizes_that_exceed_the_memory_limit_are_not_prepared() {
    let fakes = Fakes::new();
    let limit = format!("{ON_GPU}{}", parameter("gpu_mem_limit", "2500"));
    let server = server(&fakes).fake("m", SUM, &limit).start();
    server.wait_for_log_with(&[
        "model 'm': batches are not padded to prepared sizes, and CUDA graphs are off: ",
        "Available memory of 500 is smaller than requested bytes of 1000",
    ]);
    for count in [1, 5] {
        adds(&server, "m", count, 3);
    }
    leaves_nothing(server, &fakes);
}

/// The instance on the CPU is not prepared for any size.
#[test]
fn batches_for_cpu_and_gpu_are_formed_for_any_size() {
    let fakes = Fakes::new();
    let both = "instance_group [ { kind: KIND_GPU gpus: 0 }, { kind: KIND_CPU } ]";
    let server = server(&fakes).fake("both", SUM, both).fake(
        "cpu",
        SUM,
        "instance_group { kind: KIND_CPU }",
    );
    let server = server.start();
    for model in ["both", "cpu"] {
        for count in [1, 3, 8] {
            adds(&server, model, count, 6);
        }
    }
    server.wait_for_log("model 'both': prepared for batches of 1, 2, 4, 8 rows");
    let log = server.log();
    assert!(!log.contains("batches are formed for") && !log.contains("model 'cpu': prepared"));
    assert_eq!(rows(&server, "cpu"), [None, None]);
    leaves_nothing(server, &fakes);
}

/// Tensors above the size up to which they are staged in pinned memory.
const ELEMENTS: usize = 128 << 10;

fn with_large(server: Server, more: &str) -> Server {
    let dims = ELEMENTS.to_string();
    let file = SUM.replace("-1 4", &format!("-1 {dims}"));
    server.model("large", config("large", &dims, more)).file("large/1/model.onnx", file)
}

/// A request for A + B, whose inputs have these parameters.
fn large_request(parameters: [Value; 2]) -> String {
    let tensor = |(name, parameters): (&str, Value)| json!({ "name": name, "datatype": "FP32", "shape": [1, ELEMENTS], "parameters": parameters });
    let inputs: Vec<Value> = ["A", "B"].into_iter().zip(parameters).map(tensor).collect();
    let output = json!({ "name": "SUM", "parameters": { "binary_data": true } });
    json!({ "inputs": inputs, "outputs": [output] }).to_string()
}

/// A and B.
fn large_inputs(first: f32) -> Vec<u8> {
    let values = (0..2 * ELEMENTS).map(|i| first + (i % ELEMENTS) as f32);
    values.flat_map(f32::to_le_bytes).collect()
}

#[track_caller]
fn adds_large(server: &Running, first: f32) {
    let head = large_request([0, 1].map(|_| json!({ "binary_data_size": 4 * ELEMENTS })));
    let length = head.len().to_string();
    let body = [head.into_bytes(), large_inputs(first)].concat();
    let headers = [("Inference-Header-Content-Length", length.as_str())];
    has_sums(&server.post("/v2/models/large/infer", &headers, body), first);
}

#[track_caller]
fn has_sums(response: &Response, first: f32) {
    assert_eq!(response.status, 200, "{}", response.text());
    let sums = &response.body[response.body.len() - 4 * ELEMENTS..];
    let sum = |at: usize| {
        let bytes = sums[4 * at..4 * at + 4].try_into();
        bytes.map_or(f32::NAN, f32::from_le_bytes)
    };
    for at in [0, 1, ELEMENTS - 1] {
        assert_eq!(sum(at), 2.0 * (first + at as f32), "{at}");
    }
}

/// The same over gRPC.
#[track_caller]
fn adds_large_over_grpc(server: &Running, first: f32) {
    let settings = Settings::new(server.grpc()).protocol(Protocol::Grpc);
    let client = BlockingClient::new(&settings).unwrap_or_else(|e| panic!("{e}"));
    let values = |factor: f32| -> Vec<u8> {
        (0..ELEMENTS).flat_map(|i| (factor * (first + i as f32)).to_le_bytes()).collect()
    };
    let input =
        |name: &str| Input::new(name, "FP32", [1, ELEMENTS as i64], Bytes::from(values(1.0)));
    let request = InferRequest::new("large").input(input("A")).input(input("B"));
    let response = client.infer(&request).unwrap_or_else(|e| panic!("{e}"));
    let sum = response.output("SUM").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(sum.data, values(2.0));
}

/// The first body finds no pinned block of its size.
#[test]
fn large_bodies_for_a_gpu_are_received_into_pinned_memory() {
    let fakes = Fakes::new();
    let running = with_large(server(&fakes), ON_GPU).start();
    for first in 0..6u16 {
        adds_large(&running, first.into());
    }
    leaves_nothing(running, &fakes);
    let tensors = 2 * 4 * ELEMENTS as u64;
    assert_eq!(fakes.reported("pinned_upload_bytes"), 5 * tensors);
    // Each tensor of a gRPC message has a block of its own: the first message finds none, and only
    // one is pinned at a time.
    let fakes = Fakes::new();
    let running = with_large(server(&fakes), ON_GPU).start();
    for first in 0..6u16 {
        adds_large_over_grpc(&running, first.into());
    }
    leaves_nothing(running, &fakes);
    let pinned = fakes.reported("pinned_upload_bytes");
    assert!((4..12).contains(&(pinned / (4 * ELEMENTS as u64))), "{pinned} bytes");
    // Without room in the pool, and for an instance on the CPU, bodies are received as before.
    let fakes = Fakes::new();
    for (flag, more) in [
        ("--pinned-memory-pool-byte-size=0", ON_GPU),
        ("--pinned-memory-pool-byte-size=100000000", "instance_group { kind: KIND_CPU }"),
    ] {
        let running = with_large(server(&fakes).flag(flag), more).start();
        (0..3u16).for_each(|first| adds_large(&running, first.into()));
        assert!(running.stop().success());
    }
    assert_eq!(fakes.reported("pinned_upload_bytes"), 0);
}

/// The region of a client is pinned by the first batch that reads it, until it is unregistered.
#[test]
fn shared_memory_is_pinned_where_a_gpu_reads_it() {
    let tensor = 4 * ELEMENTS as u64;
    let infer = |server: &Running, object: &SharedObject| {
        let body = large_request([0, tensor].map(|offset| object.parameters(offset, tensor)));
        server.post("/v2/models/large/infer", &[], body)
    };
    let adds_thrice = |server: &Running, object: &SharedObject| {
        for first in 0..3u16 {
            object.write(0, &large_inputs(first.into()));
            has_sums(&infer(server, object), first.into());
        }
    };
    let start = |fakes: &Fakes| {
        let server = with_large(server(fakes), ON_GPU).env("FAKE_CUDA_LOG", fakes.path("calls"));
        server.flag("--allow-client-shm=true").flag("--log-verbose=1")
    };
    let fakes = Fakes::new();
    let running = start(&fakes).start();
    let object = SharedObject::registered(&running, 2 * tensor);
    adds_thrice(&running, &object);
    // A device reads pinned pages whose file was made shorter; the client has an error as before.
    object.resize(tensor);
    let refused = infer(&running, &object);
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("lacks pages"), "{}", refused.text());
    object.unregister(&running);
    let calls = || {
        let log = read_to_string(fakes.path("calls")).unwrap_or_default();
        ["cuMemHostRegister_v2", "cuMemHostUnregister"]
            .map(|function| log.matches(&format!(" call {function} ")).count())
    };
    running.poll_until("the region is pinned and unpinned once", |_| calls() == [1, 1]);
    leaves_nothing(running, &fakes);
    assert_eq!(fakes.reported("registered_bytes"), 0);
    assert!(fakes.reported("pinned_upload_bytes") >= 3 * 2 * tensor);
    // Refused by the driver.
    let fakes = Fakes::new();
    let running = start(&fakes).env("FAKE_CUDA_FAIL", "cuMemHostRegister_v2:0:801").start();
    let object = SharedObject::registered(&running, 2 * tensor);
    adds_thrice(&running, &object);
    let line = format!("shared memory region '{}' is not pinned: GPU 0: cuMem", object.name);
    running.wait_for_log(&line);
    assert_eq!(running.log().matches(&line).count(), 1);
    leaves_nothing(running, &fakes);
    assert_eq!(fakes.reported("pinned_upload_bytes"), 0);
}
