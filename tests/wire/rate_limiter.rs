//! The rate limiter: resources limit what executes at the same time, priorities share it, demands
//! that cannot be met are refused, and neither nested requests nor changes of models dead-lock.
//! After the cases of Triton's public suite L0_rate_limiter that need no GPU.
#![allow(clippy::unwrap_used, reason = "what these tests cannot do is a failure")]

use serde_json::{Value, json};
use trtserver_tests::control::{Control, assert_ok};
use trtserver_tests::scheduled::{accumulator, correlation, flag, sequences};
use trtserver_tests::{ENDPOINTS, Endpoint, InferenceClient, Latch, Running, Server, probe};

const ON: &str = "--rate-limit=execution_count";

/// An instance group with this rate limiter.
fn group(limiter: &str) -> String {
    format!("instance_group [ {{ kind: KIND_CPU count: 1 rate_limiter {{ {limiter} }} }} ]\n")
}

fn resource(name: &str, count: u32) -> String {
    format!("resources [ {{ name: \"{name}\" count: {count} }} ]")
}

fn limited(name: &str, parameters: &[(&str, &str)], limiter: &str) -> String {
    probe(name, parameters) + &group(limiter)
}

fn report(server: &Running) -> Value {
    server.get("/v2/trtserver/rate-limiter").json()
}

#[track_caller]
fn rows(report: &Value, key: &str) -> Vec<Value> {
    let rows = report[key].as_array();
    rows.unwrap_or_else(|| panic!("no {key}: {report}")).clone()
}

/// The report of an instance of the model.
fn instance(server: &Running, model: &str) -> Value {
    let instances = rows(&report(server), "instances");
    instances.into_iter().find(|instance| instance["model"] == model).unwrap_or_default()
}

/// The statistics of the limiter of a model with one version.
fn limiter_statistics(server: &Running, model: &str) -> Value {
    let statistics = server.get(&format!("/v2/models/{model}/stats")).json();
    statistics["model_stats"][0]["rate_limiter"].clone()
}

fn is_waiting(server: &Running, model: &str) -> bool {
    instance(server, model).get("waiting_us").is_some()
}

fn all_is_free(server: &Running) -> bool {
    rows(&report(server), "resources").iter().all(|row| row["in_use"] == 0)
}

#[test]
fn resources_limit_what_executes_at_the_same_time() {
    let both =
        "resources [ { name: \"R\" count: 2 }, { name: \"G\" count: 1 global: true } ] priority: 2";
    let isolated = [("isolation", "process")];
    let server = Server::new()
        .flag(ON)
        .model("four", limited("four", &[], &resource("R", 4)))
        .model("two", limited("two", &[], both))
        .model("isolated", limited("isolated", &isolated, &resource("R", 1)))
        .model("other", limited("other", &[], &resource("S", 1)))
        .model("free", probe("free", &[]))
        .start();
    // Enough for inline execution.
    for model in ["four", "two", "isolated"] {
        for _ in 0..20 {
            assert_eq!(server.infer(model, "").status, 200);
        }
    }
    let latch = Latch::new();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(server.infer("four", &latch.parameter()).status, 200));
        latch.wait_for(&server, 1);
        // Both generations, both wires.
        let waiting: Vec<_> = ["two", "isolated"]
            .into_iter()
            .flat_map(|model| ENDPOINTS.map(|endpoint| (model, endpoint)))
            .map(|(model, endpoint)| InferenceClient::send(&server, endpoint, model, [1.0, 2.0]))
            .collect();
        for model in ["two", "isolated"] {
            let sample =
                format!("nv_inference_pending_request_count{{model=\"{model}\",version=\"1\"}}");
            server.poll_until("all requests wait", |s| s.metrics(&sample) == Some(6.0));
            server.poll_until("the instance waits", |server| is_waiting(server, model));
        }
        let two = instance(&server, "two");
        assert_eq!((&two["priority"], &two["executions"]), (&json!(2), &json!(20)));
        assert_eq!(two["waits_for"], json!([{ "name": "R", "device": 0 }]));
        let resources = report(&server)["resources"].clone();
        let held = json!({ "name": "R", "device": 0, "count": 4, "in_use": 4, "holders":
            [{ "model": "four", "version": "1", "instance": "four_0_0_cpu", "count": 4 }] });
        assert_eq!(resources[1], held);
        let statistics = limiter_statistics(&server, "two");
        let waits = &statistics["waiting"];
        assert_eq!((&waits[0]["instance"], &waits[1]), (&two["instance"], &Value::Null));
        assert!(waits[0]["waiting_ns"].as_u64() > Some(0), "{statistics}");
        assert_eq!(waits[0]["waits_for"], json!([held]));
        assert_eq!(statistics["execution_count"], 20);
        assert_eq!(limiter_statistics(&server, "four")["waiting"], json!([]));
        assert_eq!(limiter_statistics(&server, "free"), Value::Null);
        assert_eq!((&resources[0]["name"], &resources[0]["global"]), (&json!("G"), &json!(true)));
        for (sample, value) in [
            (r#"resource_count{device="0",resource="R"}"#, 4.0),
            (r#"resource_in_use{device="0",resource="R"}"#, 4.0),
            (r#"waiting_instances{device="0",model="two",resource="R",version="1"}"#, 1.0),
            (r#"waiting_instances{device="global",model="two",resource="G",version="1"}"#, 0.0),
            (r#"executions_total{model="four",version="1"}"#, 21.0),
            (r#"resource_held{device="0",model="four",resource="R",version="1"}"#, 4.0),
            (r#"resource_held{device="0",model="two",resource="R",version="1"}"#, 0.0),
            (r#"resource_held{device="global",model="two",resource="G",version="1"}"#, 0.0),
        ] {
            let sample = format!("trtserver_rate_limiter_{sample}");
            assert_eq!(server.metrics(&sample), Some(value), "{sample}");
        }
        // Other resources, and models without a demand, are not concerned.
        for model in ["other", "free"] {
            assert_eq!(server.infer(model, "").status, 200);
        }
        latch.open();
        assert!(waiting.into_iter().all(InferenceClient::is_echoed));
    });
    server.poll_until("all is given back", all_is_free);
    assert!(server.stop().success());

    // Without the limiter the configuration has no effect.
    let server = Server::new().model("m", limited("m", &[], &resource("R", 4))).start();
    assert_eq!(report(&server), json!({ "rate_limit": "off" }));
    assert!(!server.metrics_text().contains("rate_limiter"));
    assert!(server.stop().success());
}

#[test]
fn demands_that_cannot_be_met_are_refused() {
    let limited_to = |count: u32| {
        format!(
            "Resource count for \"R\" is limited to {count} which will prevent scheduling of one or more model instances, the minimum required count is 4"
        )
    };
    let conflict = "Resource \"G\" is present as both global and device-specific resource in the model configuration.";
    for (flags, global, reason) in [
        (&["--rate-limit-resource=R:1"][..], "true", &*limited_to(1)),
        (&["--rate-limit-resource=R:3", "--rate-limit-resource=G:2"], "true", &limited_to(3)),
        (&["--rate-limit-resource=R:10:10", "--rate-limit-resource=G:2"], "true", &limited_to(0)),
        (&[], "false", conflict),
    ] {
        let two = |global: &str| {
            format!(
                "resources [ {{ name: \"R\" count: 2 }}, {{ name: \"G\" count: 2 global: {global} }} ]"
            )
        };
        let server = Server::new()
            .flag(ON)
            .model("four", limited("four", &[], &resource("R", 4)))
            .model("two", limited("two", &[], &two("true")))
            .model("three", limited("three", &[], &two(global)));
        let server = flags.iter().fold(server, |server, flag| server.flag(*flag));
        let ended = server.refuses_to_start();
        // The log escapes quotes.
        let log = ended.stderr.replace("\\\"", "\"");
        assert!(log.contains(reason), "{flags:?}: {log}");
    }
    // Instances of one model: the smaller demand could be met.
    let groups = "instance_group [ { kind: KIND_CPU count: 1 rate_limiter { resources [ { name: \"R\" count: 4 } ] } }, \
                  { kind: KIND_CPU count: 1 rate_limiter { resources [ { name: \"R\" count: 2 } ] } } ]\n";
    let ended = Server::new()
        .flag(ON)
        .flag("--rate-limit-resource=R:3")
        .model("m", probe("m", &[]) + groups)
        .refuses_to_start();
    assert!(ended.stderr.replace("\\\"", "\"").contains(&limited_to(3)), "{}", ended.stderr);
    // The same model with enough for it.
    let server = Server::new()
        .flag(ON)
        .flag("--rate-limit-resource=R:4")
        .flag("--rate-limit-resource=R:9:7")
        .model("four", limited("four", &[], &resource("R", 4)))
        .start();
    assert_eq!(report(&server)["resources"][0]["count"], 4);
    assert!(server.stop().success());
}

/// The demands of the models of Triton's suite: R is enough for both at once if there are 6 of it.
const FOUR: &str = "resources [ { name: \"R\" count: 4 } ]";
const TWO: &str =
    "resources [ { name: \"R\" count: 2 }, { name: \"G\" count: 2 global: true } ] priority: 2";

/// With the largest demand of a model, which is the default, and with as much given.
#[test]
fn priorities_share_executions() {
    for flags in [&[][..], &["--rate-limit-resource=R:4", "--rate-limit-resource=G:2"]] {
        share_executions(flags);
    }
}

fn share_executions(flags: &[&str]) {
    let model = |name: &str, limiter: &str| {
        limited(name, &[("log_lines", "1"), ("log_text", name)], limiter)
    };
    let server = flags.iter().fold(Server::new().flag(ON), |server, flag| server.flag(*flag));
    let server = server
        .model("busy", limited("busy", &[], FOUR))
        .model("one", model("one", FOUR))
        .model("two", model("two", TWO))
        .start();
    let latch = Latch::new();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(server.infer("busy", &latch.parameter()).status, 200));
        latch.wait_for(&server, 1);
        let clients = ["one", "two"]
            .map(|model| InferenceClient::send_many(&server, Endpoint::StreamV2, model, 60));
        for model in ["one", "two"] {
            all_wait(&server, model, 60);
            server.poll_until("the instance waits", |server| is_waiting(server, model));
        }
        latch.open();
        server.poll_until("all are executed", |server| server.logged_names().len() == 120);
        drop(clients);
    });
    let order = server.logged_names();
    let twos = order.iter().take(60).filter(|model| *model == "two").count();
    // Smaller numbers have the larger share: 40 to 20.
    assert!((19..=21).contains(&twos), "{order:?}");
    assert!(server.stop().success());
}

#[track_caller]
fn all_wait(server: &Running, model: &str, requests: u32) {
    let sample = format!("nv_inference_pending_request_count{{model=\"{model}\",version=\"1\"}}");
    server.poll_until("all requests wait", |server| {
        server.metrics(&sample) == Some(f64::from(requests))
    });
}

/// Two models, and two instances of one model.
#[test]
fn plenty_of_a_resource_lets_both_execute_at_once() {
    let groups = format!(
        "instance_group [ {{ kind: KIND_CPU count: 1 rate_limiter {{ {FOUR} }} }}, \
         {{ kind: KIND_CPU count: 1 rate_limiter {{ {TWO} }} }} ]\n"
    );
    for (resource, at_once) in [(4, false), (6, true)] {
        let server = Server::new()
            .flag(ON)
            .flag(format!("--rate-limit-resource=R:{resource}"))
            .flag("--rate-limit-resource=G:2")
            .model("four", limited("four", &[], FOUR))
            .model("two", limited("two", &[], TWO))
            .model("instances", probe("instances", &[]) + &groups)
            .start();
        for models in [["four", "two"], ["instances", "instances"]] {
            let (first, second) = (Latch::new(), Latch::new());
            std::thread::scope(|scope| {
                let hold = |model, latch: &Latch| {
                    let (server, parameter) = (&server, latch.parameter());
                    scope.spawn(move || assert_eq!(server.infer(model, &parameter).status, 200));
                };
                let is_held = |latch: &Latch| {
                    server.wait_for_log_with(&["the probe waits for the file", &latch.path()]);
                };
                hold(models[0], &first);
                is_held(&first);
                hold(models[1], &second);
                if at_once {
                    is_held(&second);
                } else {
                    all_wait(&server, models[1], 1);
                    server.poll_until("an instance waits", |server| {
                        rows(&report(server), "instances")
                            .iter()
                            .any(|of| of["model"] == models[1] && of.get("waiting_us").is_some())
                    });
                }
                first.open();
                second.open();
            });
        }
        assert!(server.stop().success());
    }
}

#[test]
fn nested_requests_do_not_dead_lock() {
    let r = resource("R", 1);
    let calls = |model| [("infer", model)];
    let server = Server::new()
        .flag(ON)
        .model("outer", limited("outer", &calls("middle"), &r))
        .model("middle", limited("middle", &calls("inner"), &r))
        .model("inner", limited("inner", &[("delay_ms", "2")], &r))
        .model("detached", limited("detached", &[("infer", "inner"), ("detach", "true")], &r))
        .model(
            "isolated",
            limited("isolated", &[("infer", "middle"), ("isolation", "process")], &r),
        )
        .model("many", limited("many", &[], &r) + "model_transaction_policy { decoupled: true }\n")
        .model("streams", limited("streams", &[("infer", "many"), ("infer_responses", "5")], &r))
        .model(
            "ensemble",
            trtserver_tests::control::pair("outer").replace("\"pair\"", "\"ensemble\""),
        )
        .start();
    let models = ["outer", "middle", "detached", "isolated", "streams", "ensemble"];
    for model in models {
        assert_eq!(server.infer(model, "").status, 200, "{model}");
    }
    std::thread::scope(|scope| {
        for model in models.into_iter().cycle().take(12) {
            let server = &server;
            scope.spawn(move || {
                for _ in 0..15 {
                    let response = server.infer(model, "");
                    assert_eq!(response.status, 200, "{model}: {}", response.text());
                }
            });
        }
    });
    server.poll_until("all is given back", all_is_free);
    // The resource limits the parts of executions that do not wait for others.
    let latch = Latch::new();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(server.infer("inner", &latch.parameter()).status, 200));
        latch.wait_for(&server, 1);
        scope.spawn(|| assert_eq!(server.infer("outer", "").status, 200));
        server.poll_until("the outer model waits", |server| is_waiting(server, "outer"));
        latch.open();
    });
    assert!(server.stop().success());
}

#[test]
fn models_change_and_requests_leave_while_instances_wait() {
    let r = resource("R", 1);
    let server = trtserver_tests::control::explicit()
        .flag(ON)
        .flag("--load-model=*")
        .model("busy", limited("busy", &[], &r))
        .model("reloaded", limited("reloaded", &[], &r))
        .model("unloaded", limited("unloaded", &[], &r))
        .model("left", limited("left", &[], &r))
        .start();
    let latch = Latch::new();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(server.infer("busy", &latch.parameter()).status, 200));
        latch.wait_for(&server, 1);
        let send = |model| InferenceClient::send(&server, Endpoint::GrpcV2, model, [1.0, 2.0]);
        let clients = ["reloaded", "unloaded"].map(send);
        let leaving = ENDPOINTS.map(|e| InferenceClient::send(&server, e, "left", [1.0, 2.0]));
        for model in ["reloaded", "unloaded", "left"] {
            server.poll_until("the instance waits", |server| is_waiting(server, model));
        }
        let pending = "nv_inference_pending_request_count{model=\"left\",version=\"1\"}";
        server.poll_until("all six wait", |server| server.metrics(pending) == Some(6.0));
        drop(leaving);
        server.poll_until("nobody waits for it", |server| !is_waiting(server, "left"));
        assert_eq!(server.metrics(pending), Some(0.0));
        // The demand of the new version is larger, and both versions are open for a while.
        let changed = limited("reloaded", &[], &resource("R", 2)) + "max_batch_size: 4\n";
        let changed = changed.replacen("max_batch_size: 8\n", "", 1);
        server.models().file("reloaded/config.pbtxt", changed);
        assert_ok(server.load("reloaded"));
        assert_ok(server.unload("unloaded"));
        latch.open();
        assert!(clients.into_iter().all(InferenceClient::is_echoed));
    });
    assert_eq!(server.infer("reloaded", "").status, 200);
    server.poll_until("the old version is gone", |server| {
        report(server)["instances"].as_array().unwrap().len() == 3
    });
    assert_eq!(report(&server)["resources"][0]["count"], 2);
    // Only the instance group changes: instances are replaced while the version serves.
    let fewer = limited("left", &[], &resource("Q", 3));
    server.models().file("left/config.pbtxt", fewer);
    assert_ok(server.load("left"));
    server.poll_until("the old instance is gone", |server| {
        instance(server, "left")["demand"] == json!([{ "name": "Q", "device": 0, "count": 3 }])
    });
    assert_eq!(server.infer("left", "").status, 200);
    server.poll_until("all is given back", all_is_free);
    assert!(server.stop().success());
}

#[test]
fn batches_grow_while_instances_wait_and_sequences_stay() {
    let two = |first: u32| {
        format!(
            "instance_group [ {{ kind: KIND_CPU count: 1 rate_limiter {{ {} }} }}, \
             {{ kind: KIND_CPU count: 1 rate_limiter {{ resources [ {{ name: \"R\" count: 2 }}, \
             {{ name: \"G\" count: 2 global: true }} ] priority: 2 }} }} ]\n",
            resource("R", first)
        )
    };
    let batched = "dynamic_batching { preferred_batch_size: [ 1, 2, 3, 4 ] max_queue_delay_microseconds: 5000000 }\n";
    let batched = (probe("batched", &[("delay_ms", "1")]) + &two(4) + batched).replacen(
        "max_batch_size: 8",
        "max_batch_size: 4",
        1,
    );
    let controls = [flag("START", "int32"), flag("READY", "int32"), correlation("UINT64")];
    let sequence = sequences("60000000", "direct { }", &controls) + &two(4);
    let server = Server::new()
        .flag(ON)
        .env("TRITONSERVER_DELAY_SCHEDULER", "8")
        .model("batched", batched)
        .start();
    let clients: Vec<_> = (0..2)
        .map(|_| InferenceClient::send_many(&server, Endpoint::StreamV2, "batched", 40))
        .collect();
    let count = r#"nv_inference_count{model="batched",version="1"}"#;
    server.poll_until("all are executed", |server| server.metrics(count) == Some(80.0));
    drop(clients);
    // One instance at a time: every batch is full, although each size is preferred.
    let stats = server.get("/v2/models/batched/stats").json();
    let sizes = &stats["model_stats"][0]["batch_stats"];
    assert_eq!(
        (sizes.as_array().unwrap().len(), &sizes[0]["batch_size"]),
        (1, &json!(4)),
        "{stats}"
    );
    assert!(server.stop().success());

    let server =
        Server::new().flag(ON).model("sum", accumulator("sum", 1, "slot", &sequence)).start();
    let step = |id: u32, value: i32, flags: &str| {
        let body = format!(
            r#"{{"parameters":{{"sequence_id":{id}{flags}}},"inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[{value}]}}],"outputs":[{{"name":"OUTPUT0"}}]}}"#
        );
        let response = server.post("/v2/models/sum/infer", &[], body);
        assert_eq!(response.status, 200, "{}", response.text());
        response.json()["outputs"][0]["data"][0].as_i64().unwrap()
    };
    std::thread::scope(|scope| {
        // The second sequence is on the instance with the larger number.
        for id in [1, 2] {
            scope.spawn(move || {
                let mut sum = step(id, 1, r#","sequence_start":true"#);
                let begin = sum;
                for value in 2..9 {
                    sum = step(id, value, "");
                }
                sum = step(id, 9, r#","sequence_end":true"#).max(sum);
                assert_eq!(sum - begin, 44);
            });
        }
    });
    server.poll_until("all is given back", all_is_free);
    assert!(server.stop().success());
}
