//! docs/protocol/v2.md §2.1 to 2.4, 2.8, 2.14 to 2.18: transport, errors and management over HTTP.

use super::SERVER;
use serde_json::{Value, json};
use trtserver_tests::http1::request;
use trtserver_tests::{Response, Server, probe};

const INPUT: &str = r#"{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}"#;

#[track_caller]
fn refused(response: &Response, status: u16, text: &str) {
    assert_eq!((response.status, response.error_text().as_str()), (status, text));
}

/// Content types and unusual transfers of a request.
#[test]
fn transport() {
    let body = format!(r#"{{"inputs":[{INPUT}]}}"#);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(SERVER.post("/v2/models/echo/infer", &form, &body).status, 200);
    let long =
        "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 2147483648\r\n\r\n";
    let response = SERVER.send(long);
    assert_eq!(response.status, 400, "{}", response.text());
    let text = response.error_text();
    assert!(text.starts_with("Unable to parse Content-Length, value is out of range [ "), "{text}");
    assert!(text.ends_with(", got: 2147483648"), "{text}");
    let mut chunked =
        b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec();
    chunked.extend(b"1\r\n \r\n".repeat(65_537));
    chunked.extend(b"0\r\n\r\n");
    let text = "Chunked request body exceeds maximum of 65536 non-empty chunks. Send fewer or larger HTTP chunks.";
    refused(&SERVER.send(chunked), 400, text);
}

/// Unknown versions, trailing slashes and named repositories in paths.
#[test]
fn paths() {
    for path in [
        "/v2/models/echo/trace/setting/",
        "/v2/models/echo/versions/1/trace/setting",
        "/v2/health/live/",
        "/v2/models/echo/versions//ready",
    ] {
        assert_eq!(SERVER.get(path).status, 404, "{path}");
    }
    // The path of all statistics takes precedence over a model called `stats`.
    let all = SERVER.get("/v2/models/stats").json();
    assert!(all["model_stats"].as_array().is_some_and(|list| list.len() > 10), "{all}");
    let unsupported = "'repository_name' specification is not supported";
    for path in [
        "/v2/repository/mine/index",
        "/v2/repository/mine/models/m/load",
        "/v2/repository/mine/models/m/unload",
    ] {
        refused(&SERVER.post(path, &[], ""), 501, unsupported);
    }
    // Version 0 is a number like others, and digits alone are a version.
    refused(
        &SERVER.get("/v2/models/echo/versions/0"),
        404,
        "Request for unknown model: 'echo' version 0 is not found",
    );
    assert_eq!(SERVER.get("/v2/models/echo/versions/01").status, 200);
    assert_eq!(SERVER.get("/v2/models/echo/versions/-1").status, 404);
    refused(
        &SERVER.get("/v2/models/echo/versions/9/stats"),
        400,
        "requested model version is not available for model 'echo'",
    );
    refused(
        &SERVER.get("/v2/models/absent/config"),
        404,
        "Request for unknown model: 'absent' is not found",
    );
}

/// The encoding of a response: highest weight, first of equal ones, `*` and unknown names ignored.
#[test]
fn accept_encoding() {
    let path = "/v2/models/identity_fp32/infer";
    let data = vec!["0"; 2000].join(",");
    let body = format!(
        r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,2000],"data":[{data}]}}]}}"#
    );
    for (accept, encoding) in [
        ("gzip", Some("gzip")),
        ("deflate, gzip", Some("deflate")),
        ("deflate;q=0.5, gzip;q=0.9", Some("gzip")),
        ("identity, gzip", None),
        ("gzip;q=0", None),
        ("*", None),
        ("br", None),
        ("br, deflate;q=0.1", Some("deflate")),
    ] {
        let response = SERVER.post(path, &[("Accept-Encoding", accept)], &body);
        assert_eq!(response.status, 200, "{accept}");
        assert_eq!(response.header("content-encoding"), encoding, "{accept}");
    }
}

/// Which 64-bit numbers of the configuration are JSON numbers, and which are strings.
#[test]
fn configuration_numbers() {
    let config = probe("m", &[])
        + "version_policy { specific { versions: [ 1 ] } }\n\
           dynamic_batching { max_queue_delay_microseconds: 5 priority_levels: 2 default_priority_level: 1\n\
             default_queue_policy { default_timeout_microseconds: 6 }\n\
             priority_queue_policy { key: 2 value { default_timeout_microseconds: 7 } } }\n";
    let server = Server::new().model("m", config).start();
    let config = server.get("/v2/models/m/config").json();
    let dynamic = &config["dynamic_batching"];
    for (value, expected) in [
        (&config["input"][0]["dims"], json!([-1])),
        (&config["version_policy"], json!({"specific": {"versions": [1]}})),
        (&dynamic["max_queue_delay_microseconds"], json!(5)),
        (&dynamic["priority_levels"], json!(2)),
        (&dynamic["default_priority_level"], json!(1)),
        (&dynamic["default_queue_policy"]["default_timeout_microseconds"], json!(6)),
        (&dynamic["priority_queue_policy"]["2"]["default_timeout_microseconds"], json!(7)),
        (&config["optimization"]["input_pinned_memory"]["enable"], json!(true)),
        (&config["instance_group"][0]["name"], json!("m")),
    ] {
        assert_eq!(value, &expected, "{config}");
    }
    assert!(!server.get("/v2/models/m/config").text().contains(": "), "compact JSON");
    assert!(server.stop().success());
}

/// Trace settings of the start; a request that changes nothing is answered like one that reads.
#[test]
fn trace_settings() {
    let settings = json!({
        "trace_level": ["OFF"], "trace_rate": "1000", "trace_count": "-1", "log_frequency": "0", "trace_file": "",
        "trace_mode": "triton"
    });
    for path in ["/v2/trace/setting", "/v2/models/echo/trace/setting"] {
        assert_eq!(SERVER.get(path).json(), settings, "{path}");
        for same in ["{}", "", r#"{"trace_level":null,"trace_file":null}"#] {
            assert_eq!(SERVER.post(path, &[], same).json(), settings, "{path} {same}");
        }
    }
    refused(
        &SERVER.get("/v2/models/absent/trace/setting"),
        400,
        "Request for unknown model : absent",
    );
}

#[test]
fn log_settings() {
    let order =
        ["log_file", "log_info", "log_warning", "log_error", "log_verbose_level", "log_format"];
    let text = SERVER.get("/v2/logging").text();
    let at: Vec<_> = order.iter().map(|key| text.find(&format!("\"{key}\""))).collect();
    assert!(at.windows(2).all(|pair| pair[0].is_some() && pair[0] < pair[1]), "{text}");
    let post = |body: &str| SERVER.post("/v2/logging", &[], body);
    refused(&post(r#"{"log_format":"xml"}"#), 503, "invalid argument for --log_format, got: xml");
    let file = post(r#"{"log_file":"/tmp/x"}"#);
    refused(&file, 501, "log file location can not be updated through network protocol");
}

/// Load and unload requests that are refused, and the states of a model in the index.
#[test]
fn model_repository() {
    let server =
        Server::new().flag("--model-control-mode=explicit").model("m", probe("m", &[])).start();
    let load = |model: &str, body: &str| {
        server.post(&format!("/v2/repository/models/{model}/load"), &[], body)
    };
    let index = || server.post("/v2/repository/index", &[], "").json();
    assert_eq!(index(), json!([{"name": "m"}]));
    for (body, status, text) in [
        (r#"{"parameters":{"else":"x"}}"#, 500, "unexpected error on creating Triton parameter"),
        (r#"{"parameters":{"config":1}}"#, 500, ""),
        (r#"{"parameters":{"file:1/x":"AA=="}}"#, 500, ""),
        ("{", 500, ""),
    ] {
        let response = load("m", body);
        assert_eq!(response.status, status, "{body}: {}", response.text());
        assert!(text.is_empty() || response.error_text() == text, "{body}: {}", response.text());
    }
    let empty = load("%20", "");
    assert!([400, 500].contains(&empty.status), "{}", empty.text());
    refused(
        &load("absent", ""),
        500,
        "failed to load 'absent', failed to poll from model repository",
    );
    let loaded = load("m", r#"{"parameters":{}}"#);
    assert_eq!((loaded.status, loaded.text().as_str()), (200, ""));
    assert_eq!(index(), json!([{"name": "m", "version": "1", "state": "READY"}]));
    let unload = |model: &str, body: &str| {
        server.post(&format!("/v2/repository/models/{model}/unload"), &[], body)
    };
    assert_eq!(unload("absent", "").status, 200);
    let unloaded = unload("m", r#"{"parameters":{"unload_dependents":true}}"#);
    assert_eq!((unloaded.status, unloaded.text().as_str()), (200, ""));
    let expected =
        json!([{"name": "m", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}]);
    server.poll_until("it is unloaded", |_| index() == expected);
    let ready = server.post("/v2/repository/index", &[], r#"{"ready":true}"#).json();
    assert_eq!(ready, Value::Array(vec![]));
    assert!(server.stop().success());
}

/// Shared memory of unknown regions and wrong requests; unregistering succeeds in any case.
#[test]
fn shared_memory() {
    for kind in ["system", "cuda"] {
        let path = |rest: &str| format!("/v2/{kind}sharedmemory{rest}");
        assert_eq!(SERVER.get(&path("/status")).json(), json!([]), "{kind}");
        let unknown = format!("Unable to find {kind} shared memory region: 'none'");
        refused(&SERVER.get(&path("/region/none/status")), 404, &unknown);
        for rest in ["/unregister", "/region/none/unregister"] {
            let response = SERVER.post(&path(rest), &[], "ignored");
            assert_eq!((response.status, response.text().as_str()), (200, ""), "{kind} {rest}");
        }
    }
    let register = |name: &str, body: &str| {
        SERVER.post(&format!("/v2/systemsharedmemory/region/{name}/register"), &[], body)
    };
    let missing = register("r", r#"{"key":"/trtserver-rows-none","byte_size":8}"#);
    refused(&missing, 500, "Unable to open shared memory region: '/trtserver-rows-none'");
    let reserved = register("r", r#"{"key":"triton_python_backend_shm_region_1","byte_size":8}"#);
    assert_eq!(reserved.status, 400, "{}", reserved.text());
    assert!(reserved.error_text().contains("invalid shm key"), "{}", reserved.text());
    let input = r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"parameters":{"shared_memory_region":"none","shared_memory_byte_size":8}}]}"#;
    let used = SERVER.post("/v2/models/echo/infer", &[], input);
    refused(&used, 404, "Unable to find shared memory region: 'none'");
}

/// Restricted, unknown and refused requests have JSON bodies with one key, which clients require.
#[test]
fn error_bodies() {
    for (method, path, body, status) in [
        ("POST", "/v2/models/absent/infer", "{}", 404),
        ("POST", "/v2/models/echo/infer", "{", 500),
        ("GET", "/v2/nothing", "", 404),
        ("DELETE", "/v2/models/echo/infer", "", 405),
        ("POST", "/v2/repository/models/echo/load", "", 503),
    ] {
        let response = SERVER.send(request(method, path, &[], body.as_bytes()));
        let json = response.json();
        assert_eq!(response.status, status, "{path}: {json}");
        let keys: Vec<_> = json.as_object().into_iter().flat_map(|object| object.keys()).collect();
        assert_eq!(keys, ["error"], "{path}: {json}");
    }
}
