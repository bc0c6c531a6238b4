//! The real lean and dispatch runtimes of TensorRT on a machine without a usable GPU: they are
//! loaded and asked for their version, write to the log, and give no runtime. What a GPU is needed
//! for, to read and run plans, is in `cargo xtask gpu-test`.

use super::*;
use std::path::PathBuf;
use trtserver_tests::{folder, tensorrt};

const RELEASES: [(u32, &str); 2] = [(10, "10.16.1.11"), (11, "11.4.0.106")];

/// Serves a plan with the libraries of this folder, on the fake driver. Returns why the plan is
/// refused, and the log.
fn refusal(major: u32, folder: &std::path::Path) -> (String, String) {
    let fakes = Fakes::with_tensorrt(&[]);
    let setting = format!("--backend-config=tensorrt,library-directory={}", folder.display());
    let server = scaling(&fakes, major, "")
        .model("echo", trtserver_tests::probe("echo", &[]) + "instance_group { kind: KIND_CPU }\n")
        .flag(setting)
        .flag("--exit-on-error=false")
        .start();
    assert_eq!(server.infer("echo", "").status, 200);
    let index = server.post("/v2/repository/index", &[], "").json();
    let entry = index.as_array().and_then(|all| all.iter().find(|m| m["name"] == "m")).cloned();
    let reason = entry.unwrap_or_default()["reason"].as_str().unwrap_or_default().to_owned();
    // The log is read by a thread of the test, which may be behind.
    server.wait_for_log_with(&["TensorRT: ", "CUDA initialization failure"]);
    let log = server.log();
    assert!(server.stop().success());
    (reason, log)
}

/// Without a CUDA runtime the library returns an address that is neither an object nor null.
#[test]
fn lean_runtime_is_loaded_and_refuses_without_a_gpu() {
    for (major, release) in RELEASES {
        let (reason, log) = refusal(major, &tensorrt(release));
        let file = format!("libnvinfer_lean.so.{major}");
        for part in [&*file, "CUDA initialization failure with error"] {
            assert!(reason.contains(part), "no {part:?} in {reason}\n{log}");
        }
        assert!(log.contains("TensorRT: "), "no message of the library in {log}");
        let version = release.rsplit_once('.').map_or(release, |(version, _)| version);
        assert!(reason.contains(version) || log.contains(version), "no {version} in {log}");
    }
}

#[test]
fn dispatch_runtime_is_loaded_and_refuses_without_a_gpu() {
    for (major, release) in RELEASES {
        let (alone, file) = (folder(), format!("libnvinfer_dispatch.so.{major}"));
        let library: PathBuf = tensorrt(release).join(&file);
        std::os::unix::fs::symlink(library, alone.path().join(&file)).unwrap();
        let (reason, log) = refusal(major, alone.path());
        assert!(reason.contains(&file), "no {file} in {reason}\n{log}");
        assert!(reason.contains("CUDA initialization failure"), "{reason}\n{log}");
    }
}
