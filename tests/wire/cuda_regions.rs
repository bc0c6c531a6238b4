//! CUDA shared memory with the real v2 client, on a fake driver that the client's process uses as
//! well.

use serde_json::json;
use std::os::fd::AsRawFd;
use trtserver_tests::fakes::Fakes;
use trtserver_tests::{Server, dist, parameters, probe, python_v2};

#[test]
fn tensors_in_gpu_memory_of_clients_are_used_in_place() {
    let fakes = Fakes::new();
    let on = |name: &str, kind: &str, parameters: &[(&str, &str)]| {
        probe(name, parameters) + &format!("instance_group [ {{ kind: {kind} }} ]\n")
    };
    let server = fakes
        .server()
        .model("cpu", on("cpu", "KIND_CPU", &[]))
        .model("gpu", on("gpu", "KIND_GPU", &[]))
        .model("isolated", on("isolated", "KIND_CPU", &[("isolation", "process")]))
        .flag("--allow-client-shm=true")
        .start();
    let extensions = server.get("/v2").json()["extensions"].to_string();
    assert!(extensions.contains("\"system_shared_memory\",\"cuda_shared_memory\""), "{extensions}");
    let library = fakes.path("libcuda.so.1");
    let fake = library.display().to_string();
    python_v2(&server, "v2_cuda_regions.py", &["--fake", &fake, "--models", "cpu,gpu,isolated"]);
    assert!(server.stop().success());
    for leak in ["ipc_open", "double_frees", "bad_handles"] {
        assert_eq!(fakes.reported(leak), 0, "{leak}");
    }
}

/// A server with the model `sums` in a process of its own.
fn server_with_sums(fakes: &Fakes) -> Server {
    let tensor = |kind: &str, name: &str| {
        format!("{kind} {{ name: \"{name}\" data_type: TYPE_FP32 dims: [ -1 ] }}\n")
    };
    let config = format!(
        "name: \"sums\"\nbackend: \"ptx\"\nmax_batch_size: 8\ninstance_group {{ kind: KIND_GPU }}\n{}{}{}{}",
        tensor("input", "INPUT0"),
        tensor("input", "INPUT1"),
        tensor("output", "OUTPUT0"),
        parameters(&[("isolation", "process")]),
    );
    fakes
        .server()
        .backend_dir(dist().join("gpu-test/backends"))
        .model("sums", config)
        .flag("--allow-client-shm=true")
}

/// OUTPUT0 = INPUT0 + INPUT1, by a kernel in a process of its own, which has all tensors in the
/// memory of the client.
#[test]
fn process_of_an_isolated_model_uses_gpu_memory_of_clients_in_place() {
    let fakes = Fakes::new();
    let server = server_with_sums(&fakes).env("FAKE_CUDA_LOG", fakes.path("calls")).start();
    let fake = fakes.path("libcuda.so.1").display().to_string();
    python_v2(&server, "v2_cuda_regions.py", &["--fake", &fake, "--models", "", "--sums", "sums"]);
    assert!(server.stop().success());
    // Of the server and its child, not of the client.
    let calls = std::fs::read_to_string(fakes.path("calls")).unwrap();
    assert!(calls.contains(" begin add "), "no kernel has run");
    assert!(!calls.contains(" begin copy "), "a tensor was copied");
    for leak in ["ipc_open", "device_blocks", "double_frees", "bad_handles"] {
        assert_eq!(fakes.reported(leak), 0, "{leak}");
    }
}

/// The client frees its memory after the server has opened the region and before the process of the
/// model opens it.
#[test]
fn region_that_an_isolated_model_cannot_open_is_an_error_in_plain_words() {
    const BYTES: u64 = 4096;
    let fakes = Fakes::new();
    let server = server_with_sums(&fakes).start();
    let memory = tempfile::tempfile().unwrap();
    memory.set_len(BYTES).unwrap();
    // As the fake driver makes it: process, descriptor, device, size.
    let mut handle = [0; 64];
    handle[..7].copy_from_slice(b"FAKEIPC");
    handle[8..12].copy_from_slice(&std::process::id().to_ne_bytes());
    handle[12..16].copy_from_slice(&memory.as_raw_fd().to_ne_bytes());
    handle[24..32].copy_from_slice(&BYTES.to_ne_bytes());
    let register = format!("/api/sharedmemorycontrol/cudaregister/gone/{BYTES}/0");
    let registered = server.post(&register, &[], handle);
    assert_eq!(registered.status, 200, "{}", registered.text());
    drop(memory);
    let input = |name: &str| {
        let parameters = json!({ "shared_memory_region": "gone", "shared_memory_byte_size": 400 });
        json!({ "name": name, "datatype": "FP32", "shape": [1, 100], "parameters": parameters })
    };
    let body = json!({ "inputs": [input("INPUT0"), input("INPUT1")] });
    let response = server.post("/v2/models/sums/infer", &[], body.to_string());
    let text = response.text();
    let cause = "shared memory region 'gone' cannot be opened: GPU 0: cuIpcOpenMemHandle_v2 failed";
    assert!(response.status == 500 && text.contains(cause), "{} {text}", response.status);
    assert!(!text.contains("Object("), "{text}");
    assert!(server.stop().success());
}
