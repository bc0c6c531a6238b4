//! From the first socket to the last answer: start, readiness, refusals at start, and the ways to end.

use std::fs::{self, File};
use std::io::Write;
use std::process::Command;
use trtserver_tests::http1::request;
use trtserver_tests::scheduled::{NEVER, accumulator, correlation, flag, sequences};
use trtserver_tests::{
    Connection, Latch, Response, Running, Server, Signal, backends, folder, inference, probe, root,
};

/// A model that takes as long to load as the test wants: its labels are a pipe, and the load waits for a writer.
fn gated() -> Server {
    let config =
        probe("gated", &[]).replace("output [ {", "output [ { label_filename: \"labels.txt\"");
    let server = Server::new().model("gated", config);
    let made = Command::new("mkfifo").arg(server.models().join("gated/labels.txt")).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo");
    server
}

fn open_gate(server: &Running) {
    let pipe = server.models().path().join("gated/labels.txt");
    let opened = File::options().write(true).open(pipe);
    let written = opened.and_then(|mut pipe| pipe.write_all(b"first\nsecond\n"));
    written.unwrap_or_else(|e| panic!("nobody reads the labels: {e}"));
}

#[test]
fn sockets_answer_before_models_are_loaded() {
    let server = gated().launch();
    assert!(!server.has_reported_ready());
    for (path, status) in [
        ("/v2/health/live", 200),
        ("/v2/health/ready", 400),
        ("/api/health/live", 200),
        ("/api/health/ready", 400),
        ("/v2/models/gated/ready", 400),
        ("/api/status", 200),
    ] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
    let status = server.get("/api/status").text();
    assert!(status.contains("ready_state: SERVER_INITIALIZING"), "{status}");
    let refused = server.infer("gated", "");
    assert!([404, 503].contains(&refused.status), "{}", refused.text());
    server.metrics_text();

    open_gate(&server);
    server.wait_until_ready();
    for path in ["/v2/health/ready", "/api/health/ready", "/v2/models/gated/ready"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    assert_eq!(server.infer("gated", "").status, 200);
}

#[test]
fn a_signal_ends_it_while_models_are_loaded() {
    let server = gated().launch();
    // Its log says when it listens for signals no earlier than when it loads.
    server.wait_for_log("found backend");
    server.signal(Signal::TERM);
    server.wait();
}

#[test]
fn every_port_is_one_of_its_own() {
    let one = Server::new().model("echo", probe("echo", &[])).start();
    let two = Server::new().model("echo", probe("echo", &[])).flag("--allow-grpc=false").start();
    let mut all =
        vec![one.http(), one.grpc(), one.metrics_address(), two.http(), two.metrics_address()];
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 5);
    assert!(!two.process().stdout().contains("grpc"));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let one = Server::new().start();
    let port = one.http().rsplit(':').next().expect("a port");
    let ended = Server::new().flag(format!("--http-port={port}")).refuses_to_start();
    assert_eq!(ended.code(), 1);
    assert!(ended.stderr.contains(&format!("127.0.0.1:{port}")), "{}", ended.stderr);
}

#[test]
fn no_models_is_no_error() {
    let server = Server::new().start();
    assert_eq!(server.get("/v2/health/ready").status, 200);
    assert!(server.stop().success());
}

/// Two requests that the latch holds, for a model of one instance: one is executed, the other is in the queue.
fn two_under_way(server: &Running, latch: &Latch) -> [Connection; 2] {
    let mut connections = [server.connect(), server.connect()];
    for connection in &mut connections {
        connection.send(inference("slow", ""));
    }
    let sample = r#"nv_inference_pending_request_count{model="slow",version="1"}"#;
    latch.wait_for(server, 1);
    server.poll_until("the other is queued", |server| server.metrics(sample) == Some(1.0));
    connections
}

fn slow_server(latch: &Latch) -> Server {
    let (key, path) = latch.config();
    Server::new().model("slow", probe("slow", &[(key, &path)]))
}

#[test]
fn what_runs_and_what_waits_is_answered_before_the_end() {
    for signal in [Signal::TERM, Signal::INT] {
        let latch = Latch::new();
        let server = slow_server(&latch).start();
        let connections = two_under_way(&server, &latch);
        server.signal(signal);
        server.wait_for_log("in-flight requests");
        latch.open();
        for mut connection in connections {
            let response = connection.response();
            assert_eq!(response.status, 200, "{}", response.text());
        }
        let ended = server.wait();
        assert_eq!(ended.code(), 0, "{}", ended.stderr);
        assert!(ended.stderr.contains("Waiting for in-flight inferences to complete."));
        assert!(ended.stderr.contains("in-flight requests"), "{}", ended.stderr);
    }
}

#[test]
fn while_it_ends_new_requests_are_refused_in_words() {
    let latch = Latch::new();
    let server = slow_server(&latch).start();
    // Opened before, because a server that ends need not accept new connections.
    let mut more: Vec<Connection> = (0..4).map(|_| server.connect()).collect();
    for connection in &mut more {
        connection.send("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(connection.response().status, 200);
    }
    let _under_way = two_under_way(&server, &latch);
    server.signal(Signal::TERM);
    server.wait_for_log("Waiting for in-flight inferences to complete.");
    let mut ask = |bytes: Vec<u8>| more.pop().expect("a connection").send(bytes).response();
    let refused = ask(inference("slow", ""));
    assert!([404, 503].contains(&refused.status), "{}", refused.text());
    let health = ask(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n".to_vec());
    assert_eq!((health.status, health.error_text().as_str()), (503, "Server exiting"));
    let health = ask(b"GET /api/health/ready HTTP/1.1\r\nHost: x\r\n\r\n".to_vec());
    assert_eq!(health.status, 400);
    let says = health.error_text();
    assert!(says.contains("UNAVAILABLE") && says.contains("Server exiting"), "{says}");
}

/// INPUT0 of one INT32, in sequence 7, over HTTP v2 or v1.
fn in_sequence(v2: bool, model: &str, value: i32, start: bool, end: bool) -> Vec<u8> {
    if v2 {
        let json = format!(
            r#"{{"parameters":{{"sequence_id":7,"sequence_start":{start},"sequence_end":{end}}},"inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[{value}]}}]}}"#
        );
        return request("POST", &format!("/v2/models/{model}/infer"), &[], json.as_bytes());
    }
    let flags = u8::from(start) | u8::from(end) << 1;
    let header = format!(
        "batch_size: 1 correlation_id: 7 flags: {flags} input {{ name: \"INPUT0\" }} output {{ name: \"OUTPUT0\" }}"
    );
    let header = [("NV-InferRequest", &*header)];
    request("POST", &format!("/api/infer/{model}"), &header, &value.to_le_bytes())
}

/// The sum in an answer to that.
#[track_caller]
fn sum(v2: bool, response: &Response) -> i32 {
    assert_eq!(response.status, 200, "{}", response.text());
    if v2 {
        let json = response.json();
        return json["outputs"][0]["data"][0].as_i64().unwrap_or_else(|| panic!("{json}")) as i32;
    }
    let Some(bytes) = response.body.first_chunk() else { panic!("{}", response.text()) };
    i32::from_le_bytes(*bytes)
}

fn summing(name: &str) -> String {
    let controls = [flag("START", "int32"), correlation("UINT64")];
    let scheduling = sequences(NEVER, "oldest { max_candidate_sequences: 4 }", &controls);
    accumulator(name, 4, "corrid", &scheduling)
}

#[test]
fn while_it_ends_sequences_go_on_to_their_end() {
    let through = "name: 'through' platform: 'ensemble' max_batch_size: 4\n\
        input { name: 'INPUT0' data_type: TYPE_INT32 dims: 1 }\n\
        output { name: 'OUTPUT0' data_type: TYPE_INT32 dims: 1 }\n\
        ensemble_scheduling { step { model_name: 'summing' model_version: -1\n\
        input_map { key: 'INPUT0' value: 'INPUT0' } output_map { key: 'OUTPUT0' value: 'OUTPUT0' } } }";
    for (v2, model) in
        [(true, "summing"), (false, "summing"), (true, "through"), (false, "through")]
    {
        let server = Server::new()
            .model("summing", summing("summing"))
            .model("through", through)
            .model("echo", probe("echo", &[]))
            .start();
        let mut client = server.connect();
        let mut step =
            |value, start, end| client.send(in_sequence(v2, model, value, start, end)).response();
        assert_eq!(sum(v2, &step(1, true, false)), 1);
        server.signal(Signal::TERM);
        server.wait_for_log("1 sequences that have not ended");
        assert_eq!(sum(v2, &step(10, false, false)), 11);
        // Nobody else begins anything.
        let other = server.post(
            "/v2/models/echo/infer",
            &[],
            r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,1],"data":[1]}]}"#,
        );
        assert_eq!((other.status, &*other.error_text()), (503, "Server not ready"));
        let another = in_sequence(true, model, 5, true, true);
        let another =
            String::from_utf8(another).unwrap().replace("\"sequence_id\":7", "\"sequence_id\":8");
        assert_eq!(server.send(another).status, 503);
        assert_eq!(server.get(&format!("/v2/models/{model}/config")).status, 503);
        assert_eq!(sum(v2, &step(100, false, true)), 111);
        let ended = server.wait();
        assert_eq!(ended.code(), 0, "{}", ended.stderr);
    }
}

#[test]
fn a_sequence_that_never_ends_holds_it_up_until_the_timeout() {
    let server =
        Server::new().model("summing", summing("summing")).flag("--exit-timeout-secs=1").start();
    assert_eq!(sum(true, &server.send(in_sequence(true, "summing", 1, true, false))), 1);
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code(), 1);
    assert!(ended.stderr.contains("Exit timeout expired"), "{}", ended.stderr);
}

#[test]
fn what_takes_too_long_is_left_behind_and_the_exit_status_tells() {
    let latch = Latch::new();
    let server = slow_server(&latch).flag("--exit-timeout-secs=1").start();
    let _under_way = two_under_way(&server, &latch);
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("Exit timeout expired. Exiting immediately."),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let latch = Latch::new();
    let server = slow_server(&latch).start();
    let _under_way = two_under_way(&server, &latch);
    server.signal(Signal::TERM);
    server.wait_for_log("Interrupt signal (15) received.");
    server.wait_for_log("in-flight requests");
    server.signal(Signal::INT);
    let ended = server.wait();
    assert_eq!(ended.code(), 1);
}

#[test]
fn idle_connections_do_not_hold_up_the_end() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let mut idle: Vec<Connection> = (0..20).map(|_| server.connect()).collect();
    for connection in idle.iter_mut().take(10) {
        connection.send(inference("echo", ""));
        assert_eq!(connection.response().status, 200);
    }
    server.signal(Signal::TERM);
    // Connections that are waited for would end it with 1, after the exit timeout.
    assert_eq!(server.wait().code(), 0);
    for connection in &mut idle {
        assert!(connection.is_closed());
    }
}

#[test]
fn health_on_a_port_of_its_own() {
    let server = Server::new().flag("--http-health-port=0").start();
    let out = server.process().stdout();
    let address = out.lines().find_map(|line| line.strip_prefix("listening health "));
    let address = address.unwrap_or_else(|| panic!("no line `listening health …` in\n{out}"));
    for (path, status) in [("/v2/health/live", 200), ("/api/health/ready", 200), ("/v2", 404)] {
        let get = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(Connection::open(address).send(get).response().status, status, "{path}");
    }
}

/// A server that refuses to start says why, in one line that has these parts.
fn refused(server: Server, parts: &[&str]) {
    let ended = server.refuses_to_start();
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    assert!(!ended.stdout.contains("ready"), "{}", ended.stdout);
    let fits = |line: &str| parts.iter().all(|part| line.contains(part));
    assert!(ended.stderr.lines().any(fits), "no line with {parts:?} in\n{}", ended.stderr);
}

#[test]
fn a_mistake_in_a_configuration_is_told_with_its_place() {
    let config = probe("wrong", &[]).replace("max_batch_size: 8", "max_batch_size: 8\n  colour: 3");
    refused(Server::new().model("wrong", config), &["wrong/config.pbtxt:4:3", "colour"]);
    let config = probe("wrong", &[]).replace("TYPE_FP32", "TYPE_FP33");
    refused(Server::new().model("wrong", config), &["wrong/config.pbtxt:4:", "TYPE_FP33"]);
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    let config = probe("other", &[]);
    refused(
        Server::new().model("wrong", config),
        &[
            "unexpected directory name 'wrong' for model 'other', directory name must equal model name",
        ],
    );
    let config = probe("wrong", &[]).replace("max_batch_size: 8", "max_batch_size: -1");
    refused(Server::new().model("wrong", config), &["'max_batch_size' must be non-negative value"]);
    let config = probe("wrong", &[]).replace("dims: [ -1 ]", "dims: [ 0 ]");
    refused(
        Server::new().model("wrong", config),
        &["dimension must be integer >= 1, or -1 to indicate a variable-size dimension"],
    );
    let server = Server::new().copy_model("tests/models/addsub_fp32");
    let wrong =
        fs::read_to_string(root().join("tests/models/addsub_fp32/config.pbtxt")).expect("a config");
    let server =
        server.file("addsub_fp32/config.pbtxt", wrong.replace("dims: [ 16 ]", "dims: [ 17 ]"));
    refused(server, &["addsub_fp32", "16", "17"]);
}

#[test]
fn tensors_without_a_dimension_need_a_batch() {
    refused(
        Server::new().copy_model("tests/models/scalar"),
        &["cannot have empty reshape for non-batching model as scalar tensors are not supported"],
    );
}

#[test]
fn no_configuration_is_an_error_unless_it_may_be_completed() {
    let model = root().join("tests/models/addsub_fp32/1/model.onnx");
    let file = fs::read(&model).expect("a model");
    let server = || Server::new().file("mine/1/model.onnx", &file);
    refused(server(), &["mine/config.pbtxt", "--strict-model-config=false"]);
    let server = server().flag("--strict-model-config=false").start();
    let metadata = server.get("/v2/models/mine").json();
    assert_eq!(metadata["platform"], "onnxruntime_onnx");
    assert_eq!(metadata["inputs"][1]["name"], "INPUT1");
    assert_eq!(metadata["inputs"][1]["datatype"], "FP32");
    assert_eq!(metadata["outputs"][0]["shape"], serde_json::json!([-1, 16]));
    let ones = "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]";
    let input =
        |n: i32| format!(r#"{{"name":"INPUT{n}","datatype":"FP32","shape":[1,16],"data":{ones}}}"#);
    let answer = server.post(
        "/v2/models/mine/infer",
        &[],
        format!(r#"{{"inputs":[{},{}]}}"#, input(0), input(1)),
    );
    assert_eq!(answer.json()["outputs"][0]["data"][15], 2.0, "{}", answer.text());
}

#[test]
fn a_model_file_that_is_none() {
    let server = || {
        Server::new()
            .copy_model("tests/models/addsub_fp32")
            .copy_model("tests/models/addsub_int32")
            .file("addsub_fp32/1/model.onnx", "not a model")
    };
    refused(server(), &["addsub_fp32", "version 1"]);
    let server = server().flag("--exit-on-error=false").start();
    assert_eq!(server.get("/v2/models/addsub_int32/ready").status, 200);
    assert_eq!(server.get("/v2/models/addsub_fp32/ready").status, 400);
    assert_eq!(server.get("/v2/health/ready").status, 400);
    assert_eq!(server.get("/v2/health/live").status, 200);
}

#[test]
fn readiness_need_not_be_strict() {
    let server = Server::new()
        .model("broken", probe("broken", &[("fail_in", "model_open")]))
        .flag("--exit-on-error=false")
        .flag("--strict-readiness=false")
        .start();
    for path in ["/v2/health/ready", "/api/health/ready"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
}

#[test]
fn a_repository_that_is_not_there() {
    let server = Server::new().flag("--model-store=/nowhere/at/all");
    refused(server, &["/nowhere/at/all"]);
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
fn a_model_that_wants_a_gpu_says_so_on_a_machine_without() {
    let config = probe("graphic", &[]) + "instance_group [ { kind: KIND_GPU } ]\n";
    let server = Server::new().model("graphic", config).env("TRITON_SERVER_CPU_ONLY", "1");
    refused(server, &["graphic", "KIND_GPU", "no GPUs are available"]);
}

#[test]
fn which_versions_are_served_is_the_policys_choice() {
    let with = |policy: &str| {
        let server = Server::new().model("echo", probe("echo", &[]) + policy);
        for version in ["3", "7", "10"] {
            fs::create_dir(server.models().join("echo").join(version)).expect("a folder");
        }
        let server = server.start();
        server.get("/v2/models/echo").json()["versions"].to_string()
    };
    assert_eq!(with(""), r#"["10"]"#);
    assert_eq!(with("version_policy: { latest: { num_versions: 2 } }\n"), r#"["7","10"]"#);
    assert_eq!(with("version_policy: { all: { } }\n"), r#"["1","3","7","10"]"#);
    assert_eq!(with("version_policy: { specific: { versions: [ 1, 7, 8 ] } }\n"), r#"["1","7"]"#);
}

#[test]
fn a_policy_that_selects_nothing() {
    let config = probe("echo", &[]) + "version_policy: { specific: { versions: [ 5 ] } }\n";
    refused(
        Server::new().model("echo", config),
        &["at least one version must be available under the version policy of model 'echo'"],
    );
}

#[test]
fn onnx_runtime_that_is_not_there_is_a_message_that_helps() {
    // The plugin alone, away from the install's libraries.
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
    for part in
        ["ONNX Runtime library not found", "libonnxruntime.so", &plugin_dir, "cargo xtask runtimes"]
    {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
    // Named, but wrong.
    let server = Server::new()
        .copy_model("tests/models/addsub_fp32")
        .flag("--backend-config=onnxruntime,library=/nowhere/libonnxruntime.so");
    refused(server, &["/nowhere/libonnxruntime.so", "--backend-config=onnxruntime,library="]);
}

#[test]
fn features_that_are_not_there_yet_are_refused_by_name() {
    let config = probe("cached", &[]) + "response_cache { enable: true }\n";
    refused(Server::new().model("cached", config), &["cached", "response_cache"]);
}
