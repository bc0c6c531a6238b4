//! The response cache: equal requests are answered without an execution, on all endpoints, for local
//! and isolated models and for ensembles. Cases of Triton's suite L0_response_cache are named.
#![allow(clippy::unwrap_used, reason = "what these tests cannot do is a failure")]

use serde_json::{Value, json};
use std::thread;
use trtserver_tests::control::{Control, assert_ok, explicit, pair};
use trtserver_tests::http1::request;
use trtserver_tests::isolated::isolated;
use trtserver_tests::{
    Connection, ENDPOINTS, Endpoint, InferenceClient, Latch, Running, Server, SharedObject, probe,
};

const CACHE: &str = "--cache-config=local,size=1048576";
const ENABLE: &str = "\nresponse_cache { enable: true }\n";

fn cached(name: &str, parameters: &[(&str, &str)]) -> String {
    probe(name, parameters) + ENABLE
}

fn statistics(server: &Running, model: &str) -> Value {
    server.get_json(&format!("/v2/models/{model}/stats")).json()["model_stats"][0].clone()
}

/// Hits, misses and executions.
fn counts(server: &Running, model: &str) -> [u64; 3] {
    let all = statistics(server, model);
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} in {all}"));
    let count = |name: &str| number(&all["inference_stats"][name]["count"]);
    let (hits, success) = (count("cache_hit"), count("success"));
    for compute in ["compute_input", "compute_infer", "compute_output"] {
        assert_eq!(count(compute), success - hits, "{all}");
    }
    assert_eq!(count("queue"), success, "{all}");
    [hits, count("cache_miss"), number(&all["execution_count"])]
}

/// A request to echo `body`'s input, as JSON.
fn echo(server: &Running, model: &str, body: &Value) -> Value {
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body.to_string());
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

fn body(shape: [u64; 2], data: &[f32]) -> Value {
    json!({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": shape, "data": data}]})
}

#[test]
fn every_endpoint_finds_responses_of_the_others() {
    let server = Server::new()
        .model("local", cached("local", &[]))
        .model("isolated", isolated("isolated", &[]) + ENABLE)
        .model("off", probe("off", &[]))
        .flag(CACHE)
        .start();
    for model in ["local", "isolated"] {
        for endpoint in ENDPOINTS.into_iter().chain(ENDPOINTS) {
            let client = InferenceClient::send(&server, endpoint, model, [1.5, 2.5]);
            assert!(client.is_echoed(), "{model} {endpoint:?}");
        }
        assert_eq!(counts(&server, model), [11, 1, 1], "{model}");
        let other = InferenceClient::send(&server, Endpoint::GrpcV2, model, [1.5, 3.5]);
        assert!(other.is_echoed());
        assert_eq!(counts(&server, model), [11, 2, 2], "{model}");
        let sample =
            |family: &str| server.metrics(&format!(r#"{family}{{model="{model}",version="1"}}"#));
        assert_eq!(sample("nv_cache_num_hits_per_model"), Some(11.0));
        assert_eq!(sample("nv_cache_num_misses_per_model"), Some(2.0));
        assert_eq!(sample("nv_inference_request_success"), Some(13.0));
        assert_eq!(sample("nv_inference_count"), Some(2.0));
        assert_eq!(sample("trtserver_requests_in_flight"), Some(0.0));
        assert_eq!(statistics(&server, model)["response_cache"]["state"], "on");
        let memory = server.get_json("/v2/trtserver/memory").text();
        assert!(memory.contains("response_cache"), "{memory}");
    }
    assert_eq!(server.metrics("trtserver_response_cache_entries"), Some(4.0));
    let hit = r#"nv_cache_hit_duration_per_model{model="local",version="1"}"#;
    assert!(server.metrics(hit).is_some());
    assert!(InferenceClient::send(&server, Endpoint::HttpV2, "off", [1.5, 2.5]).is_echoed());
    assert_eq!(statistics(&server, "off").get("response_cache"), None);
    assert!(!server.metrics_text().contains(r#"nv_cache_num_hits_per_model{model="off""#));
    assert!(server.stop().success());
}

/// What Triton's key leaves out: equal bytes in another shape, other requested outputs, other
/// parameters.
#[test]
fn requests_that_differ_are_executed() {
    let two = cached("two", &[])
        .replace(
            "output [ {",
            r#"output [ { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ -1 ] }, {"#,
        )
        .replace(
            "input [ {",
            r#"input [ { name: "INPUT1" data_type: TYPE_FP32 dims: [ -1 ] optional: true }, {"#,
        );
    let server =
        Server::new().model("one", cached("one", &[])).model("two", two).flag(CACHE).start();
    let wide = echo(&server, "one", &body([1, 4], &[1.0; 4]));
    let tall = echo(&server, "one", &body([2, 2], &[1.0; 4]));
    assert_eq!(wide["outputs"][0]["shape"], json!([1, 4]));
    assert_eq!(tall["outputs"][0]["shape"], json!([2, 2]));
    assert_eq!(counts(&server, "one"), [0, 2, 2]);
    let mut with = body([1, 4], &[1.0; 4]);
    with["parameters"] = json!({"mine": 1});
    echo(&server, "one", &with);
    with["parameters"] = json!({"mine": "1"});
    echo(&server, "one", &with);
    assert_eq!(counts(&server, "one"), [0, 4, 4]);
    // The id is echoed, and is not part of the key.
    with["id"] = json!("mine");
    assert_eq!(echo(&server, "one", &with)["id"], "mine");
    assert_eq!(counts(&server, "one"), [1, 4, 4]);

    let input =
        |name: &str| json!({"name": name, "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]});
    let requested = |names: &[&str]| {
        let outputs: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"inputs": [input("INPUT0"), input("INPUT1")], "outputs": outputs})
    };
    for _ in 0..2 {
        for names in [&["OUTPUT0"][..], &["OUTPUT1"], &["OUTPUT0", "OUTPUT1"]] {
            let response = echo(&server, "two", &requested(names));
            let got = response["outputs"].as_array().unwrap().iter();
            assert_eq!(got.map(|o| o["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
        }
    }
    assert_eq!(counts(&server, "two"), [3, 3, 3]);
    assert!(server.stop().success());
}

#[test]
fn equal_requests_at_once_are_one_execution() {
    let latch = Latch::new();
    let (key, path) = latch.config();
    let server = Server::new().model("held", cached("held", &[(key, &path)])).flag(CACHE).start();
    let clients: Vec<_> = (0..16)
        .map(|i| InferenceClient::send(&server, ENDPOINTS[i % ENDPOINTS.len()], "held", [1.0, 2.0]))
        .collect();
    let pending = r#"nv_inference_pending_request_count{model="held",version="1"}"#;
    server.poll_until("15 requests wait", |server| server.metrics(pending) == Some(15.0));
    latch.open();
    assert!(clients.into_iter().all(InferenceClient::is_echoed));
    assert_eq!(counts(&server, "held"), [15, 1, 1]);
    assert_eq!(statistics(&server, "held")["response_cache"]["shared_count"], 15);
    assert!(server.stop().success());
}

/// The request that others wait for loses its client: one of them takes its place.
#[test]
fn cancelled_leader_hands_over() {
    let latch = Latch::new();
    let server = Server::new().model("held", cached("held", &[])).flag(CACHE).start();
    let pending = r#"nv_inference_pending_request_count{model="held",version="1"}"#;
    thread::scope(|scope| {
        let blocker = scope.spawn(|| server.infer("held", &latch.parameter()).status);
        latch.wait_for(&server, 1);
        let send = || InferenceClient::send(&server, Endpoint::GrpcV2, "held", [1.0, 2.0]);
        let leader = send();
        server.poll_until("it waits", |server| server.metrics(pending) == Some(1.0));
        let followers = [send(), send()];
        server.poll_until("they wait", |server| server.metrics(pending) == Some(3.0));
        drop(leader);
        server.poll_until("it is cancelled", |server| server.metrics(pending) == Some(2.0));
        latch.open();
        assert!(followers.into_iter().all(InferenceClient::is_echoed));
        assert_eq!(blocker.join().unwrap(), 200);
    });
    assert_eq!(counts(&server, "held"), [1, 2, 2]);
    assert!(server.stop().success());
}

#[test]
fn reloaded_version_has_no_old_responses() {
    let server = explicit().model("m", cached("m", &[])).flag(CACHE).start();
    let infer = || echo(&server, "m", &body([1, 2], &[1.0, 2.0]));
    assert_ok(server.load("m"));
    (0..2).for_each(|_| drop(infer()));
    assert_eq!(counts(&server, "m"), [1, 1, 1]);
    // Nothing has changed: the version stays open.
    assert_ok(server.load("m"));
    infer();
    assert_eq!(counts(&server, "m"), [2, 1, 1]);
    server.models().model("m", &cached("m", &[("x", "1")]));
    assert_ok(server.load("m"));
    (0..2).for_each(|_| drop(infer()));
    assert_eq!(counts(&server, "m"), [3, 2, 2]);
    server.poll_until("the old version is closed", |server| {
        server.metrics("trtserver_response_cache_entries") == Some(1.0)
    });
    assert_ok(server.unload("m"));
    server.poll_until("no entry is left", |server| {
        server.metrics("trtserver_response_cache_entries") == Some(0.0)
    });
    assert!(server.stop().success());
}

/// `test_ensemble_top_level_response_cache`, `test_ensemble_composing_model_cache_enabled`,
/// `test_ensemble_all_models_cache_enabled` of Triton's suite, and a reload of a step.
#[test]
fn ensembles_as_a_whole_and_by_step() {
    let server = explicit()
        .model("step", probe("step", &[]))
        .model("pair", pair("step"))
        .flag(CACHE)
        .start();
    let infer = || echo(&server, "pair", &body([1, 2], &[1.0, 2.0]));
    let cases = [
        // Of the ensemble and of its step: enabled, then hits and misses of two equal requests.
        ([true, false], [[1, 1], [0, 0]]),
        ([true, true], [[1, 1], [1, 1]]),
        // The step has stayed open, with its response.
        ([false, true], [[0, 0], [4, 0]]),
    ];
    for (enabled, want) in cases {
        let [whole, step] = enabled.map(|enabled| if enabled { ENABLE } else { "" });
        server.models().model("pair", &(pair("step") + whole));
        server.models().model("step", &(probe("step", &[]) + step));
        assert_ok(server.load("step"));
        assert_ok(server.load("pair"));
        let before = ["pair", "step"].map(|model| counts(&server, model));
        assert_eq!(infer()["outputs"], infer()["outputs"]);
        let after = ["pair", "step"].map(|model| counts(&server, model));
        for i in 0..2 {
            let hits_and_misses = [0, 1].map(|n| after[i][n] - before[i][n]);
            assert_eq!(hits_and_misses, want[i], "{enabled:?} {i}");
        }
    }
    // An ensemble forgets its responses when a step is reloaded.
    server.models().model("pair", &(pair("step") + ENABLE));
    assert_ok(server.load("pair"));
    (0..2).for_each(|_| drop(infer()));
    let [hits, misses, _] = counts(&server, "pair");
    server.models().model("step", &cached("step", &[("x", "1")]));
    assert_ok(server.load("step"));
    infer();
    assert_eq!(counts(&server, "pair")[..2], [hits, misses + 1]);
    assert!(server.stop().success());
}

/// The cases of Triton's suite in which a model is refused, or a response does not fit.
#[test]
fn models_and_responses_that_cannot_be_cached() {
    let decoupled = "\nmodel_transaction_policy { decoupled: true }\n";
    let sequence = "\nsequence_batching { }\n";
    let server = explicit()
        .model("decoupled", cached("decoupled", &[]) + decoupled)
        .model("sequence", cached("sequence", &[]) + sequence)
        .model("step", probe("step", &[]) + decoupled)
        .model("pair", pair("step") + ENABLE)
        .model("plain", probe("plain", &[]))
        .model("streams", pair("plain").replace("\"pair\"", "\"streams\"") + ENABLE + decoupled)
        .model("small", cached("small", &[]))
        .model("both", pair("plain").replace("\"pair\"", "\"both\"") + ENABLE)
        .flag("--cache-config=local,size=200")
        .start();
    for (model, with) in [
        ("decoupled", "decoupled with 'decoupled' transaction policy"),
        ("sequence", "sequence with sequence batching scheduler"),
        ("pair", "pair with 'decoupled' transaction policy in its composing model step"),
        ("streams", "streams with 'decoupled' transaction policy"),
    ] {
        let error = server.load(model).error_text();
        let want = format!(
            "Response Cache does not currently support model {with}. Please disable the response cache."
        );
        assert!(error.contains(&want), "{error}");
    }
    // A model, and an ensemble.
    for model in ["small", "both"] {
        assert_ok(server.load(model));
        for _ in 0..2 {
            echo(&server, model, &body([1, 2], &[1.0, 2.0]));
        }
        assert_eq!(counts(&server, model)[..2], [0, 2]);
        let subject = format!("into response cache: model '{model}'");
        server.wait_for_log(&subject);
        assert_eq!(server.log().matches(&subject).count(), 1);
    }
    assert!(server.stop().success());
}

#[test]
fn responses_expire() {
    let server = Server::new()
        .model("m", cached("m", &[]))
        .flag("--cache-config=local,size=1048576,ttl=0.2")
        .start();
    server.poll_until("the first response has expired", |server| {
        echo(server, "m", &body([1, 2], &[1.0, 2.0]));
        counts(server, "m")[2] == 2
    });
    assert!(server.stop().success());
}

/// Inputs and outputs in a client's shared memory; the client writes over both.
#[test]
fn shared_memory_of_clients() {
    let server = Server::new()
        .model("m", cached("m", &[]))
        .flag("--allow-client-shm=true")
        .flag(CACHE)
        .start();
    let len = 64 << 10;
    let object = SharedObject::registered(&server, len);
    let infer = |value: f32| {
        object.fill(value);
        let response = server.post("/v2/models/m/infer", &[], object.request(""));
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(object.read(len / 2, 4), value.to_le_bytes());
    };
    for value in [1.0, 1.0, 2.0, 1.0, 2.0] {
        infer(value);
    }
    assert_eq!(counts(&server, "m"), [3, 2, 2]);
    assert!(server.stop().success());
}

/// A cache without hits switches itself off; the requests are executed as before.
#[test]
fn useless_cache_switches_itself_off() {
    let server =
        Server::new().model("m", cached("m", &[])).flag("--response-cache-byte-size=65536").start();
    let mut connection: Connection = server.connect();
    for round in 0..23 {
        let requests: Vec<u8> = (0..100)
            .flat_map(|i| {
                let body = body([1, 2], &[i as f32, round as f32]).to_string();
                request("POST", "/v2/models/m/infer", &[], body.as_bytes())
            })
            .collect();
        connection.send(&requests);
        (0..100).for_each(|_| assert_eq!(connection.response().status, 200));
    }
    let cache = &statistics(&server, "m")["response_cache"];
    assert_eq!((&cache["state"], &cache["switched_off_count"]), (&json!("off"), &json!(1)));
    let [hits, misses, executions] = counts(&server, "m");
    // Two windows, which are shorter where look-ups take long.
    assert!(hits == 0 && executions == 2300 && misses <= 2048, "{hits} {misses} {executions}");
    assert_eq!(cache["passed_count"], 2300 - misses, "{cache}");
    let off = r#"trtserver_response_cache_off{model="m",version="1"}"#;
    assert_eq!(server.metrics(off), Some(1.0));
    // Memory did not grow beyond the limit, although each response was new.
    assert!(server.metrics("trtserver_response_cache_evictions_total") > Some(0.0));
    assert!(server.metrics("trtserver_response_cache_bytes") <= Some(65536.0));
    server.wait_for_log("model 'm' version 1: its response cache is switched off");
    server.wait_for_log("deprecated, use --cache-config=local,size=65536");
    assert!(server.stop().success());
}

#[test]
fn model_without_a_cache_of_the_server_is_warned_of() {
    let server = Server::new().model("m", cached("m", &[])).start();
    for _ in 0..2 {
        echo(&server, "m", &body([1, 2], &[1.0, 2.0]));
    }
    assert_eq!(counts(&server, "m"), [0, 0, 2]);
    server.wait_for_log("model 'm': 'response_cache' is enabled, but the server has no response");
    assert!(server.stop().success());
}

/// Start lines of Triton's suite that are refused, with the words that it looks for.
#[test]
fn start_lines_that_are_refused() {
    let local = "--cache-config=local,size=8192";
    for (flags, words) in [
        (&[local, "--cache-config=redis,key=value"][..], "multiple cache configurations"),
        (&[local, "--response-cache-byte-size=12345"], "incompatible flags"),
        (&["--cache-config=redis,host=localhost"], "does not have the cache 'redis', only 'local'"),
        (&[local, "--load-model=decoupled"], "response cache does not currently support"),
    ] {
        let decoupled = cached("decoupled", &[]) + "model_transaction_policy { decoupled: true }\n";
        let server = explicit().model("decoupled", decoupled);
        let server = flags.iter().fold(server, |server, flag| server.flag(*flag));
        let ended = server.refuses_to_start();
        assert!(ended.stderr.to_lowercase().contains(words), "{flags:?}: {}", ended.stderr);
    }
}
