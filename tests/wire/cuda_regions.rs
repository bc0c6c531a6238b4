//! CUDA shared memory with the real v2 client, on a fake driver that the client's process uses as well.

use trtserver_tests::fakes::Fakes;
use trtserver_tests::{probe, python_v2};

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
    python_v2(&server, "v2_cuda_regions.py", &["--fake", &library.display().to_string()]);
    assert!(server.stop().success());
    for leak in ["ipc_open", "double_frees", "bad_handles"] {
        assert_eq!(fakes.reported(leak), 0, "{leak}");
    }
}
