//! Batches whose requests are executed one by one, or whose tensors are not where TensorRT takes
//! them.

use super::*;

/// Y = X * 2.5, and Z holds the dimensions of X, which cannot be split among requests.
fn with_shape_output(major: u32) -> Plan {
    Plan::scale(major).line("output Z INT32 2 shape").line("Z = shape X")
}

const SHAPE_OUTPUT: &str =
    "output { name: \"Z\" data_type: TYPE_INT32 dims: [ 2 ] is_shape_tensor: true }
    dynamic_batching { }";

/// The inputs of the second request on are not aligned as TensorRT demands, which the fake library
/// checks.
#[test]
fn batch_with_a_shape_tensor_as_output_is_executed_request_by_request() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let config = scale_config("m", SHAPE_OUTPUT);
        let server = model(fakes.server(), "m", config, &with_shape_output(major))
            .env("TRTSERVER_DELAY_SCHEDULER", "3")
            .start();
        std::thread::scope(|scope| {
            for rows in [1, 3, 2] {
                let server = &server;
                scope.spawn(move || {
                    let outputs = outputs(&send_rows(server, "m", rows));
                    let expected: Vec<f64> = (0..rows * 4).map(|i| i as f64 * 2.5).collect();
                    assert_eq!(outputs["Y"]["data"], json!(expected));
                    assert_eq!(outputs["Z"]["data"], json!([rows, 4]));
                });
            }
        });
        stops(server, &fakes);
        assert_eq!(fakes.reported(&format!("nvinfer_executions_{major}")), 3);
    }
}

#[test]
fn request_that_fits_no_profile_does_not_fail_the_batch() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let plan = Plan::new(10)
        .line("input X FP32 -1x4")
        .line("output Y FP32 -1x4")
        .line("profile 0 X 1x4 2x4 4x4")
        .line("profile 1 X 2x4 4x4 8x4")
        .line("Y = scale X 2.5");
    let more = "dynamic_batching { } instance_group { kind: KIND_GPU profile: \"1\" }";
    let server = model(fakes.server(), "m", scale_config("m", more), &plan)
        .env("TRTSERVER_DELAY_SCHEDULER", "1")
        .start();
    let refused = send_rows(&server, "m", 1);
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("profile 1 allows [2,4] to [8,4]"), "{}", refused.text());
    scales(&server, "m", 2);
    stops(server, &fakes);
}

#[test]
fn nearest_of_several_profiles_is_used() {
    for major in [10, 11] {
        let fakes = Fakes::with_tensorrt(&[major]);
        let plan = Plan::new(major)
            .line("input X FP32 -1x4")
            .line("output Y FP32 -1x4")
            .line("profile 0 X 1x4 1x4 2x4")
            .line("profile 1 X 3x4 8x4 8x4")
            .line("Y = scale X 2.5");
        let group = "instance_group { kind: KIND_GPU profile: [ \"0\", \"1\" ] }";
        let server = model(fakes.server(), "m", scale_config("m", group), &plan).start();
        for rows in [1, 8, 2, 3] {
            scales(&server, "m", rows);
        }
        stops(server, &fakes);
    }
}

#[test]
fn batch_size_beyond_the_profiles_of_the_instance_is_refused() {
    let fakes = Fakes::with_tensorrt(&[11]);
    let plan = Plan::new(11)
        .line("input X FP32 -1x4")
        .line("output Y FP32 -1x4")
        .line("profile 0 X 1x4 2x4 4x4")
        .line("profile 1 X 1x4 8x4 8x4")
        .line("Y = scale X 2.5");
    let refused =
        model(fakes.server(), "m", scale_config("m", ""), &plan).refuses_to_start().stderr;
    let text = "unexpected configuration maximum batch size 8 for 'm', model maximum is 4";
    assert!(refused.contains(text), "{refused}");
    leaks_nothing(&fakes);
}

#[test]
fn parameter_that_contradicts_the_header_is_refused_with_both() {
    let fakes = Fakes::with_tensorrt(&MAJORS);
    let version = |major: &str| trtserver_tests::parameters(&[("tensorrt_version", major)]);
    let refused = scaling(&fakes, 10, &version("11")).refuses_to_start().stderr;
    for part in ["m/1/model.plan", "asks for TensorRT 11", "needs TensorRT 10"] {
        assert!(refused.contains(part), "no {part:?} in {refused}");
    }
    let server = scaling(&fakes, 10, &version("10")).start();
    scales(&server, "m", 1);
    stops(server, &fakes);
}

#[test]
fn setting_allows_host_code_for_all_plans() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let plan = Plan::scale(10).line("host-code").built_by([10, 5, 0, 1]);
    let server = model(fakes.server(), "m", scale_config("m", ""), &plan)
        .flag("--backend-config=tensorrt,version-compatible=true")
        .start();
    scales(&server, "m", 2);
    stops(server, &fakes);
}
