//! Stores that fail: a reason per model, and everything else keeps serving.

use super::{cache, put_model, server};
use std::time::Instant;
use trtserver_tests::control::{Control, assert_ok};
use trtserver_tests::fake_gcs::{FakeGcs, Fault};

#[test]
fn each_fault_fails_its_model_with_the_reason_and_no_other() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "good");
    let faults = [
        ("forbidden", Fault::Status(403, "AccessDenied"), "403"),
        ("overloaded", Fault::Status(503, "SlowDown"), "503"),
        ("stalled", Fault::Stall, "stalled/1/weights"),
        ("truncated", Fault::Truncate, "truncated/1/weights"),
        ("expired", Fault::Status(401, "ExpiredToken"), "401"),
    ];
    for (model, fault, _) in &faults {
        put_model(&gcs, model);
        // The configuration is sent: credentials expire midway.
        gcs.fail(&format!("{model}/1/"), fault.clone());
    }
    let cache = cache();
    let server = server(&gcs, &cache).start();
    assert_ok(server.load("good"));
    for (model, _, reason) in &faults {
        let start = Instant::now();
        let refused = server.load(model);
        assert_eq!(refused.status, 400, "{model}");
        let text = refused.error_text();
        assert!(text.contains(reason) && text.contains(model), "{model}: {text}");
        assert!(!server.serves(model) && server.serves("good"));
        assert!(start.elapsed().as_secs() < 60, "{model}: {:?}", start.elapsed());
    }
    gcs.repair();
    for (model, ..) in &faults {
        assert_ok(server.load(model));
        assert!(server.serves(model), "{model}");
    }
}

#[test]
fn short_outage_is_bridged_by_retries() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    let cache = cache();
    let server = server(&gcs, &cache).start();
    gcs.fail("models/m/1/", Fault::Times(2, 503));
    assert_ok(server.load("m"));
    assert_eq!(gcs.requests("models/m/1/weights"), 3);
}

#[test]
fn failing_listing_unloads_nothing() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    let cache = cache();
    let server = server(&gcs, &cache).start();
    assert_ok(server.load("m"));
    gcs.fail("list", Fault::Status(403, "AccessDenied"));
    assert_eq!(server.load("m").status, 500);
    assert!(server.serves("m"));
    assert!(server.index().to_string().contains("\"READY\""), "{}", server.index());
    // More than the number, which may be part of a port.
    let log = server.wait_for_log("403 Forbidden");
    assert!(log.contains("list gs://bucket/models/"), "{log}");
}

#[test]
fn unload_request_breaks_off_a_stalled_download() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    gcs.fail("models/m/1/", Fault::Stall);
    let cache = cache();
    // The timeout is longer than the test may take.
    let server = server(&gcs, &cache).flag("--store-timeout-secs=600").start();
    std::thread::scope(|scope| {
        let load = scope.spawn(|| server.load("m"));
        gcs.wait_for_request("models/m/1/weights");
        assert_ok(server.unload("m"));
        let text = load.join().unwrap().error_text();
        assert!(text.contains("broken off"), "{text}");
    });
}
