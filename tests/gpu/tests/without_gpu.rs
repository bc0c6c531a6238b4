//! `trtserver-gpu-test` on a machine without a usable GPU.

use std::process::Command;

#[test]
fn machine_without_gpu_skips_aloud_and_succeeds() {
    let output = Command::new(env!("CARGO_BIN_EXE_trtserver-gpu-test"))
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{out}");
    assert!(out.starts_with("SKIPPED: no check was run, because this machine has no usable GPU: "));
    assert_eq!(out.lines().count(), 1, "{out}");
}

#[test]
fn list_names_the_checks() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_trtserver-gpu-test")).arg("--list").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    for check in [
        "discovery",
        "kernels",
        "cuda-shared-memory",
        "latency",
        "overlap",
        "pinned-inputs",
        "memory",
        "tensorrt",
        "onnx-speed",
        "onnx-copies",
        "faults",
    ] {
        assert!(out.lines().any(|line| line.starts_with(check)), "{check} in {out}");
    }
}
