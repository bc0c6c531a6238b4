//! Memory of GPUs and pinned memory that a Triton backend allocates for itself, with a CUDA driver
//! that is a test double.

use trtserver_tests::control::{Control, assert_ok};
use trtserver_tests::fakes::Fakes;
use trtserver_tests::triton_backends::{CONTRACT_FLAGS, SONAME, contract, gpu_model};

/// It is of the pools of the server, or of the model's process; tests/triton/check_model.c
/// allocates and frees it.
#[test]
fn gpu_and_pinned_memory_come_from_the_host() {
    for isolation in ["process", "none"] {
        let fakes = Fakes::new();
        let mut server = fakes.server().backend_dir(contract(SONAME));
        if let Some((name, config)) = gpu_model() {
            server = server.model(name, config);
        }
        for flag in CONTRACT_FLAGS {
            server = server.flag(flag);
        }
        let server = server
            .flag("--strict-model-config=false")
            .flag("--model-control-mode=explicit")
            .flag(format!("--backend-config=contract,isolation={isolation}"))
            .start();
        assert_ok(server.load("gpu"));
        let body =
            r#"{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,4],"data":[1,2,3,4]}]}"#;
        let response = server.post("/v2/models/gpu/infer", &[], body);
        assert_eq!(response.status, 200, "{isolation}: {}", response.text());
        assert_eq!(response.json()["outputs"][0]["data"].to_string(), "[1,2,3,4]");
        assert_ok(server.unload("gpu"));
        assert!(server.stop().success());
        for leak in ["device_bytes", "streams", "double_frees", "bad_handles"] {
            assert_eq!(fakes.reported(leak), 0, "{isolation}: {leak}");
        }
    }
}
