//! Batches on a GPU, on the fake CUDA driver: the backend `ptx` adds by a kernel, in memory that the server has placed.

use serde_json::{Value, json};
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
