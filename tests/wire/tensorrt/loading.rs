//! Loading plans: each major version, several side by side, completion, model files by compute
//! capability, plugin libraries.

use super::*;
use trtserver_tests::control::{Control, assert_ok};
use trtserver_tests::{compile, folder, parameters};

#[test]
fn plan_is_served_by_the_library_of_its_major_version() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let server = scaling(&fakes, major, "").start();
        for rows in [1, 3, 8, 2] {
            scales(&server, "m", rows);
        }
        stops(server, &fakes);
        assert_eq!(fakes.reported(&format!("nvinfer_executions_{major}")), 4);
    }
}

#[test]
fn major_versions_serve_side_by_side_by_the_headers_of_the_plans() {
    let fakes = Fakes::with_tensorrt(&MAJORS);
    let add = |server, major| {
        let name = format!("m{major}");
        model(server, &name, scale_config(&name, ""), &Plan::scale(major))
    };
    let server = MAJORS.into_iter().fold(fakes.server(), add).start();
    for _ in 0..5 {
        for major in MAJORS {
            scales(&server, &format!("m{major}"), 2);
        }
    }
    stops(server, &fakes);
    for major in MAJORS {
        assert_eq!(fakes.reported(&format!("nvinfer_executions_{major}")), 5, "{major}");
    }
}

#[test]
fn repository_that_is_one_plan_serves_it() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let bare = |server: Server| server.file("model.plan", Plan::scale(10).bytes());
    let server = bare(fakes.server()).flag("--model-name=scale").start();
    for rows in [1, 3] {
        scales(&server, "scale", rows);
    }
    server.wait_for_log_with(&["holds the files of one model ('model.plan')", "'scale'"]);
    stops(server, &fakes);
    // A configuration beside it is read.
    let server = bare(fakes.server()).file("config.pbtxt", scale_config("own", "")).start();
    scales(&server, "own", 2);
    stops(server, &fakes);
}

#[test]
fn log_names_the_library_and_says_that_it_is_unproven() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let server = scaling(&fakes, 10, "").flag("--log-verbose=1").start();
    server.wait_for_log_with(&["TensorRT 10.16.1", "libnvinfer.so.10"]);
    server.wait_for_log("unproven on the real library");
    // Messages of the library reach the log of the server.
    server.wait_for_log("fake nvinfer, a test double");
    scales(&server, "m", 1);
}

#[test]
fn isolated_model_is_served() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let server = scaling(&fakes, 10, &parameters(&[("isolation", "process")])).start();
    scales(&server, "m", 3);
    stops(server, &fakes);
}

#[test]
fn configuration_is_completed_from_the_plan() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let server = fakes
            .server()
            .file("bare/1/model.plan", Plan::scale(major).bytes())
            .flag("--strict-model-config=false")
            .start();
        let config = server.get("/v2/models/bare/config").json();
        assert_eq!(config["platform"], "tensorrt_plan", "{config}");
        assert_eq!(config["max_batch_size"], 8, "{config}");
        for (kind, name) in [("input", "X"), ("output", "Y")] {
            let tensor = &config[kind][0];
            assert_eq!(tensor["name"], name, "{config}");
            assert_eq!(tensor["data_type"], "TYPE_FP32", "{config}");
            assert_eq!(tensor["dims"], json!([4]), "{config}");
        }
        scales(&server, "bare", 8);
        stops(server, &fakes);
    }
}

#[test]
fn plan_without_batch_dimension_is_completed_without_batching() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let plan = Plan::new(10)
        .line("input A INT32 3x2")
        .line("input B INT32 3x2")
        .line("output SUM INT32 3x2")
        .line("SUM = add A B");
    let server = fakes
        .server()
        .file("sum/1/model.plan", plan.bytes())
        .flag("--strict-model-config=false")
        .start();
    let config = server.get("/v2/models/sum/config").json();
    assert_eq!(config["max_batch_size"], 0, "{config}");
    assert_eq!(config["input"][1]["dims"], json!([3, 2]), "{config}");
    let input = |name| tensor(name, "INT32", &[3, 2], json!([1, 2, 3, 4, 5, 6]));
    let outputs = outputs(&infer(&server, "sum", &[input("A"), input("B")]));
    assert_eq!(outputs["SUM"]["data"], json!([2, 4, 6, 8, 10, 12]));
    stops(server, &fakes);
}

#[test]
fn each_gpu_gets_the_plan_of_its_compute_capability() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let files = "default_model_filename: \"t4.plan\"
        cc_model_filenames { key: \"8.0\" value: \"a100.plan\" }
        instance_group { kind: KIND_GPU }";
    let server = fakes
        .server()
        .env("FAKE_CUDA_DEVICES", "A/7.5/256,B/8.0/256")
        .model("m", scale_config("m", files))
        .file("m/1/t4.plan", Plan::scale(10).bytes())
        .file("m/1/a100.plan", Plan::scale(10).built_for("8.0").bytes())
        .start();
    for _ in 0..10 {
        scales(&server, "m", 1);
    }
    stops(server, &fakes);
}

#[test]
fn model_is_replaced_and_unloaded() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let server = scaling(&fakes, 10, "").flag("--model-control-mode=explicit").start();
    for factor in ["2.5", "-1"] {
        let plan = Plan::new(10)
            .line("input X FP32 -1x4")
            .line("output Y FP32 -1x4")
            .line("profile 0 X 1x4 4x4 8x4")
            .line(&format!("Y = scale X {factor}"));
        server.models().file("m/1/model.plan", plan.bytes());
        assert_ok(server.load("m"));
        let outputs = outputs(&send_rows(&server, "m", 1));
        let factor: f64 = factor.parse().unwrap();
        assert_eq!(outputs["Y"]["data"][3].as_f64(), Some(3.0 * factor));
    }
    assert_ok(server.unload("m"));
    server.poll_until("it is unloaded", |server| server.get("/v2/models/m/ready").status != 200);
    stops(server, &fakes);
}

/// A library that registers the plugin `Twice`, linked with the fake TensorRT as real ones are.
fn plugin_library(fakes: &Fakes) -> std::path::PathBuf {
    let library = fakes.path("libtwice.so");
    let nvinfer = fakes.path("libnvinfer.so.10").display().to_string();
    let options = ["-Wl,--no-as-needed".to_owned(), nvinfer];
    compile("tests/fakes/nvinfer/plugin.c", &library, &options);
    library
}

#[test]
fn plugin_libraries_are_opened_before_the_plans_that_need_them() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let library = plugin_library(&fakes);
    let plan = Plan::scale(10).line("plugin Twice");
    let server = || model(fakes.server(), "m", scale_config("m", ""), &plan);
    let refused = server().refuses_to_start().stderr;
    for part in ["m/1/model.plan", "Twice"] {
        assert!(refused.contains(part), "no {part:?} in {refused}");
    }
    let setting = format!("--backend-config=tensorrt,plugins={}", library.display());
    let server = server().flag(setting).start();
    scales(&server, "m", 2);
    stops(server, &fakes);

    let absent = model(fakes.server(), "m", scale_config("m", ""), &plan)
        .flag("--backend-config=tensorrt,plugins=/nowhere/libabsent.so")
        .refuses_to_start()
        .stderr;
    assert!(absent.contains("/nowhere/libabsent.so"), "{absent}");
}

#[test]
fn version_compatible_plan_runs_on_a_later_release_if_its_code_may() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let plan = Plan::scale(major).line("host-code").built_by([major as u8, 5, 0, 1]);
        let server = |more: &str| model(fakes.server(), "m", scale_config("m", more), &plan);
        let refused = server("").refuses_to_start().stderr;
        for part in ["m/1/model.plan", "setEngineHostCodeAllowed", "allow_host_code"] {
            assert!(refused.contains(part), "no {part:?} in {refused}");
        }
        let server = server(&parameters(&[("allow_host_code", "true")])).start();
        scales(&server, "m", 2);
        stops(server, &fakes);
    }
}

/// One tensor of one float.
fn safetensors(name: &str, value: f32) -> Vec<u8> {
    let header =
        format!("{{\"{name}\":{{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}}}");
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &value.to_le_bytes()].concat()
}

#[test]
fn plan_without_weights_gets_them_from_a_file() {
    for major in [10, 11] {
        let fakes = Fakes::with_tensorrt(&[major]);
        let plan = Plan::new(major)
            .line("stripped W")
            .line("input X FP32 -1x4")
            .line("output Y FP32 -1x4")
            .line("profile 0 X 1x4 4x4 8x4")
            .line("Y = scale X W");
        let weights = parameters(&[("weights", "w.safetensors")]);
        let server = |config: &str, file: Vec<u8>| {
            model(fakes.server(), "m", scale_config("m", config), &plan)
                .file("m/1/w.safetensors", file)
        };
        for (config, file, parts) in [
            ("", vec![], ["m/1/model.plan", "W", "weights"]),
            (&*weights, b"garbage".to_vec(), ["m/1/model.plan", "w.safetensors", "safetensors"]),
            (&*weights, safetensors("V", 1.0), ["m/1/model.plan", "w.safetensors", "W"]),
        ] {
            let refused = server(config, file).refuses_to_start().stderr;
            for part in parts {
                assert!(refused.contains(part), "no {part:?} in {refused}");
            }
        }
        let server = server(&weights, safetensors("W", 2.5)).start();
        scales(&server, "m", 3);
        stops(server, &fakes);
    }
}

#[test]
fn library_directory_is_searched_instead_of_the_loader_path() {
    let fakes = Fakes::with_tensorrt(&[10]);
    let other = folder();
    let library = std::fs::read(fakes.path("libnvinfer.so.10")).unwrap();
    std::fs::write(other.path().join("libnvinfer.so.10.16.1"), library).unwrap();
    fakes.write("libnvinfer.so.10", "not a library");
    let setting = format!("--backend-config=tensorrt,library-directory={}", other.path().display());
    let server = scaling(&fakes, 10, "").flag(setting).start();
    scales(&server, "m", 2);
    stops(server, &fakes);
}
