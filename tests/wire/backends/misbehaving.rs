//! Misbehaving backends: every request gets a response, and other models are not affected.

use std::sync::LazyLock;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::isolated::{isolated, wait_until_served};
use trtserver_tests::{Response, Running, Server, backends, compile_c, folder, probe};

static SERVER: LazyLock<Running> = LazyLock::new(|| {
    Server::new()
        .model("echo", probe("echo", &[]))
        .model("bad", probe("bad", &[]))
        .model("unlabelled", probe("unlabelled", &[]).replace("TYPE_FP32", "TYPE_STRING"))
        .start_shared()
});

/// The response of the model `bad` with these parameters; afterwards both models must serve.
fn send(parameters: &str) -> Response {
    let response = SERVER.infer("bad", parameters);
    for model in ["bad", "echo"] {
        let after = SERVER.infer(model, "");
        assert_eq!(after.status, 200, "after {parameters}, {model} fails: {}", after.text());
    }
    response
}

/// The request must fail with these parts in the message.
fn fails(parameters: &str, parts: &[&str]) {
    let response = send(parameters);
    let says = response.error_text();
    assert!(response.status >= 400, "{parameters}: {says}");
    assert_eq!(response.header("content-type"), Some("text/plain"), "{parameters}: {says}");
    for part in parts {
        assert!(says.contains(part), "{parameters}: no {part:?} in {says:?}");
    }
}

#[test]
fn request_error_reaches_client() {
    let response = send(r#""fail":"out of ink""#);
    assert_eq!((response.status, response.error_text().as_str()), (500, "out of ink"));
}

#[test]
fn batch_error_reaches_client() {
    fails(r#""fail_in":"execute","fail":"out of paper""#, &["out of paper"]);
}

#[test]
fn panic_fails_the_request() {
    fails(r#""panic_in":"execute""#, &["panic", "told to panic in execute"]);
}

#[test]
fn invalid_outputs_are_refused_by_name() {
    fails(r#""garbage":"wrong_dtype""#, &["OUTPUT0"]);
    fails(r#""garbage":"wrong_shape""#, &["OUTPUT0"]);
    fails(r#""garbage":"unknown_output""#, &["NOT_AN_OUTPUT"]);
    fails(r#""garbage":"short""#, &["OUTPUT0"]);
}

#[test]
fn missing_output_is_an_error() {
    fails(r#""garbage":"missing_output""#, &["OUTPUT0"]);
}

#[test]
fn missing_response_is_an_error() {
    fails(r#""garbage":"never""#, &["without responding"]);
    fails(r#""garbage":"never","detach":true"#, &[]);
    fails(r#""responses":0"#, &[]);
}

#[test]
fn second_final_response_is_ignored() {
    assert_eq!(send(r#""garbage":"twice""#).status, 200);
    let response = send(r#""responses":3"#);
    assert!(response.status == 200 || response.status == 500, "{}", response.text());
}

#[test]
fn late_response_and_adopted_memory_are_valid() {
    for parameters in [r#""detach":true"#, r#""adopt":true"#, r#""delay_ms":20"#] {
        let response = send(parameters);
        assert_eq!(response.status, 200, "{parameters}: {}", response.text());
        assert_eq!(
            response.json()["outputs"][0]["data"],
            serde_json::json!([1.0, 2.0]),
            "{parameters}"
        );
    }
}

#[test]
fn invalid_utf8_in_error_is_replaced() {
    // Two bytes are not a valid string tensor: the host checks before it encodes.
    let body = r#"{"parameters":{"garbage":"short"},"inputs":[{"name":"INPUT0","datatype":"BYTES","shape":[1,1],"data":["abc"]}]}"#;
    let response = SERVER.post("/v2/models/unlabelled/infer", &[], body);
    assert_eq!(response.status, 500, "{}", response.text());
    assert!(response.error_text().contains("OUTPUT0"), "{}", response.text());
}

#[test]
fn failures_are_counted() {
    let sample = r#"nv_inference_request_failure{model="counted",reason="BACKEND",version="1"}"#;
    let server = Server::new().model("counted", probe("counted", &[("fail", "always")])).start();
    assert_eq!(server.metrics(sample), Some(0.0));
    for n in 1..4 {
        assert_eq!(server.infer("counted", "").error_text(), "always");
        assert_eq!(server.metrics(sample), Some(f64::from(n)));
    }
}

/// A server that continues when models fail to load.
fn lenient() -> Server {
    Server::new().model("echo", probe("echo", &[])).flag("--exit-on-error=false")
}

#[test]
fn load_failures_are_reported_and_affect_no_other_model() {
    for (entry, strict) in [("model_open", true), ("instance_open", true), ("autocomplete", false)]
    {
        for (command, text) in [("fail_in", "told to fail in"), ("panic_in", "told to panic in")] {
            let server = lenient()
                .model("broken", probe("broken", &[(command, entry)]))
                .flag(format!("--strict-model-config={strict}"))
                .start();
            let text = format!("{text} {entry}");
            server.wait_for_log_with(&["failed to load", "'broken'", &text]);
            assert_eq!(server.infer("echo", "").status, 200, "{command} {entry}");
            let refused = server.infer("broken", "");
            assert!([404, 503].contains(&refused.status), "{command} {entry}: {}", refused.text());
            assert_eq!(server.get("/v2/health/ready").status, 400, "{command} {entry}");
            assert_eq!(server.get("/v2/health/live").status, 200, "{command} {entry}");
            assert!(server.stop().success(), "{command} {entry}");
        }
    }
}

/// Reports that its instance is broken.
const BROKEN: &str = r#""fail":"the card is gone","broken":true"#;

#[test]
fn broken_instances_are_taken_out_of_service() {
    let two = probe("two", &[]) + "instance_group [ { kind: KIND_CPU count: 2 } ]";
    let server = Server::new().model("two", two).model("echo", probe("echo", &[])).start();
    // The other instance serves on.
    assert_eq!(server.infer("two", BROKEN).error_text(), "the card is gone");
    server.wait_for_log_with(&["of model 'two' is broken", "instance 'two_0_", "the card is gone"]);
    for _ in 0..10 {
        assert_eq!(server.infer("two", "").status, 200);
    }
    assert_eq!(server.get("/v2/models/two/ready").status, 200);
    // None is left.
    assert_eq!(
        server.infer("two", r#""fail":"so is this","broken":true,"fail_in":"execute""#).status,
        500
    );
    let line = server.wait_for_log("model 'two' is out of service");
    assert!(line.contains("is broken: so is this"), "{line}");
    let refused = server.infer("two", "");
    assert_eq!(refused.status, 503, "{}", refused.text());
    for part in ["model 'two'", "so is this"] {
        assert!(refused.text().contains(part), "{}", refused.text());
    }
    assert_eq!(server.get("/v2/models/two/ready").status, 400);
    let index = server.post("/v2/repository/index", &[], "").text();
    assert!(index.contains("is broken: so is this"), "{index}");
    assert_eq!(server.infer("echo", "").status, 200);
    assert!(server.stop().success());
}

#[test]
fn reload_replaces_broken_model() {
    let server = explicit().flag("--load-model=one").model("one", probe("one", &[])).start();
    assert_eq!(server.infer("one", BROKEN).status, 500);
    server.poll_until("not ready", |s| s.get("/v2/models/one/ready").status == 400);
    assert_eq!(server.infer("one", "").status, 503);
    assert_ok(server.load("one"));
    assert_eq!(server.infer("one", "").status, 200);
    assert!(server.stop().success());
}

#[test]
fn child_with_broken_model_is_restarted() {
    let server = Server::new().model("away", isolated("away", &[])).start();
    assert_eq!(server.infer("away", BROKEN).error_text(), "the card is gone");
    server.wait_for_log_with(&[
        "model 'away'",
        "reported that its model is broken (the card is gone)",
    ]);
    wait_until_served(&server, "away");
    assert!(server.stop().success());
}

#[test]
fn repository_index_gives_reason_of_load_failure() {
    let server = lenient().model("broken", probe("broken", &[("fail_in", "model_open")])).start();
    let index = server.post("/v2/repository/index", &[], "").text();
    assert!(
        index.contains(r#""name":"broken","version":"1","state":"UNAVAILABLE","reason":""#),
        "{index}"
    );
    assert!(index.contains("told to fail in model_open"), "{index}");
    let status = server.get("/api/status/broken").text();
    assert!(
        status.contains("MODEL_UNAVAILABLE") && status.contains("told to fail in model_open"),
        "{status}"
    );
}

#[test]
fn panic_in_close_does_not_end_the_process() {
    let server = Server::new().model("last", probe("last", &[("panic_in", "close")])).start();
    assert_eq!(server.infer("last", "").status, 200);
    assert!(server.stop().success());
}

/// Invalid, reused and stale handles, impossible sizes: each is an error, see the backend's source.
#[test]
fn c_backend_that_violates_the_abi_affects_no_model() {
    let dir = folder();
    compile_c("tests/plugins/broken/misuse.c", dir.path(), "misuse");
    let config = probe("misuse", &[]).replace("backend: \"probe\"", "backend: \"misuse\"");
    let output = config.find("output").unwrap();
    let (input, output) = config.split_at(output);
    let config = input.to_owned() + &output.replace("TYPE_FP32", "TYPE_STRING");
    let server = Server::new()
        .backend_dir(dir.path())
        .backend_dir(backends())
        .model("misuse", config)
        .model("echo", probe("echo", &[]))
        .start();
    for _ in 0..10 {
        // Every other response is begun and dropped.
        let mut responses = [server.infer("misuse", ""), server.infer("misuse", "")];
        responses.sort_by_key(|response| response.status);
        let [good, forgotten] = responses;
        assert_eq!(good.status, 200, "{}", good.text());
        assert!(forgotten.text().contains("without responding"), "{}", forgotten.text());
        assert_eq!(server.infer("echo", "").status, 200);
        assert_eq!(server.infer("echo", "").status, 200);
    }
    for text in ["released twice", "more often than it was retained", "after it had been released"]
    {
        let line = server.wait_for_log(text);
        assert!(line.contains("misuses the interface"), "{line}");
    }
    server.signal(trtserver_tests::Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("misuse was closed"), "{}", ended.stderr);
}

#[test]
fn unusable_plugin_files_are_reported_with_reason() {
    let dir = folder();
    for name in ["wrong_major", "no_symbol", "missing_entry", "old_size", "null_table"] {
        compile_c(&format!("tests/plugins/broken/{name}.c"), dir.path(), name);
    }
    let text = dir.path().join("libtrtserver_text.so");
    std::fs::write(&text, "not a library\n").unwrap();
    let model = |name: &str| {
        probe(name, &[]).replace("backend: \"probe\"", &format!("backend: \"{name}\""))
    };
    let server = lenient()
        .backend_dir(dir.path())
        .backend_dir(backends())
        .model("wrong_major", model("wrong_major"))
        .model("text", model("text"))
        .start();
    for (name, reason) in [
        ("wrong_major", "built for plugin interface 99.0"),
        ("no_symbol", "not a trtserver backend"),
        ("missing_entry", "required entry 'execute' is missing"),
        ("old_size", "bytes"),
        ("null_table", "returned no table"),
        ("text", "not a loadable library"),
    ] {
        let file = format!("libtrtserver_{name}.so");
        let line = server.wait_for_log(&file);
        assert!(line.contains(reason), "{name}: {line}");
    }
    assert_eq!(server.infer("echo", "").status, 200);
    // The model's load error says so too.
    for name in ["wrong_major", "text"] {
        let line = server.wait_for_log(&format!("failed to load model '{name}'"));
        assert!(line.contains(name), "{line}");
        assert_eq!(server.get(&format!("/v2/models/{name}/ready")).status, 400);
    }
    assert!(server.stop().success());
}

#[test]
fn missing_backend_is_reported_with_searched_folders() {
    let config = probe("orphan", &[]).replace("backend: \"probe\"", "backend: \"nowhere\"");
    let ended = Server::new().model("orphan", config).refuses_to_start();
    assert_eq!(ended.code(), 1);
    let log = ended.stderr;
    let line = log.lines().find(|line| line.contains("nowhere")).unwrap_or_default();
    for part in ["orphan", "nowhere", "probe", &backends().display().to_string()] {
        assert!(line.contains(part), "no {part:?} in {line:?}\n{log}");
    }
}

#[test]
fn two_backends_of_one_name_are_refused() {
    let dir = folder();
    let copy = dir.path().join("libtrtserver_probe.so");
    std::fs::copy(backends().join("probe/libtrtserver_probe.so"), &copy).unwrap();
    let ended = Server::new().backend_dir(dir.path()).backend_dir(backends()).refuses_to_start();
    let log = ended.stderr;
    for part in [copy.display().to_string(), backends().join("probe").display().to_string()] {
        assert!(
            log.lines().any(|line| line.contains("claimed by") && line.contains(&part)),
            "{part}: {log}"
        );
    }
}
