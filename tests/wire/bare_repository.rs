//! A repository that holds the files of one model itself, as KServe mounts it.

use serde_json::json;
use std::fs;
use trtserver_tests::isolated::process;
use trtserver_tests::polling::polling;
use trtserver_tests::{Ended, Repository, Running, Server, backends, root, trtserver};

fn committed(path: &str) -> Vec<u8> {
    let path = root().join("tests/models").join(path);
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Adds and subtracts its inputs.
fn graph() -> Vec<u8> {
    committed("addsub_fp32/1/model.onnx")
}

/// Its configuration, without a name.
fn config(folder: &str) -> String {
    let text = String::from_utf8_lossy(&committed(&format!("{folder}/config.pbtxt"))).into_owned();
    text.lines().filter(|line| !line.starts_with("name:")).map(|line| format!("{line}\n")).collect()
}

#[track_caller]
fn adds(server: &Running, model: &str) {
    let body = json!({
        "inputs": [
            { "name": "INPUT0", "datatype": "FP32", "shape": [1, 16], "data": vec![3; 16] },
            { "name": "INPUT1", "datatype": "FP32", "shape": [1, 16], "data": vec![2; 16] },
        ],
        "outputs": [{ "name": "OUTPUT0" }],
    });
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body.to_string());
    assert_eq!(response.status, 200, "{model}: {}", response.text());
    assert_eq!(response.json()["model_version"], "1");
    assert_eq!(response.json()["outputs"][0]["data"][15], 5.0, "{}", response.text());
}

/// Name of the repository's directory.
fn own_name(repository: &std::path::Path) -> String {
    let name = repository.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn index(server: &Running) -> Vec<(String, String)> {
    let index = server.post("/v2/repository/index", &[], "").json();
    let text =
        |entry: &serde_json::Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let entries = index.as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| (text(entry, "name"), text(entry, "state"))).collect()
}

#[test]
fn file_is_served_by_both_spellings_under_every_name() {
    // KServe's start line is `--model-store`, which otherwise asks for complete configurations.
    let server = Server::new().file("model.onnx", graph()).flag("--model-name=resnet").start();
    adds(&server, "resnet");
    assert_eq!(index(&server), [("resnet".to_owned(), "READY".to_owned())]);
    server.wait_for_log_with(&["holds the files of one model ('model.onnx')", "'resnet'"]);
    assert_eq!(server.get("/v2/models/resnet/versions/1/ready").status, 200);
    assert!(server.stop().success());

    let bare = || Server::new().file("model.onnx", graph()).triton_start_line();
    let server = bare().env("INFERENCE_SERVICE_NAME", "service").start();
    adds(&server, "service");
    let server = bare().start();
    adds(&server, &own_name(server.models().path()));
    let named = "name: \"configured\"\n".to_owned() + &config("addsub_fp32");
    let server = bare().file("config.pbtxt", named).start();
    adds(&server, "configured");
}

#[test]
fn configuration_beside_the_file_is_used() {
    let own =
        config("addsub_fp32") + "parameters { key: \"mine\" value { string_value: \"1\" } }\n";
    let server = Server::new()
        .file("model.onnx", graph())
        .file("config.pbtxt", "name: \"another\"\n".to_owned() + &own)
        .flag("--strict-model-config=true")
        .env("INFERENCE_SERVICE_NAME", "service")
        .start();
    adds(&server, "service");
    let shown = server.get("/v2/models/service/config").json();
    assert_eq!(shown["parameters"]["mine"]["string_value"], "1", "{shown}");
    assert_eq!(shown["name"], "service", "{shown}");

    let ended = Server::new()
        .file("model.onnx", graph())
        .flag("--strict-model-config=true")
        .refuses_to_start();
    let repository = ended.stderr.contains("/config.pbtxt' does not exist; it may be left out");
    assert!(repository && !ended.stderr.contains("trtserver-model-"), "{}", ended.stderr);
}

#[test]
fn other_formats_and_isolation() {
    let server = Server::new()
        .file("model.netdef", committed("netdef/addsub_fp32/1/model.netdef"))
        .file("init_model.netdef", committed("netdef/addsub_fp32/1/init_model.netdef"))
        .file("config.pbtxt", config("netdef/addsub_fp32"))
        .flag("--model-name=net")
        .start();
    adds(&server, "net");
    let isolated = "parameters { key: \"isolation\" value { string_value: \"process\" } }\n";
    let server = Server::new()
        .file("model.onnx", graph())
        .file("config.pbtxt", config("addsub_fp32") + isolated)
        .flag("--model-name=apart")
        .start();
    adds(&server, "apart");
    assert!(process(&server, "apart").as_raw_nonzero().get() > 0);
    assert!(server.stop().success());
}

#[test]
fn tensorflow_files_with_tensorflow() {
    let folder = "savedmodel/addsub_fp32/1/model.savedmodel";
    let server = Server::new()
        .file("saved_model.pb", committed(&format!("{folder}/saved_model.pb")))
        .flag("--model-name=saved")
        .start();
    adds(&server, "saved");
    let graph = committed("graphdef/addsub_fp32/1/model.graphdef");
    let server = Server::new()
        .file("model.graphdef", graph)
        .file("config.pbtxt", config("graphdef/addsub_fp32"))
        .flag("--model-name=graph")
        .start();
    adds(&server, "graph");
}

#[test]
fn several_repositories_each_have_their_model() {
    let (second, third) = (Repository::new(), Repository::new());
    second.file("model.onnx", graph());
    third.copy(&root().join("tests/models/addsub_fp32"));
    let flag = |repository: &Repository| format!("--model-store={}", repository.path().display());
    let server = Server::new()
        .file("model.onnx", graph())
        .flag(flag(&second))
        .flag(flag(&third))
        // Names one model.
        .env("INFERENCE_SERVICE_NAME", "service")
        .start();
    let own = own_name(server.models().path());
    for model in [own.as_str(), &own_name(second.path()), "addsub_fp32"] {
        adds(&server, model);
    }
    assert_eq!(index(&server).len(), 3);
    let ended = Server::new()
        .file("model.onnx", graph())
        .flag(flag(&second))
        .flag("--model-name=m")
        .refuses_to_start();
    let refused =
        "--model-name=m names no model: these repositories hold the files of one model each: '";
    assert!(ended.stderr.contains(refused), "{}", ended.stderr);
}

#[test]
fn model_is_loaded_and_unloaded_by_requests() {
    let server = Server::new()
        .file("model.onnx", graph())
        .flag("--model-name=m")
        .flag("--model-control-mode=explicit")
        .start();
    let control = |what: &str| {
        let response = server.post(&format!("/v2/repository/models/m/{what}"), &[], "{}");
        assert_eq!(response.status, 200, "{}", response.text());
    };
    control("load");
    adds(&server, "m");
    control("unload");
    server.poll_until("m is unloaded", |server| {
        index(server) == [("m".to_owned(), "UNAVAILABLE".to_owned())]
    });
    control("load");
    adds(&server, "m");
    let response = server.post("/v2/repository/models/other/load", &[], "{}");
    assert!(response.error_text().contains("failed to load 'other'"), "{}", response.text());
}

#[test]
fn changed_file_is_a_reload() {
    let server = polling().file("model.onnx", graph()).flag("--model-name=m").start();
    adds(&server, "m");
    let inputs = |server: &Running| {
        let config = server.get("/v2/models/m/config").json();
        config["input"].as_array().map(Vec::len)
    };
    assert_eq!(inputs(&server), Some(2));
    let part = server.models().file("model.onnx.tmp", committed("identity_fp32/1/model.onnx"));
    fs::rename(&part, part.with_extension("")).unwrap_or_else(|e| panic!("{e}"));
    server.poll_until("the other graph is served", |server| inputs(server) == Some(1));
    fs::remove_file(part.with_extension("")).unwrap_or_else(|e| panic!("{e}"));
    server.poll_until("m is removed", |server| server.get("/v2/models/m/ready").status != 200);
    server.models().file("model.onnx", graph());
    server.poll_until("m is served again", |server| inputs(server) == Some(2));
    adds(&server, "m");
    assert!(server.stop().success());
}

#[test]
fn mistaken_layouts_are_explained() {
    let server =
        Server::new().copy_model("tests/models/addsub_fp32").file("model.onnx", graph()).start();
    adds(&server, "addsub_fp32");
    assert_eq!(index(&server).len(), 1);
    server.wait_for_log_with(&["'model.onnx'", "is not served", "beside it ('addsub_fp32')"]);

    let ended = Server::new()
        .copy_model("tests/models/addsub_fp32")
        .flag("--model-name=m")
        .refuses_to_start();
    let refused = "--model-name=m names no model: no repository holds the files of one model itself, which are named ";
    assert!(ended.stderr.contains(refused), "{}", ended.stderr);
    let ended =
        Server::new().file("model.onnx", graph()).flag("--model-name=a/b").refuses_to_start();
    assert!(
        ended.stderr.contains("--model-name=a/b: expected the name of a model"),
        "{}",
        ended.stderr
    );

    // The error names the file where the user has it.
    let server = Server::new().file("model.onnx", "<html>").flag("--model-name=m");
    let file = server.models().join("model.onnx").display().to_string();
    let ended = server.refuses_to_start();
    assert!(ended.stderr.contains(&file), "{}", ended.stderr);
    assert!(!ended.stderr.contains("trtserver-model-"), "{}", ended.stderr);
}

fn check(repository: &Repository, flags: &[&str]) -> Ended {
    let backends = format!("--backend-dir={}", backends().display());
    let args = ["check", &backends].into_iter().chain(flags.iter().copied());
    trtserver(args.map(Into::into).chain([repository.path().as_os_str().to_owned()]))
}

#[test]
fn check_reads_bare_repositories() {
    let repository = Repository::new();
    repository.file("model.onnx", graph());
    let ended = check(&repository, &["--model-name=m", "--open"]);
    assert_eq!(ended.stdout, "1 model: 0 errors, 0 warnings\n", "{}", ended.stderr);
    repository.file("config.pbtxt", "max_batch_size: -1");
    let ended = check(&repository, &["--model-name=m"]);
    let file = format!("{}/config.pbtxt", repository.path().display());
    assert_eq!(ended.code(), 1, "{}", ended.stdout);
    assert!(ended.stdout.contains(&file), "{}", ended.stdout);
    repository.file("m/config.pbtxt", "");
    let ended = check(&repository, &[]);
    assert!(ended.stdout.contains("'model.onnx' in model repository"), "{}", ended.stdout);
}
