//! Loading and unloading under traffic: inference, concurrent changes, disconnects, shutdown.

use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use trtserver_tests::control::{Control, assert_ok, explicit, pair, ready, unloaded};
use trtserver_tests::http1::request;
use trtserver_tests::{Latch, LoadGate, Response, Running, SetOnDrop, Signal, inference, probe};

/// Sends requests to `model` on two connections until `end`. Each connection always has one in
/// flight; `check` sees every response.
fn send_until(server: &Running, model: &str, end: &AtomicBool, check: impl Fn(Response) + Sync) {
    let bytes = inference(model, "");
    let one = || {
        let mut connection = server.connect();
        while !end.load(Ordering::Relaxed) {
            check(connection.send(&bytes).response());
        }
    };
    thread::scope(|scope| {
        scope.spawn(one);
        scope.spawn(one);
    });
}

/// Waits until one more response was counted.
#[track_caller]
fn one_more(server: &Running, what: &str, count: &AtomicUsize) {
    let before = count.load(Ordering::Relaxed);
    server.poll_until(what, |_| count.load(Ordering::Relaxed) > before);
}

#[test]
fn no_request_fails_while_its_model_is_reloaded() {
    const RELOADS: usize = 30;
    // Responses identify their configuration: every second one has the output BATCH.
    let config = |round: usize| {
        let number = round.to_string();
        if round.is_multiple_of(2) {
            return probe("m", &[("round", &number)]);
        }
        let config = probe("m", &[("round", &number), ("report_batch", "true")]);
        config
            + "output { name: \"BATCH\" data_type: TYPE_INT32 dims: 2 }
"
    };
    let server =
        explicit().model("m", config(0)).model("pair", pair("m")).flag("--load-model=pair").start();
    assert!(!server.log().contains("re-loading"));
    let end = AtomicBool::new(false);
    let by_model: [AtomicUsize; 2] = Default::default();
    let by_ensemble = AtomicUsize::new(0);
    thread::scope(|scope| {
        let _end = SetOnDrop(&end);
        scope.spawn(|| {
            send_until(&server, "m", &end, |response| {
                assert_eq!(response.status, 200, "{}", response.text());
                let odd = response.text().contains("BATCH");
                by_model[usize::from(odd)].fetch_add(1, Ordering::Relaxed);
            });
        });
        scope.spawn(|| {
            send_until(&server, "pair", &end, |response| {
                assert_eq!(response.status, 200, "{}", response.text());
                by_ensemble.fetch_add(1, Ordering::Relaxed);
            });
        });
        for round in 1..=RELOADS {
            server.models().file("m/config.pbtxt", config(round));
            assert_ok(server.load("m"));
            one_more(&server, "a response of the new configuration", &by_model[round % 2]);
            one_more(&server, "a response of the ensemble", &by_ensemble);
        }
    });
    assert_eq!(server.log().matches("re-loading: m:1").count(), RELOADS);
    assert!(server.stop().success());
}

#[test]
fn every_request_gets_a_response_while_its_model_is_unloaded_and_loaded() {
    let server = explicit()
        .model("m", probe("m", &[]))
        .model("other", probe("other", &[]))
        .flag("--load-model=*")
        .start();
    let end = AtomicBool::new(false);
    let (served, not_found) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let _end = SetOnDrop(&end);
        scope.spawn(|| {
            send_until(&server, "m", &end, |response| {
                let count = match response.status {
                    200 => &served,
                    404 => &not_found,
                    status => panic!("m: {status} {}", response.text()),
                };
                count.fetch_add(1, Ordering::Relaxed);
            });
        });
        scope.spawn(|| {
            send_until(&server, "other", &end, |response| {
                assert_eq!(response.status, 200, "{}", response.text());
            });
        });
        for _ in 0..30 {
            assert_ok(server.unload("m"));
            one_more(&server, "a refusal", &not_found);
            assert_ok(server.load("m"));
            one_more(&server, "a response", &served);
        }
    });
    assert!(server.stop().success());
}

#[test]
fn changes_of_one_model_are_serialized() {
    let server = explicit().model("m", probe("m", &[])).model("n", probe("n", &[])).start();
    thread::scope(|scope| {
        for i in 0..16 {
            let server = &server;
            let model = if i % 2 == 0 { "m" } else { "n" };
            scope.spawn(move || {
                for _ in 0..5 {
                    assert_ok(server.load(model));
                    assert_ok(server.unload(model));
                }
            });
        }
    });
    server.wait_for_index(&json!([unloaded("m"), unloaded("n")]));
    assert_ok(server.load("m"));
    assert!(server.serves("m"));
    assert!(server.stop().success());
}

#[test]
fn unload_does_not_wait_for_requests() {
    let latch = Latch::new();
    let (key, path) = latch.config();
    let server = explicit().model("m", probe("m", &[(key, &path)])).flag("--load-model=m").start();
    let mut running = server.connect();
    running.send(inference("m", ""));
    let mut queued = server.connect();
    queued.send(inference("m", ""));
    let pending = r#"nv_inference_pending_request_count{model="m",version="1"}"#;
    latch.wait_for(&server, 1);
    server.poll_until("the other is queued", |s| s.metrics(pending) == Some(1.0));
    assert_ok(server.unload("m"));
    let entry = &server.index()[0];
    assert_eq!(entry["state"], "UNLOADING", "{entry}");
    assert_eq!(server.infer("m", "").status, 404);
    // A model may be loaded again before its old version has closed.
    assert_ok(server.load("m"));
    assert_eq!(server.index(), json!([ready("m")]));
    latch.open();
    assert_eq!((running.response().status, queued.response().status), (200, 200));
    assert!(server.stop().success());
}

#[test]
fn load_completes_after_disconnect() {
    let server = explicit().gated_model().model("m", probe("m", &[])).start();
    let load = request("POST", "/v2/repository/models/gated/load", &[], b"");
    let mut leaving = server.connect();
    leaving.send(&load);
    let gate = LoadGate::reach(&server);
    drop(leaving);
    // Changes of one model are queued; other models and endpoints are not blocked.
    let mut waiting: Vec<_> = (0..20).map(|_| server.connect()).collect();
    let unload = request("POST", "/v2/repository/models/gated/unload", &[], b"");
    for connection in &mut waiting {
        connection.send(&unload);
    }
    assert_ok(server.load("m"));
    assert!(server.serves("m") && !server.serves("gated"));
    assert_ok(server.unload("m"));
    gate.open();
    for connection in waiting {
        assert_ok({ connection }.response());
    }
    // The load completed before the first unload.
    server.wait_for_log("successfully loaded 'gated' version 1");
    server.wait_for_log("successfully unloaded 'gated' version 1");
    server.wait_for_index(&json!([unloaded("gated"), unloaded("m")]));
}

#[test]
fn sigterm_during_requested_load() {
    let server = explicit().gated_model().model("m", probe("m", &[])).start();
    let load = request("POST", "/v2/repository/models/gated/load", &[], b"");
    let mut waiting = server.connect();
    waiting.send(&load);
    // Other models are not blocked.
    assert_ok(server.load("m"));
    assert!(server.serves("m"));
    let gate = LoadGate::reach(&server);
    server.signal(Signal::TERM);
    server.wait_for_log("Waiting for in-flight inferences");
    gate.open();
    let response = waiting.response();
    assert_eq!(response.status, 503, "{}", response.text());
    assert!(server.wait().status.success());
}

#[test]
fn load_and_unload_leak_no_memory() {
    let server = explicit().copy_model("tests/models/addsub_fp32").start();
    let cycle = |n: usize| {
        for _ in 0..n {
            assert_ok(server.load("addsub_fp32"));
            assert_ok(server.unload("addsub_fp32"));
        }
        server.resident_kib()
    };
    let before = cycle(50);
    let after = cycle(150);
    assert!(after < before + 4 * 1024, "{before} KiB after 50 rounds, {after} KiB after 200");
    server.wait_for_index(&json!([unloaded("addsub_fp32")]));
    for i in 0..500 {
        assert_eq!(server.load(&format!("no{i}")).status, 500);
        assert_ok(server.unload(&format!("no{i}")));
    }
    assert_eq!(server.index().as_array().map(Vec::len), Some(1));
    assert!(server.stop().success());
}
