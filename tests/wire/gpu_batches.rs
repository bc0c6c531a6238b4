//! Batches on a GPU, on the fake CUDA driver: the backend `ptx` adds by a kernel, in memory that
//! the server has placed.

use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trtserver_tests::fakes::Fakes;
use trtserver_tests::{Response, Running, Server, dist};

/// OUTPUT0 = INPUT0 + INPUT1 on the GPUs of `group`, with further fields of the configuration.
fn sums(name: &str, group: &str, more: &str) -> String {
    let tensor = |kind: &str, name: &str| {
        format!("{kind} {{ name: \"{name}\" data_type: TYPE_FP32 dims: [ -1 ] }}\n")
    };
    format!(
        "name: \"{name}\"\nbackend: \"ptx\"\nmax_batch_size: 8\ninstance_group {{ {group} }}\n{}{}{}{more}",
        tensor("input", "INPUT0"),
        tensor("input", "INPUT1"),
        tensor("output", "OUTPUT0"),
    )
}

fn parameter(key: &str, value: &str) -> String {
    format!("parameters {{ key: \"{key}\" value {{ string_value: \"{value}\" }} }}\n")
}

fn server(fakes: &Fakes) -> Server {
    fakes.server().backend_dir(dist().join("gpu-test/backends"))
}

/// `rows` rows of `n` ones, added to twos.
fn send(server: &Running, model: &str, rows: usize, n: usize, parameters: Value) -> Response {
    let input = |name: &str, value: f32| json!({ "name": name, "datatype": "FP32", "shape": [rows, n], "data": vec![value; rows * n] });
    let body =
        json!({ "parameters": parameters, "inputs": [input("INPUT0", 1.0), input("INPUT1", 2.0)] });
    server.post(&format!("/v2/models/{model}/infer"), &[], body.to_string())
}

#[track_caller]
fn adds(server: &Running, model: &str, rows: usize, n: usize) {
    let response = send(server, model, rows, n, json!({}));
    assert_eq!(response.status, 200, "{}", response.text());
    let output = &response.json()["outputs"][0];
    assert_eq!(output["shape"], json!([rows, n]));
    assert_eq!(output["data"], json!(vec![3.0; rows * n]));
}

#[test]
fn kernel_adds_inputs_of_requests_and_batches() {
    let fakes = Fakes::new();
    let batching =
        "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 20000 }\n";
    let server = server(&fakes)
        .model("gpu", sums("gpu", "kind: KIND_GPU", batching))
        .model("isolated", sums("isolated", "kind: KIND_GPU", &parameter("isolation", "process")))
        .model("cpu", sums("cpu", "kind: KIND_CPU", ""))
        .env("FAKE_CUDA_LOG", fakes.path("calls"))
        .start();
    for model in ["gpu", "isolated", "cpu"] {
        adds(&server, model, 1, 4);
        adds(&server, model, 3, 1000);
        // More than is collected in pinned memory.
        adds(&server, model, 1, 100_000);
    }
    std::thread::scope(|scope| {
        for rows in [1, 2, 3, 2] {
            let server = &server;
            scope.spawn(move || (0..20).for_each(|_| adds(server, "gpu", rows, 16)));
        }
    });
    assert!(server.stop().success());
    let calls = std::fs::read_to_string(fakes.path("calls")).unwrap();
    assert!(calls.contains(" begin add "), "no kernel has run");
    for leak in ["device_blocks", "device_bytes", "streams", "double_frees", "bad_handles"] {
        assert_eq!(fakes.reported(leak), 0, "{leak}");
    }
}

#[test]
fn request_that_exceeds_the_device_fails_alone() {
    let fakes = Fakes::new();
    let server = server(&fakes)
        .model("gpu", sums("gpu", "kind: KIND_GPU", ""))
        .env("FAKE_CUDA_DEVICES", "Small/7.5/1")
        .start();
    adds(&server, "gpu", 1, 4);
    let refused = send(&server, "gpu", 1, 200_000, json!({}));
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.text().contains("GPU 0 is out of memory"), "{}", refused.text());
    adds(&server, "gpu", 1, 4);
    assert_eq!(server.get("/v2/models/gpu/ready").status, 200);
    assert!(server.stop().success());
    assert_eq!(fakes.reported("device_blocks"), 0);
}

#[test]
fn kernel_that_faults_fails_the_models_of_its_device_and_no_others() {
    let fakes = Fakes::new();
    let server = server(&fakes)
        .model("faulty", sums("faulty", "kind: KIND_GPU gpus: 0", ""))
        .model("same", sums("same", "kind: KIND_GPU gpus: 0", ""))
        .model("other", sums("other", "kind: KIND_GPU gpus: 1", ""))
        .model("cpu", sums("cpu", "kind: KIND_CPU", ""))
        .env("FAKE_CUDA_DEVICES", "A/7.5/64,B/8.0/64")
        .start();
    for model in ["faulty", "same", "other", "cpu"] {
        adds(&server, model, 1, 4);
    }
    let lost = send(&server, "faulty", 1, 4, json!({ "fault": true }));
    assert_eq!(lost.status, 503, "{}", lost.text());
    assert!(lost.text().contains("GPU 0 is lost: "), "{}", lost.text());
    for model in ["faulty", "same"] {
        server.poll_until(&format!("'{model}' is not ready"), |server| {
            server.get(&format!("/v2/models/{model}/ready")).status != 200
        });
        let refused = send(&server, model, 1, 4, json!({}));
        assert_eq!(refused.status, 503, "{}", refused.text());
        assert!(refused.text().contains("GPU 0 is lost: "), "{}", refused.text());
    }
    adds(&server, "other", 1, 4);
    adds(&server, "cpu", 1, 4);
    server.signal(trtserver_tests::Signal::TERM);
    server.wait();
}

#[test]
fn isolated_model_of_a_lost_device_serves_again_in_a_new_process() {
    let fakes = Fakes::new();
    let isolated = parameter("isolation", "process");
    let server = server(&fakes).model("gpu", sums("gpu", "kind: KIND_GPU", &isolated)).start();
    adds(&server, "gpu", 1, 4);
    let lost = send(&server, "gpu", 1, 4, json!({ "fault": true }));
    // By the child, or by the server because the child has ended.
    assert!(matches!(lost.status, 500 | 503), "{}", lost.text());
    assert!(lost.text().contains("GPU 0 is lost: "), "{}", lost.text());
    server
        .poll_until("it serves again", |server| send(server, "gpu", 1, 4, json!({})).status == 200);
    adds(&server, "gpu", 1, 4);
    assert!(server.stop().success());
}

#[test]
fn isolated_model_whose_device_is_lost_under_load_serves_again() {
    let fakes = Fakes::new();
    let isolated = parameter("isolation", "process");
    let server = server(&fakes)
        .model("gpu", sums("gpu", "kind: KIND_GPU", &isolated))
        .model("other", sums("other", "kind: KIND_GPU", &isolated))
        .start();
    let served = || {
        server.poll_until("it serves", |server| send(server, "gpu", 1, 4, json!({})).status == 200)
    };
    served();
    let stop = AtomicBool::new(false);
    let is_over = || stop.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let (server, is_over) = (&server, &is_over);
        // Each request gets a response: the sum, or the reason.
        let load: Vec<_> = (0..4)
            .map(|rows| {
                scope.spawn(move || {
                    while !is_over() {
                        let response = send(server, "gpu", rows + 1, 16, json!({}));
                        match response.status {
                            200 => assert_eq!(response.json()["outputs"][0]["data"][0], 3.0),
                            500 | 503 => std::thread::sleep(Duration::from_millis(20)),
                            _ => panic!("{}", response.text()),
                        }
                    }
                })
            })
            .collect();
        // The process of another model has a context of its own.
        let other = scope.spawn(move || {
            while !is_over() {
                adds(server, "other", 1, 16);
            }
        });
        for _ in 0..2 {
            let lost = send(server, "gpu", 1, 4, json!({ "fault": true }));
            assert_ne!(lost.status, 200, "{}", lost.text());
            served();
        }
        stop.store(true, Ordering::Relaxed);
        load.into_iter().chain([other]).for_each(|thread| thread.join().unwrap());
    });
    adds(&server, "gpu", 1, 4);
    assert!(server.stop().success());
}

/// An ensemble that adds with model `first`, and doubles the sum with model `second`; `SUM` is an
/// output as well.
fn doubling(name: &str, first: &str, second: &str) -> String {
    let tensor = |kind: &str, name: &str| {
        format!("{kind} {{ name: \"{name}\" data_type: TYPE_FP32 dims: [ -1 ] }}\n")
    };
    let map = |kind: &str, key: &str, value: &str| {
        format!("{kind}_map {{ key: \"{key}\" value: \"{value}\" }}\n")
    };
    let step = |model: &str, [a, b, sum]: [&str; 3]| {
        format!(
            "step {{ model_name: \"{model}\" model_version: -1 {}{}{} }}\n",
            map("input", "INPUT0", a),
            map("input", "INPUT1", b),
            map("output", "OUTPUT0", sum)
        )
    };
    format!(
        "name: \"{name}\"\nplatform: \"ensemble\"\nmax_batch_size: 8\n{}{}{}{}ensemble_scheduling {{\n{}{}}}\n",
        tensor("input", "INPUT0"),
        tensor("input", "INPUT1"),
        tensor("output", "SUM"),
        tensor("output", "OUTPUT0"),
        step(first, ["INPUT0", "INPUT1", "SUM"]),
        step(second, ["SUM", "SUM", "OUTPUT0"]),
    )
}

/// An ensemble that adds with model `model`.
fn sum_of_one_step(name: &str, model: &str) -> String {
    let of_both = doubling(name, model, model);
    let Some((first, _)) = of_both.rsplit_once("step {") else { panic!("{of_both}") };
    let one = format!("{first}}}\n");
    one.replace("output { name: \"SUM\" data_type: TYPE_FP32 dims: [ -1 ] }\n", "")
        .replace("value: \"SUM\"", "value: \"OUTPUT0\"")
}

#[test]
fn steps_on_gpus_pass_tensors_in_gpu_memory() {
    let copies = |second: &str, requested: &[&str]| {
        let fakes = Fakes::new();
        let server = server(&fakes)
            .model("gpu", sums("gpu", "kind: KIND_GPU", ""))
            .model("gpu2", sums("gpu2", "kind: KIND_GPU", ""))
            .model("cpu", sums("cpu", "kind: KIND_CPU", ""))
            .model(
                "mixed",
                sums(
                    "mixed",
                    "count: 1 kind: KIND_GPU } instance_group { count: 1 kind: KIND_CPU",
                    "",
                ),
            )
            .model("alone", sum_of_one_step("alone", "gpu2"))
            .model("twice", doubling("twice", "gpu", second))
            .env("FAKE_CUDA_LOG", fakes.path("calls"))
            .start();
        let input = |name: &str, value: f32| json!({ "name": name, "datatype": "FP32", "shape": [2, 1000], "data": vec![value; 2000] });
        let outputs: Vec<Value> = requested.iter().map(|name| json!({ "name": name })).collect();
        let body =
            json!({ "inputs": [input("INPUT0", 1.0), input("INPUT1", 2.0)], "outputs": outputs });
        for _ in 0..10 {
            let response = server.post("/v2/models/twice/infer", &[], body.to_string());
            assert_eq!(response.status, 200, "{}", response.text());
            for output in response.json()["outputs"].as_array().unwrap() {
                let value = if output["name"] == "SUM" { 3.0 } else { 6.0 };
                assert_eq!(output["data"], json!(vec![value; 2000]));
            }
        }
        assert!(server.stop().success());
        for leak in ["device_blocks", "device_bytes", "double_frees", "bad_handles"] {
            assert_eq!(fakes.reported(leak), 0, "{leak}");
        }
        // An instance on the CPU copies from the GPU on a stream that the server keeps.
        assert!(fakes.reported("streams") <= u64::from(second == "mixed"));
        let calls = std::fs::read_to_string(fakes.path("calls")).unwrap();
        calls.lines().filter(|line| line.contains(" begin copy ")).count()
    };
    // The inputs of the first step, the output of the last one.
    assert_eq!(copies("gpu2", &["OUTPUT0"]), 20);
    // The sum is copied for the response or the second step, which copies both of its inputs at
    // once to a GPU.
    assert_eq!(copies("gpu2", &["SUM", "OUTPUT0"]), 40);
    assert_eq!(copies("cpu", &["OUTPUT0"]), 20);
    // Also to a step of a nested ensemble.
    assert_eq!(copies("alone", &["OUTPUT0"]), 20);
    // The instance on the GPU copies the output, the other one both inputs.
    assert!((20..=30).contains(&copies("mixed", &["OUTPUT0"])));
}
