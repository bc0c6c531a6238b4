//! Plans, configurations and libraries that cannot be used: the error names the file, both sides
//! and the way out, and another model goes on.

use super::*;
use trtserver_tests::fakes;

/// Serves `bad`, and the good model `m` of `major` beside it. Returns the reason of `bad` in the
/// repository index.
#[track_caller]
fn reason(
    fakes: &Fakes,
    major: u32,
    config: &str,
    bad: &[u8],
    change: fn(Server) -> Server,
) -> String {
    let server = fakes.server().model("bad", config).file("bad/1/model.plan", bad);
    let server = change(model(server, "m", scale_config("m", ""), &Plan::scale(major)))
        .flag("--exit-on-error=false")
        .start();
    scales(&server, "m", 2);
    assert_ne!(server.get("/v2/models/bad/ready").status, 200);
    let index = server.post("/v2/repository/index", &[], "").json();
    let entry = index.as_array().and_then(|all| all.iter().find(|m| m["name"] == "bad")).cloned();
    let entry = entry.unwrap_or_else(|| panic!("no entry in {index}"));
    stops(server, fakes);
    entry["reason"].as_str().unwrap_or_default().to_owned()
}

#[track_caller]
fn says(reason: &str, parts: &[&str]) {
    for part in parts {
        assert!(reason.contains(part), "no {part:?} in {reason}");
    }
}

fn same(server: Server) -> Server {
    server
}

#[test]
fn file_that_is_no_plan_is_refused_with_what_it_is() {
    let plan = Plan::scale(10).bytes();
    let mut swapped = plan.clone();
    swapped[..4].reverse();
    let mut later = plan.clone();
    later[4] = 9;
    let cases: [(&[u8], &[&str]); 7] = [
        (b"", &["empty"]),
        (&plan[..20], &["truncated", "20 bytes"]),
        (&plan[..plan.len() - 9], &["TensorRT", "Serialization"]),
        (b"name: \"a configuration\"\nplatform: \"tensorrt_plan\"\n", &["text"]),
        (b"\x08\x07\x12\x04test some ONNX model of a user", &["ONNX", "trtexec"]),
        (&swapped, &["byte order"]),
        (&later, &["TensorRT"]),
    ];
    let fakes = Fakes::with_tensorrt(&[10]);
    for (bytes, parts) in cases {
        let reason = reason(&fakes, 10, &scale_config("bad", ""), bytes, same);
        says(&reason, &["bad/1/model.plan"]);
        says(&reason, parts);
    }
}

#[test]
fn plan_of_a_major_version_that_is_not_there_is_refused_with_both() {
    for (have, need) in [(10, 8), (8, 11), (11, 10)] {
        let fakes = Fakes::with_tensorrt(&[have]);
        let plan = Plan::scale(need).bytes();
        let reason = reason(&fakes, have, &scale_config("bad", ""), &plan, same);
        says(&reason, &["bad/1/model.plan", &format!("libnvinfer.so.{need}"), "library-directory"]);
    }
}

#[test]
fn plan_of_another_release_is_refused_with_both() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let plan = Plan::scale(10).built_by([10, 3, 0, 26]).bytes();
    let reason = reason(&fakes, 10, &scale_config("bad", ""), &plan, same);
    says(&reason, &["bad/1/model.plan", "10.3.0", "10.16.1"]);
}

#[test]
fn plan_for_another_gpu_is_refused_with_both() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let plan = Plan::scale(major).built_for("9.0").bytes();
        let reason = reason(&fakes, major, &scale_config("bad", ""), &plan, same);
        says(&reason, &["bad/1/model.plan", "9.0", "7.5"]);
    }
}

#[test]
fn tensors_of_the_configuration_that_differ_from_the_plan_are_refused() {
    let right = scale_config("bad", "");
    let cases: [(String, &[&str]); 6] = [
        (right.replace("\"X\"", "\"Z\""), &["'Z'", "X"]),
        (right.replace("\"Y\"", "\"Z\""), &["'Z'", "Y"]),
        (right.replace("TYPE_FP32", "TYPE_INT32"), &["X", "INT32", "FP32"]),
        (right.replace("dims: [ 4 ]", "dims: [ 5 ]"), &["X", "5", "4"]),
        (scale_config("bad", "instance_group { kind: KIND_CPU }"), &["KIND_CPU", "KIND_GPU"]),
        (
            scale_config("bad", "instance_group { kind: KIND_GPU profile: \"3\" }"),
            &["profile", "3", "1"],
        ),
    ];
    for major in [8, 11] {
        let fakes = Fakes::with_tensorrt(&[major]);
        for (config, parts) in &cases {
            let plan = Plan::scale(major).bytes();
            says(&reason(&fakes, major, config, &plan, same), parts);
        }
    }
}

#[test]
fn context_that_cannot_be_created_is_refused_with_the_reason_of_tensorrt() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let reason = reason(&fakes, major, &scale_config("bad", ""), b"", same);
        assert!(!reason.is_empty());
        let refused = scaling(&fakes, major, "")
            .env("FAKE_NVINFER_FAIL", "createExecutionContext:0")
            .refuses_to_start()
            .stderr;
        says(&refused, &["model.plan", "createExecutionContext: injected failure"]);
        leaks_nothing(&fakes);
    }
}

/// Starts a server with `m` of major 10 and a CPU model, and returns the log of the failure; the
/// other model is served.
#[track_caller]
fn without_usable_library(fakes: &Fakes, change: impl FnOnce(Server) -> Server) -> String {
    let config = scale_config("m", "");
    let server = model(fakes.server(), "m", config, &Plan::scale(10))
        .model("echo", trtserver_tests::probe("echo", &[]) + "instance_group { kind: KIND_CPU }\n")
        .flag("--exit-on-error=false");
    let server = change(server).start();
    assert_eq!(server.infer("echo", "").status, 200);
    assert_ne!(server.get("/v2/models/m/ready").status, 200);
    let index = server.post("/v2/repository/index", &[], "").text();
    assert!(server.stop().success());
    index
}

#[test]
fn library_that_is_missing_or_not_tensorrt_is_named() {
    let fakes = Fakes::with_tensorrt(&[]);
    let missing = without_usable_library(&fakes, same);
    says(&missing, &["libnvinfer.so.10", "libnvinfer_lean.so.10", "library-directory"]);

    fakes.write("libnvinfer.so.10", "not a library");
    says(&without_usable_library(&fakes, same), &["libnvinfer.so.10"]);

    // A library of something else.
    std::fs::copy(fakes.path("libcuda.so.1"), fakes.path("libnvinfer.so.10")).unwrap();
    says(&without_usable_library(&fakes, same), &["libnvinfer.so.10", "getInferLibVersion"]);

    fakes.write("libnvinfer.so.10", fakes::nvinfer(10, &["-DWITHOUT_RUNTIME"]));
    let text = without_usable_library(&fakes, same);
    says(&text, &["libnvinfer.so.10", "createInferRuntime_INTERNAL"]);

    // The name of one version, the contents of another.
    fakes.write("libnvinfer.so.10", fakes::nvinfer(11, &[]));
    says(&without_usable_library(&fakes, same), &["libnvinfer.so.10", "11.4.0"]);
}

#[test]
fn driver_that_is_too_old_for_the_library_is_refused_with_its_version() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let text = without_usable_library(&fakes, |server| server.env("FAKE_CUDA_VERSION", "11040"));
    says(&text, &["libnvinfer.so.10", "11.4", "CUDA initialization failure with error: 35"]);
}

#[test]
fn machine_without_a_gpu_refuses_the_model_and_serves_the_others() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let text = without_usable_library(&fakes, |server| server.env("FAKE_CUDA_DEVICES", ""));
    says(&text, &["GPU"]);
}

#[test]
fn tensors_in_a_format_that_is_not_linear_are_refused() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let plan = Plan::scale(10).line("format 4").bytes();
    let reason = reason(&fakes, 10, &scale_config("bad", ""), &plan, same);
    says(&reason, &["X", "linear"]);
}

/// The process ends after the models are closed, the one that was loaded and the one whose load
/// failed.
#[test]
fn refused_start_closes_models() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let plan = Plan::scale(10).line("slow-close 400000");
    let server = model(fakes.server(), "m", scale_config("m", ""), &plan);
    let too_large = scale_config("bad", "").replace("max_batch_size: 8", "max_batch_size: 16");
    model(server, "bad", too_large, &plan).refuses_to_start();
    leaks_nothing(&fakes);
}
