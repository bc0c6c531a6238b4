//! Models and repositories with which the server refuses to start, and the message it gives.

use std::fs;
use std::process::Command;
use trtserver_tests::{Server, Signal, backends, folder, probe, root};

/// The server must exit with status 1 and a log line that has these parts.
fn assert_refused(server: Server, parts: &[&str]) {
    let ended = server.refuses_to_start();
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    assert!(!ended.stdout.contains("ready"), "{}", ended.stdout);
    let fits = |line: &str| parts.iter().all(|part| line.contains(part));
    assert!(ended.stderr.lines().any(fits), "no line with {parts:?} in\n{}", ended.stderr);
}

#[test]
fn config_error_gives_line_and_column() {
    let config = probe("wrong", &[]).replace("max_batch_size: 8", "max_batch_size: 8\n  colour: 3");
    assert_refused(Server::new().model("wrong", config), &["wrong/config.pbtxt:4:3", "colour"]);
    let config = probe("wrong", &[]).replace("TYPE_FP32", "TYPE_FP33");
    assert_refused(Server::new().model("wrong", config), &["wrong/config.pbtxt:4:", "TYPE_FP33"]);
}

/// What new users do first: the directory of one model, and one that is not there.
#[test]
fn wrong_repository_is_refused_with_what_to_do() {
    let config = "backend: \"probe\"\n";
    let server = Server::new().file("config.pbtxt", config).file("1/model.onnx", "");
    let server = server.flag("--strict-model-config=false");
    let expected = "it is the directory of one model: the repository is the directory above";
    assert_refused(server, &["failed to load all models", expected]);
    let server = Server::new().flag("--model-repository=/no/such/repository");
    let expected = "'/no/such/repository' is not a readable directory: No such file";
    assert_refused(server, &[expected]);
}

#[test]
fn inconsistent_config_is_refused() {
    let config = probe("other", &[]);
    assert_refused(
        Server::new().model("wrong", config),
        &[
            "unexpected directory name 'wrong' for model 'other', directory name must equal model name",
        ],
    );
    let config = probe("wrong", &[]).replace("max_batch_size: 8", "max_batch_size: -1");
    assert_refused(
        Server::new().model("wrong", config),
        &["'max_batch_size' must be non-negative value"],
    );
    let config = probe("wrong", &[]).replace("dims: [ -1 ]", "dims: [ 0 ]");
    assert_refused(
        Server::new().model("wrong", config),
        &["dimension must be integer >= 1, or -1 to indicate a variable-size dimension"],
    );
    let server = Server::new().copy_model("tests/models/addsub_fp32");
    let wrong =
        fs::read_to_string(root().join("tests/models/addsub_fp32/config.pbtxt")).expect("a config");
    let server =
        server.file("addsub_fp32/config.pbtxt", wrong.replace("dims: [ 16 ]", "dims: [ 17 ]"));
    assert_refused(server, &["addsub_fp32", "16", "17"]);
}

#[test]
fn scalar_tensors_need_batching() {
    assert_refused(
        Server::new().copy_model("tests/models/scalar"),
        &["cannot have empty reshape for non-batching model as scalar tensors are not supported"],
    );
}

#[test]
fn missing_config_needs_autocomplete() {
    let model = root().join("tests/models/addsub_fp32/1/model.onnx");
    let file = fs::read(&model).expect("a model");
    let server = || Server::new().file("mine/1/model.onnx", &file);
    assert_refused(server(), &["mine/config.pbtxt", "--strict-model-config=false"]);
    let server = server().flag("--strict-model-config=false").start();
    let metadata = server.get("/v2/models/mine").json();
    assert_eq!(metadata["platform"], "onnxruntime_onnx");
    assert_eq!(metadata["inputs"][1]["name"], "INPUT1");
    assert_eq!(metadata["inputs"][1]["datatype"], "FP32");
    assert_eq!(metadata["outputs"][0]["shape"], serde_json::json!([-1, 16]));
    let ones = "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]";
    let input =
        |n: i32| format!(r#"{{"name":"INPUT{n}","datatype":"FP32","shape":[1,16],"data":{ones}}}"#);
    let response = server.post(
        "/v2/models/mine/infer",
        &[],
        format!(r#"{{"inputs":[{},{}]}}"#, input(0), input(1)),
    );
    assert_eq!(response.json()["outputs"][0]["data"][15], 2.0, "{}", response.text());
}

#[test]
fn start_line_of_triton_completes_configurations() {
    let dir = folder();
    fs::create_dir_all(dir.path().join("mine/1")).expect("a model");
    let model = root().join("tests/models/addsub_fp32/1/model.onnx");
    fs::copy(model, dir.path().join("mine/1/model.onnx")).expect("a model");
    let mut flag = std::ffi::OsString::from("--model-repository=");
    flag.push(dir.path());
    let server = Server::new().flag(flag).start();
    server.wait_for_log("Incomplete model configurations are completed");
    assert_eq!(server.get("/v2/models/mine/ready").status, 200);
}

#[test]
fn unreadable_configurations_leave_the_server_ready() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model("broken", "nonsense")
        .file("bare/1/file", "")
        .flag("--exit-on-error=false")
        .start();
    assert_eq!(server.get("/v2/health/ready").status, 200);
    assert_eq!(server.get("/v2/models/broken/ready").status, 400);
    let index = server.post("/v2/repository/index", &[], "").json();
    let reason = |name: &str| {
        let entries = index.as_array().expect("an index");
        let entry = entries.iter().find(|entry| entry["name"] == name).expect(name);
        entry["reason"].as_str().expect("a reason").to_owned()
    };
    assert!(reason("broken").contains("config.pbtxt:1:"), "{index}");
    assert!(reason("bare").contains("does not exist"), "{index}");
}

#[test]
fn invalid_model_file_is_refused() {
    let server = || {
        Server::new()
            .copy_model("tests/models/addsub_fp32")
            .copy_model("tests/models/addsub_int32")
            .file("addsub_fp32/1/model.onnx", "not a model")
    };
    assert_refused(server(), &["addsub_fp32", "version 1"]);
    let server = server().flag("--exit-on-error=false").start();
    assert_eq!(server.get("/v2/models/addsub_int32/ready").status, 200);
    assert_eq!(server.get("/v2/models/addsub_fp32/ready").status, 400);
    assert_eq!(server.get("/v2/health/ready").status, 400);
    assert_eq!(server.get("/v2/health/live").status, 200);
}

#[test]
fn missing_repository_is_refused() {
    let server = Server::new().flag("--model-store=/nowhere/at/all");
    assert_refused(server, &["/nowhere/at/all"]);
    let server =
        Server::new().flag("--model-store=/nowhere/at/all").flag("--exit-on-error=false").launch();
    server.wait_for_log("/nowhere/at/all");
    server.poll_until("it has given up", |server| {
        server.get("/api/status").text().contains("SERVER_FAILED_TO_INITIALIZE")
    });
    assert_eq!(server.get("/v2/health/live").status, 400);
    assert_eq!(server.get("/v2/health/ready").status, 400);
    server.signal(Signal::TERM);
    server.wait();
}

#[test]
fn plugin_toml_that_is_a_fifo_is_refused() {
    let dir = folder();
    let plugin = backends().join("probe/libtrtserver_probe.so");
    fs::copy(plugin, dir.path().join("libtrtserver_probe.so")).expect("the plugin");
    let manifest = dir.path().join("plugin.toml");
    assert!(Command::new("mkfifo").arg(&manifest).status().expect("mkfifo").success());
    let server = Server::new().model("echo", probe("echo", &[])).backend_dir(dir.path());
    let path = manifest.display().to_string();
    assert_refused(server, &[&path, "not a regular file but a FIFO (named pipe)"]);
}

#[test]
fn gpu_instance_without_gpu_is_refused() {
    let config = probe("graphic", &[]) + "instance_group [ { kind: KIND_GPU } ]\n";
    let server = Server::new().model("graphic", config).env("TRITON_SERVER_CPU_ONLY", "1");
    assert_refused(server, &["graphic", "KIND_GPU", "no GPUs are available"]);
}

#[test]
fn version_policy_without_match_is_refused() {
    let config = probe("echo", &[]) + "version_policy: { specific: { versions: [ 5 ] } }\n";
    assert_refused(
        Server::new().model("echo", config),
        &["at least one version must be available under the version policy of model 'echo'"],
    );
}

#[test]
fn missing_onnx_runtime_is_explained() {
    // The plugin without the install's libraries.
    let dir = folder();
    let file = "onnxruntime/libtrtserver_onnxruntime.so";
    fs::create_dir(dir.path().join("onnxruntime")).expect("a folder");
    fs::copy(backends().join(file), dir.path().join(file)).expect("the plugin");
    let server = Server::new()
        .backend_dir(dir.path())
        .copy_model("tests/models/addsub_fp32")
        .env("LD_LIBRARY_PATH", "")
        .env("TRTSERVER_ONNXRUNTIME_LIBRARY", "");
    let ended = server.refuses_to_start();
    let plugin_dir = dir.path().join("onnxruntime").display().to_string();
    for part in [
        "ONNX Runtime library not found",
        "libonnxruntime.so",
        &plugin_dir,
        "cargo xtask runtimes",
        "`pip install onnxruntime`",
        "a server from a wheel finds what pip has installed beside it",
        "container images of the server whose tag ends in '-onnxruntime' have it",
    ] {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
    // A configured path that does not exist.
    let server = Server::new()
        .copy_model("tests/models/addsub_fp32")
        .flag("--backend-config=onnxruntime,library=/nowhere/libonnxruntime.so");
    assert_refused(
        server,
        &["/nowhere/libonnxruntime.so", "--backend-config=onnxruntime,library="],
    );
}

#[test]
fn unsupported_features_are_refused_by_name() {
    let config = probe("passive", &[]) + "instance_group [ { kind: KIND_CPU passive: true } ]\n";
    let server = Server::new().model("passive", config);
    assert_refused(server, &["passive", "instance_group.passive"]);
}
