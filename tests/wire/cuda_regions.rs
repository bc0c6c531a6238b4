//! CUDA shared memory with the real v2 client, on a fake driver that the client's process uses as well.

use trtserver_tests::fakes::Fakes;
use trtserver_tests::{dist, parameters, probe, python_v2};

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

/// OUTPUT0 = INPUT0 + INPUT1, by a kernel in a process of its own, which has all tensors in the memory of the client.
#[test]
fn process_of_an_isolated_model_uses_gpu_memory_of_clients_in_place() {
    let fakes = Fakes::new();
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
    let server = fakes
        .server()
        .backend_dir(dist().join("gpu-test/backends"))
        .model("sums", config)
        .flag("--allow-client-shm=true")
        .env("FAKE_CUDA_LOG", fakes.path("calls"))
        .start();
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
