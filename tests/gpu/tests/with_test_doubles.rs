//! Checks on test doubles of the driver and of TensorRT: `tensorrt` passes right results, and fails
//! wrong ones; `pinned-inputs` counts what is pinned.

use std::process::{Command, Output};
use trtserver_tests::fakes::Fakes;
use trtserver_tests::plans::Plan;
use trtserver_tests::{dist, folder};

/// Runs the check on a repository whose `addsub` computes OUTPUT1 by `operation`; without it, on
/// none.
fn check(operation: Option<&str>) -> Output {
    let (fakes, models) = (Fakes::with_tensorrt(&[10, 11]), folder());
    let mut command = Command::new(env!("CARGO_BIN_EXE_trtserver-gpu-test"));
    command.args(["--only", "tensorrt"]).env("TRTSERVER_DIST", dist());
    command.env("LD_LIBRARY_PATH", fakes.path("")).env("FAKE_CUDA_VISIBLE", "0");
    if let Some(operation) = operation {
        let mut plan = Plan::new(11);
        for name in ["INPUT0", "INPUT1"] {
            plan = plan
                .line(&format!("input {name} FP32 -1x16"))
                .line(&format!("profile 0 {name} 1x16 4x16 8x16"));
        }
        for name in ["OUTPUT0", "OUTPUT1"] {
            plan = plan.line(&format!("output {name} FP32 -1x16"));
        }
        let plan = plan
            .line("OUTPUT0 = add INPUT0 INPUT1")
            .line(&format!("OUTPUT1 = {operation} INPUT0 INPUT1"));
        let version = models.path().join("addsub/1");
        std::fs::create_dir_all(&version).unwrap_or_else(|e| panic!("{}: {e}", version.display()));
        let file = version.join("model.plan");
        std::fs::write(&file, plan.bytes()).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        command.env("TRTSERVER_TENSORRT_MODELS", models.path());
    }
    command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// Times of a test double say nothing; a wrong sum or count fails.
#[test]
fn regions_are_pinned_while_they_are_registered() {
    let fakes = Fakes::new();
    for (fail, succeeds, part) in [
        ("", true, "SKIP  pinned-inputs"),
        ("cuMemHostRegister_v2:0:801", false, "expected 8388608 bytes of the region to be pinned"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trtserver-gpu-test"));
        command.args(["--only", "pinned-inputs", "--requests", "2"]).env("TRTSERVER_DIST", dist());
        command.env("LD_LIBRARY_PATH", fakes.path("")).env("FAKE_CUDA_VISIBLE", "0");
        let output = command.env("FAKE_CUDA_FAIL", fail).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(out.contains(part), "no {part:?} in {out}");
        assert_eq!(output.status.success(), succeeds, "{out}");
    }
}

#[test]
fn tensorrt_check_passes_right_results_and_fails_wrong_ones() {
    let cases = [
        (Some("sub"), true, "PASS  tensorrt", "addsub are right"),
        (Some("add"), false, "FAIL  tensorrt", "wrong OUTPUT1"),
        (None, true, "SKIP  tensorrt", "a damaged plan is refused by TensorRT 10, 11"),
    ];
    for (operation, passes, verdict, part) in cases {
        let output = check(operation);
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(out.starts_with("The CUDA driver is a test double"), "{out}");
        assert!(out.contains(verdict) && out.contains(part), "no {verdict} {part:?} in {out}");
        assert_eq!(output.status.success(), passes, "{out}");
    }
}
