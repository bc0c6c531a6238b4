//! Loading and unloading by request: what is served, what stays loaded, responses and errors.

use serde_json::{Value, json};
use std::fs;
use trtserver_tests::control::{Control, assert_ok, explicit, pair, ready, refused, unloaded};
use trtserver_tests::http1::request;
use trtserver_tests::scheduled::{NEVER, accumulator, correlation, flag, sequences};
use trtserver_tests::{Server, Signal, probe, python_v1, python_v2};

#[test]
fn only_named_models_are_loaded_at_start() {
    let server = explicit()
        .model("a", probe("a", &[]))
        .model("b", probe("b", &[]))
        .model("pair", pair("b"))
        .model("broken", "nonsense")
        .flag("--load-model=pair")
        .start();
    assert_eq!(
        server.index(),
        json!([{"name": "a"}, ready("b"), {"name": "broken"}, ready("pair")])
    );
    let ready_ones = server.post("/v2/repository/index", &[], r#"{"ready":true}"#).json();
    assert_eq!(ready_ones, json!([ready("b"), ready("pair")]));
    assert_eq!(
        server.get("/v2/health/ready").status,
        200,
        "models that are not loaded do not count"
    );
    assert!(server.serves("pair") && server.serves("b") && !server.serves("a"));
    assert_eq!(server.get("/v2/models/a/ready").status, 400);
    let v1 = server.get("/api/repository/index").text();
    assert_eq!(v1.matches("name:").count(), 4, "{v1}");
    assert_ok(server.load("a"));
    assert!(server.serves("a"));
    assert!(server.stop().success());

    let all =
        explicit().model("a", probe("a", &[])).model("pair", pair("a")).flag("--load-model=*");
    assert!(all.start().serves("pair"));
    let none = explicit().model("a", probe("a", &[])).start();
    assert_eq!(none.index(), json!([{"name": "a"}]));
    let wrong = explicit().model("a", probe("a", &[])).flag("--load-model=z").refuses_to_start();
    assert!(wrong.stderr.contains("failed to load 'z', failed to poll"), "{}", wrong.stderr);
}

#[test]
fn model_control_is_refused_unless_enabled() {
    let server = Server::new().model("a", probe("a", &[])).start();
    let text = "explicit model load / unload is not allowed if polling is enabled";
    for act in ["load", "unload"] {
        refused(server.control("a", act, json!({"nonsense": 1})), 503, text);
        let v1 = server.v1_error(act, "a");
        assert!(v1.contains("code: UNAVAILABLE") && v1.contains(text), "{v1}");
    }
    assert!(server.serves("a"));
}

#[test]
fn load_infer_unload() {
    let server = explicit().model("m", probe("m", &[])).start();
    let series = r#"nv_inference_request_success{model="m",version="1"}"#;
    assert_eq!(server.metrics(series), None);
    refused(server.infer("m", ""), 404, "Request for unknown model: 'm' is not found");
    assert_ok(server.load("m"));
    assert!(server.serves("m"));
    assert_eq!(server.index(), json!([ready("m")]));
    assert_eq!(server.metrics(series), Some(1.0));
    // Unchanged: no reload.
    assert_ok(server.load("m"));
    assert_eq!(server.log().matches("loading: m:1").count(), 1);

    assert_ok(server.unload("m"));
    server.wait_for_index(&json!([unloaded("m")]));
    server.wait_for_log("successfully unloaded 'm' version 1");
    assert_eq!(server.metrics(series), None);
    assert!(!server.metrics_text().contains("nv_inference_count"), "a family without series");
    refused(server.infer("m", ""), 404, "Request for unknown model: 'm' has no available versions");
    let exact = server.post("/v2/models/m/versions/1/infer", &[], "{}");
    refused(exact, 503, "Request for unknown model: 'm' version 1 is not at ready state");
    assert_eq!(server.get("/v2/models/m/ready").status, 400);
    assert_eq!(server.get("/v2/health/ready").status, 200);
    assert_eq!(server.get("/api/health/ready").status, 200);
    refused(server.get("/v2/models/m/stats"), 400, "requested model 'm' is not available");
    assert_eq!(server.get("/v2/models/m").status, 404);
    assert_eq!(server.get("/v2/models/m/config").status, 404);
    let status = server.get("/api/status/m").text();
    assert!(
        status.contains("MODEL_UNAVAILABLE") && status.contains("message: \"unloaded\""),
        "{status}"
    );
    assert!(status.contains("model_execution_count: 1"), "counters stay\n{status}");
    // Again, and an unknown model.
    assert_ok(server.unload("m"));
    assert_ok(server.unload("unknown"));
    assert_ok(server.v1("unload", "unknown"));

    assert_ok(server.v1("load", "m"));
    assert!(server.serves("m"));
    assert_eq!(server.metrics(series), Some(2.0), "counters go on");
    assert_ok(server.v1("unload", "m"));
    assert!(!server.serves("m"));
    // Without its directory the model is removed from the index by the next change.
    server.models().remove("m");
    server.poll_until("it is forgotten", |s| {
        assert_ok(s.unload("m"));
        s.index() == json!([])
    });
    server.signal(Signal::TERM);
    assert!(server.wait().status.success());
    assert!(server.log().contains("closed backend 'probe'"), "{}", server.log());
}

#[test]
fn unreadable_configuration_is_not_polled() {
    let server = explicit().model("m", "nonsense").start();
    let text = "failed to load 'm', failed to poll from model repository";
    refused(server.load("m"), 500, text);
    let v1 = server.v1_error("load", "m");
    assert!(v1.contains("failed to load 'm', no version is available"), "{v1}");
    assert_eq!(server.get("/v2/health/ready").status, 200);
    server.models().model("m", &probe("m", &[]));
    assert_ok(server.unload("m"));
    assert_eq!(server.index(), json!([{"name": "m"}]));
    assert_ok(server.load("m"));
    assert_eq!(server.index(), json!([ready("m")]));
}

#[test]
fn unload_with_an_unreadable_body_unloads() {
    let server = explicit().model("m", probe("m", &[])).flag("--load-model=m").start();
    for body in ["{", "[]", r#"{"parameters":{"unload_dependents":"x"}}"#, r#"{"parameters":7}"#] {
        assert_ok(server.load("m"));
        assert_ok(server.post("/v2/repository/models/m/unload", &[], body));
        assert!(!server.serves("m"), "{body}");
    }
    server.wait_for_log("unload of model 'm': the request body is ignored");
}

#[test]
fn config_override_in_load_request() {
    let server = explicit().model("m", probe("m", &[])).flag("--load-model=m").start();
    let with = |config: Value| server.control("m", "load", json!({"config": config.to_string()}));
    let tensor = |name: &str| json!([{"name": name, "data_type": "type_fp32", "dims": [-1]}]);
    let config = |fail: &str| {
        json!({
            "name": "m", "backend": "probe", "maxBatchSize": 8,
            "input": tensor("INPUT0"), "output": tensor("OUTPUT0"),
            "parameters": {"fail": {"string_value": fail}},
        })
    };
    assert_ok(with(config("other text")));
    refused(server.infer("m", ""), 500, "other text");
    assert_eq!(
        server.get("/v2/models/m/config").json()["parameters"]["fail"]["string_value"],
        "other text"
    );
    // Another override reloads; a load without one keeps it until the directory changes.
    assert_ok(with(config("more text")));
    refused(server.infer("m", ""), 500, "more text");
    assert_ok(server.load("m"));
    refused(server.infer("m", ""), 500, "more text");
    server.models().file("m/config.pbtxt", probe("m", &[("fail", "the file's text")]));
    assert_ok(server.load("m"));
    refused(server.infer("m", ""), 500, "the file's text");
    // After an unload the file counts, too.
    assert_ok(with(config("other text")));
    assert_ok(server.unload("m"));
    assert_ok(server.load("m"));
    refused(server.infer("m", ""), 500, "the file's text");

    let override_of = |text: &str| server.control("m", "load", json!({"config": text}));
    let start = "failed to load 'm', failed to poll from model repository: Invalid config override: \
                 parameter 'config':";
    for (text, why) in [
        ("", "1:0: EOF while parsing a value"),
        (
            "{\n  \"max_batch_sise\": 1 }",
            "2:18: ModelConfig has no field max_batch_sise; did you mean max_batch_size?",
        ),
        (r#"{"input":[{"data_type":"TYPE_X"}]}"#, "1:31: data_type: DataType has no value TYPE_X"),
        ("name: 'm'", "1:2: expected ident"),
    ] {
        let response = override_of(text);
        assert_eq!(response.status, 500);
        assert!(response.error_text().starts_with(&format!("{start}{why}")), "{}", response.text());
        server.wait_for_log(&format!("Invalid config override: parameter 'config':{why}"));
    }
    let response = override_of(r#"{"name": "other"}"#);
    assert!(
        response.error_text().starts_with("load failed for model 'm': "),
        "{}",
        response.text()
    );
    assert!(response.error_text().contains("other"), "{}", response.text());
    assert_eq!(response.status, 400);

    // Parameters of the wrong type, and invalid model names.
    let unknown = server.control("m", "load", json!({"else": "x"}));
    refused(unknown, 500, "unexpected error on creating Triton parameter");
    let json_layer = "attempt to access JSON non-";
    for parameters in [json!({"config": 7}), json!([])] {
        let response = server.control("m", "load", parameters);
        assert_eq!(response.status, 500, "{}", response.text());
        assert!(response.error_text().contains(json_layer), "{}", response.text());
    }
    for name in ["..", "."] {
        let text = format!(
            "invalid model name '{name}', model name must not contain path traversal characters"
        );
        refused(server.load(name), 400, &text);
        let v1 = server.v1_error("load", name);
        let text = format!("failed to load '{name}', no version is available");
        assert!(v1.contains(&text), "{v1}");
    }
    for name in ["unknown", "%2e%2e", "m%00"] {
        let text = format!("failed to load '{name}', failed to poll from model repository");
        refused(server.load(name), 500, &text);
    }
    let named = server.post("/v2/repository/r/models/m/load", &[], "");
    refused(named, 501, "'repository_name' specification is not supported");
    assert_eq!(server.v1("load", "a/b").status, 400);
    refused(server.infer("m", ""), 500, "the file's text");
    assert_eq!(server.index(), json!([ready("m")]));
}

#[test]
fn model_in_two_repositories_is_refused() {
    let other = trtserver_tests::folder();
    let root = other.path().join("m");
    fs::create_dir_all(root.join("1")).unwrap();
    let mut flag = std::ffi::OsString::from("--model-repository=");
    flag.push(other.path());
    let server = explicit().model("m", probe("m", &[])).flag(flag).start();
    let text = "failed to load 'm', failed to poll from model repository";
    refused(server.load("m"), 500, text);
    let entry = json!([{"name": "m", "state": "UNAVAILABLE",
                        "reason": "model appears in two or more repositories"}]);
    assert_eq!(server.index(), entry);
    let v1 = server.v1_error("load", "m");
    assert!(v1.contains("failed to load 'm', no version is available"), "{v1}");
    assert_eq!(server.post("/v2/repository/index", &[], r#"{"ready":true}"#).json(), entry);
    fs::remove_dir_all(&root).unwrap();
    assert_ok(server.load("m"));
    assert!(server.serves("m"));
}

/// One that is to be loaded at start: the server is ready without it, as TRTIS and Triton are.
#[test]
fn model_in_two_repositories_at_start_does_not_make_the_server_unready() {
    let other = trtserver_tests::folder();
    fs::create_dir_all(other.path().join("m/1")).unwrap();
    let mut second = std::ffi::OsString::from("--model-repository=");
    second.push(other.path());
    for mode in ["explicit", "none", "poll"] {
        let flags = ["--exit-on-error=false".to_owned(), format!("--model-control-mode={mode}")];
        let server = Server::new().model("m", probe("m", &[])).model("a", probe("a", &[]));
        let server = flags.into_iter().fold(server.flag(second.clone()), Server::flag);
        let server = match mode {
            "explicit" => server.flag("--load-model=m").flag("--load-model=a"),
            _ => server,
        };
        let server = server.start();
        server.wait_for_log("not unique across all model repositories");
        server.poll_until("a is served", |server| server.serves("a"));
        for path in ["/v2/health/ready", "/api/health/ready"] {
            assert_eq!(server.get(path).status, 200, "{mode}: {path}");
        }
        let entry = json!([ready("a"), {"name": "m", "state": "UNAVAILABLE",
                           "reason": "model appears in two or more repositories"}]);
        assert_eq!(server.index(), entry, "{mode}");
        let ready_ones = server.post("/v2/repository/index", &[], r#"{"ready":true}"#).json();
        assert_eq!(ready_ones, entry, "{mode}");
        assert!(!server.serves("m"), "{mode}");
    }
}

#[test]
fn sequences_end_with_an_unload() {
    let controls = [flag("START", "int32"), correlation("UINT64")];
    let scheduling = sequences(NEVER, "oldest { max_candidate_sequences: 4 }", &controls);
    let config = accumulator("sum", 8, "corrid", &scheduling);
    let server = explicit().model("sum", &config).flag("--load-model=sum").start();
    let send = |more: &str| {
        let json = format!(
            r#"{{"parameters":{{"sequence_id":7{more}}},"inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[1]}}]}}"#
        );
        server.send(request("POST", "/v2/models/sum/infer", &[], json.as_bytes()))
    };
    let start = r#","sequence_start":true"#;
    let first = send(start);
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(send("").status, 200);
    assert_ok(server.unload("sum"));
    assert_eq!(send("").status, 404);
    assert_ok(server.load("sum"));
    let lost = send("");
    assert_eq!(lost.status, 400, "{}", lost.text());
    assert!(lost.error_text().contains("START"), "{}", lost.text());
    assert_eq!(send(start).status, 200);
    // A load that changes nothing of the version ends none.
    server.models().file("sum/config.pbtxt", format!("{config}\n# new\n"));
    assert_ok(server.load("sum"));
    assert_eq!(send("").status, 200);
    assert_eq!(send(r#","sequence_end":true"#).status, 200);
    assert!(server.stop().success());
}

#[test]
fn clients_load_and_unload() {
    let server = explicit()
        .copy_model("tests/models/addsub_fp32")
        .model("m", probe("m", &[]))
        .model("pair", pair("m"))
        .model("broken", "nonsense")
        .start();
    python_v1(&server, "v1_control.py", &[]);
    python_v2(&server, "v2_control.py", &[]);
    assert!(server.stop().success());
}
