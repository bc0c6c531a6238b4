//! What a client of an explicit-mode server can do to it: load requests neither read nor write
//! files outside the model, nor undo what the operator has set.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the functions here are parts of tests

use serde_json::{Value, json};
use std::fs::{self, create_dir_all, read_to_string};
use std::os::unix::fs::symlink;
use std::path::Path;
use trtserver_client::v2::LoadOptions;
use trtserver_client::{Bytes, Protocol, Settings, blocking};
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::grpc::field;
use trtserver_tests::{Running, Server, folder, parameters, probe, root};

/// The same load request over HTTP and gRPC; the errors.
fn load(
    server: &Running,
    model: &str,
    config: Option<&Value>,
    files: &[(&str, &[u8])],
) -> [Result<(), String>; 2] {
    [(Protocol::Http, server.http()), (Protocol::Grpc, server.grpc())].map(|(protocol, url)| {
        let client =
            blocking::v2::BlockingClient::new(&Settings::new(url).protocol(protocol)).unwrap();
        let file =
            |(path, bytes): &(&str, &[u8])| ((*path).to_owned(), Bytes::copy_from_slice(bytes));
        let files = files.iter().map(file).collect();
        let options = LoadOptions { config: config.map(Value::to_string), files };
        client.load(model, &options).map_err(|e| e.message().to_owned())
    })
}

/// All refuse it, with all of these parts in the error.
#[track_caller]
fn assert_refused(results: [Result<(), String>; 2], parts: &[&str]) {
    for result in results {
        let text = result.expect_err(&format!("{parts:?}"));
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
    }
}

#[track_caller]
fn assert_loaded(results: [Result<(), String>; 2]) {
    results.into_iter().for_each(|result| assert_eq!(result, Ok(())));
}

fn addsub_file() -> Vec<u8> {
    fs::read(root().join("tests/models/addsub_fp32/1/model.onnx")).unwrap()
}

/// The configuration of `addsub_fp32` with one parameter.
fn addsub(name: &str, parameter: Option<(&str, &str)>) -> Value {
    let tensor = |name: &str| json!({"name": name, "data_type": "TYPE_FP32", "dims": [16]});
    let parameters = parameter.map(|(key, value)| json!({key: {"string_value": value}}));
    json!({
        "name": name, "platform": "onnxruntime_onnx", "max_batch_size": 8,
        "input": [tensor("INPUT0"), tensor("INPUT1")],
        "output": [tensor("OUTPUT0"), tensor("OUTPUT1")],
        "parameters": parameters.unwrap_or(json!({})),
    })
}

#[test]
fn parameters_of_onnx_runtime_name_no_files_of_the_server() {
    let dir = folder();
    let written = dir.path().join("written").display().to_string();
    let server = explicit().copy_model("tests/models/addsub_fp32").start();
    assert_ok(server.load("addsub_fp32"));
    let file = addsub_file();
    for (key, value, parts) in [
        (
            "session.optimized_model_filepath",
            &*written,
            &["is for the operator", "write a file"][..],
        ),
        ("session.enable_profiling", &written, &["is for the operator"]),
        ("session.collect_node_memory_stats_to_file", &written, &["is for the operator"]),
        ("session.node_partition_config_file", "/etc/passwd", &["reads", "--backend-config="]),
        ("session.model_external_initializers_file_folder_path", "/etc", &["\"/etc\" leaves"]),
        ("session.model_external_initializers_file_folder_path", "../..", &["\"../..\" leaves"]),
        (
            "session.optimised",
            "1",
            &["unknown parameter", "known are", "session.disable_prepacking"],
        ),
    ] {
        let parts = [&[key], parts].concat();
        // As a configuration alone, of a loaded model, and with files.
        let config = addsub("addsub_fp32", Some((key, value)));
        assert_refused(load(&server, "addsub_fp32", Some(&config), &[]), &parts);
        let config = addsub("uploaded", Some((key, value)));
        assert_refused(
            load(&server, "uploaded", Some(&config), &[("1/model.onnx", &file)]),
            &parts,
        );
        assert_eq!(dir.path().read_dir().unwrap().count(), 0, "{key}");
    }
    assert!(server.get("/v2/models/addsub_fp32/ready").status == 200);
    let allowed = addsub("uploaded", Some(("session.disable_prepacking", "1")));
    assert_loaded(load(&server, "uploaded", Some(&allowed), &[("1/model.onnx", &file)]));
    // The operator may have all of them.
    let server = explicit()
        .copy_model("tests/models/addsub_fp32")
        .flag(format!("--backend-config=onnxruntime,session.optimized_model_filepath={written}"))
        .start();
    assert_ok(server.load("addsub_fp32"));
    assert!(Path::new(&written).is_file());
}

#[test]
fn weights_of_an_uploaded_model_lie_in_the_model() {
    let dir = folder();
    let secret = dir.path().join("secret");
    fs::write(&secret, [b'x'; 64]).unwrap();
    let server = explicit().start();
    let config = addsub("m", None);
    let absolute = secret.display().to_string();
    let relative = format!("../../../../../../../..{absolute}");
    for location in [&*absolute, &relative, "../x", "/etc/passwd"] {
        let entry = |key: &str, value: &str| {
            field(13, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat())
        };
        let tensor = [
            vec![0x08, 16, 0x10, 1], // dims: 16, FLOAT
            field(8, b"W"),
            entry("location", location),
            vec![0x70, 1], // external
        ];
        // Messages of a field that is there twice are merged.
        let file = [addsub_file(), field(7, &field(5, &tensor.concat()))].concat();
        let files: &[(&str, &[u8])] = &[("1/model.onnx", &file)];
        let parts = ["names an external file", location, "model 'm'"];
        assert_refused(load(&server, "m", Some(&config), files), &parts);
    }
}

/// A model with label file, warm-up file and model file of these names.
fn with_files(name: &str, label: &str, warmup: &str, model_file: &str) -> Value {
    json!({
        "name": name, "backend": "probe", "max_batch_size": 8,
        "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [1]}],
        "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [1], "label_filename": label}],
        "default_model_filename": model_file,
        "model_warmup": [{"name": "w", "batch_size": 1, "inputs": {"INPUT0": {
            "data_type": "TYPE_FP32", "dims": [1], "input_data_file": warmup,
        }}}],
    })
}

/// A repository whose model `m` has links everywhere: `in` within the repository, `out` to a file
/// outside.
fn linked(outside: &Path) -> Server {
    let server = explicit().model("m", probe("m", &[])).file("shared/own", [0, 0, 0, 0]);
    let model = server.models().join("m");
    fs::write(outside, [0, 0, 0, 0]).unwrap();
    for dir in ["", "1", "warmup"] {
        let dir = model.join(dir);
        create_dir_all(&dir).unwrap();
        symlink(server.models().join("shared/own"), dir.join("in")).unwrap();
        symlink(outside, dir.join("out")).unwrap();
    }
    server
}

#[test]
fn links_lead_to_the_repository_or_to_directories_of_the_operator() {
    let dir = folder();
    let outside = dir.path().join("secret");
    let server = linked(&outside).start();
    let load_with = |server: &Running, label: &str, warmup: &str, model: &str| {
        load(server, "m", Some(&with_files("m", label, warmup, model)), &[])
    };
    assert_loaded(load_with(&server, "in", "in", "in"));
    let target = format!("leads to '{}'", outside.display());
    let flag = "--model-link-dir";
    assert_refused(load_with(&server, "out", "in", "in"), &["label file", &target, flag]);
    assert_refused(load_with(&server, "in", "out", "in"), &["warmup data file", &target, flag]);
    assert_refused(load_with(&server, "in", "in", "out"), &["model file", &target, flag]);
    for name in ["../../../etc/passwd", "/etc/passwd", "sub/../out"] {
        assert_refused(load_with(&server, name, "in", "in"), &[name, "leaves"]);
        assert_refused(load_with(&server, "in", name, "in"), &[name, "leaves"]);
        assert_refused(load_with(&server, "in", "in", name), &[name, "leaves"]);
    }
    let mut by_compute = with_files("m", "in", "in", "in");
    by_compute["cc_model_filenames"] = json!({"9.0": "out"});
    assert_refused(load(&server, "m", Some(&by_compute), &[]), &["model file", &target]);
    let allowed =
        linked(&outside).flag(format!("--model-link-dir={}", dir.path().display())).start();
    assert_loaded(load_with(&allowed, "out", "out", "out"));
    let wrong = explicit().flag("--model-link-dir=/nowhere/at/all").refuses_to_start();
    assert!(wrong.stderr.contains("--model-link-dir=/nowhere/at/all: "), "{}", wrong.stderr);
}

#[test]
fn configuration_outside_is_not_read() {
    let dir = folder();
    let outside = dir.path().join("config.pbtxt");
    fs::write(&outside, probe("m", &[])).unwrap();
    let server = explicit().model("m", probe("m", &[])).start();
    let config = server.models().path().join("m/config.pbtxt");
    fs::remove_file(&config).unwrap();
    symlink(&outside, &config).unwrap();
    assert_eq!(server.load("m").status, 500);
    server.wait_for_log_with(&["m/config.pbtxt' leads to", "--model-link-dir"]);
}

/// As volumes of Kubernetes are laid out: every file is a link to `..data`, which is a link to a
/// directory with a date.
#[test]
fn volumes_with_links_within_the_model_work() {
    let server = explicit().model("m", probe("m", &[])).start();
    let model = server.models().path().join("m");
    let data = model.join("..2026_01_01");
    create_dir_all(&data).unwrap();
    fs::rename(model.join("config.pbtxt"), data.join("config.pbtxt")).unwrap();
    fs::rename(model.join("1"), data.join("1")).unwrap();
    fs::write(data.join("labels"), "a\n").unwrap();
    symlink("..2026_01_01", model.join("..data")).unwrap();
    for entry in ["config.pbtxt", "1", "labels"] {
        symlink(Path::new("..data").join(entry), model.join(entry)).unwrap();
    }
    assert_ok(server.load("m"));
    assert!(server.serves("m"));
    // The directory of a model may itself be a link, wherever that leads.
    let store = folder();
    let place = store.path().join("n");
    create_dir_all(place.join("1")).unwrap();
    fs::write(place.join("config.pbtxt"), probe("n", &[])).unwrap();
    symlink(&place, server.models().path().join("n")).unwrap();
    assert_ok(server.load("n"));
    assert!(server.serves("n"));
}

fn maps(server: &Running) -> String {
    let pid = server.process().pid().as_raw_nonzero();
    read_to_string(format!("/proc/{pid}/maps")).unwrap()
}

fn probe_with(name: &str, isolation: &str) -> Value {
    let mut config = with_files(name, "", "", "");
    config["model_warmup"] = json!([]);
    config["parameters"] = json!({"isolation": {"string_value": isolation}});
    config
}

#[test]
fn load_requests_do_not_undo_isolation() {
    let server = explicit()
        .model("m", probe("m", &[]))
        .model("file", probe("file", &[]) + &parameters(&[("isolation", "none")]))
        .flag("--backend-config=probe,isolation=process")
        .start();
    assert_ok(server.load("m"));
    let parts = ["'isolation' of the load request is 'none'", "'probe'"];
    assert_refused(load(&server, "m", Some(&probe_with("m", "none")), &[]), &parts);
    let files: &[(&str, &[u8])] = &[("1/x", b"x")];
    assert_refused(load(&server, "new", Some(&probe_with("new", "none")), files), &parts);
    // Nor does a configuration in the repository.
    let refused = server.load("file");
    let flag = "--backend-config=probe,isolation=process";
    assert!(refused.error_text().contains(flag), "{}", refused.text());
    assert!(!maps(&server).contains("trtserver_probe"), "the library is in the server");
    assert!(server.serves("m"));
    // Tightening is allowed.
    let server = explicit().model("m", probe("m", &[])).start();
    assert_loaded(load(&server, "m", Some(&probe_with("m", "process")), &[]));
}

/// The plugin `custom` declares that its models must be isolated.
#[test]
fn load_requests_do_not_undo_the_isolation_that_a_backend_asks_for() {
    let server = explicit().model("m", probe("m", &[])).start();
    let custom = |name: &str| {
        let mut config = probe_with(name, "none");
        config["backend"] = json!("custom");
        config["default_model_filename"] = json!("lib.so");
        config
    };
    let files: &[(&str, &[u8])] = &[("1/lib.so", b"x")];
    let parts = ["'isolation' of the load request", "--backend-config=custom,isolation=none"];
    assert_refused(load(&server, "new", Some(&custom("new")), files), &parts);
    assert_refused(load(&server, "m", Some(&custom("m")), &[]), &parts);
}

#[test]
fn uploaded_code_can_be_refused() {
    let server = explicit()
        .model("m", probe("m", &[]))
        .flag("--allow-uploaded-code=false")
        .triton_start_line()
        .start();
    let files: &[(&str, &[u8])] = &[("1/x", b"x")];
    let probe_config = with_files("new", "", "", "");
    let parts = ["model 'new'", "backend 'probe'", "--allow-uploaded-code=false"];
    assert_refused(load(&server, "new", Some(&probe_config), files), &parts);
    // Data and the operator's own files are not code.
    let file = addsub_file();
    let config = addsub("data", None);
    assert_loaded(load(&server, "data", Some(&config), &[("1/model.onnx", &file)]));
    assert_loaded(load(&server, "m", Some(&probe_with("m", "process")), &[]));
    let log = explicit().flag("--http-address=127.0.0.1").flag("--grpc-address=0.0.0.0").start();
    log.wait_for_log("load requests may not bring code (--allow-uploaded-code=false)");
}
