//! Stores and uploaders that mean harm: odd keys, listings and responses without an end, redirects
//! to other hosts, contents that are not those that were listed.

use super::{cache, put_model, server};
use std::time::{Duration, Instant};
use trtserver_tests::control::{Control, assert_ok};
use trtserver_tests::fake_gcs::{FakeGcs, Fault};
use trtserver_tests::{Running, probe};

/// What a page of 3 GB or thousands of pages would exceed.
const GROWTH_KIB: u64 = 100 << 10;

#[test]
fn odd_key_concerns_its_model_only() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    put_model(&gcs, "other");
    // In no model: `/x` and a model without a name.
    gcs.put("models//x", "x");
    gcs.put("models//1/weights", "x");
    let cache = cache();
    let server = server(&gcs, &cache)
        .flag("--model-control-mode=poll")
        .flag("--repository-poll-secs=1")
        .flag("--repository-settle-secs=0")
        .start();
    assert!(server.serves("m") && server.serves("other"));
    server.wait_for_log("2 keys are ignored");

    gcs.put("models/bad//x", "x");
    gcs.put("models/bad/config.pbtxt", probe("bad", &[]));
    gcs.put("models/bad/1/weights", "w");
    gcs.put("models/m/2//weights", "w");
    server.wait_for_log_with(&["failed to load 'bad'", "bad//x"]);
    server.wait_for_log_with(&["failed to load 'm'", "m/2//weights"]);
    assert!(server.serves("m") && server.serves("other") && !server.serves("bad"));

    // The others are still polled.
    gcs.put("models/new/config.pbtxt", probe("new", &[]));
    gcs.put("models/new/1/weights", "w");
    server.poll_until("'new' serves", |server| server.serves("new"));
    gcs.delete("models/bad//x");
    server.poll_until("'bad' serves without its odd key", |server| server.serves("bad"));
    assert!(server.serves("m") && server.serves("other"));
}

#[test]
fn listings_without_an_end_are_refused() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    let cache = cache();
    // Longer than the test may take.
    let server = server(&gcs, &cache).flag("--store-timeout-secs=600").start();
    assert_ok(server.load("m"));
    let before = server.resident_kib();
    let page =
        |entries: &str| Fault::Body(format!("<ListBucketResult>{entries}</ListBucketResult>"));
    let entry = "<Contents><Key>models/m/k</Key><Size>1</Size>\
                 <LastModified>2026-11-22T00:00:00.000Z</LastModified></Contents>";
    for (fault, reason) in [
        (
            page("<NextContinuationToken>again</NextContinuationToken>"),
            "repeats a continuation token",
        ),
        (Fault::Flood, "longer than 16777216 bytes"),
        (page(&entry.repeat(100_001)), "more than 100000 keys"),
    ] {
        gcs.fail("list", fault);
        let start = Instant::now();
        let refused = server.load("m");
        assert_eq!(refused.status, 500, "{}", refused.text());
        server.wait_for_log_with(&["list gs://bucket/models/", reason]);
        assert!(start.elapsed() < Duration::from_secs(30), "{reason}: {:?}", start.elapsed());
        gcs.repair();
    }
    let growth = server.resident_kib().saturating_sub(before);
    assert!(growth < GROWTH_KIB, "{growth} KiB");
    assert!(server.serves("m"));
    assert_ok(server.load("m"));
}

#[test]
fn redirects_to_other_hosts_are_not_followed() {
    let [gcs, other] = [(); 2].map(|()| FakeGcs::start());
    for store in [&gcs, &other] {
        put_model(store, "m");
    }
    let cache = cache();
    let server = server(&gcs, &cache).start();
    let place = |store: &FakeGcs, key: &str| {
        Fault::Redirect(format!("http://{}/bucket{key}", store.address()))
    };
    let address = other.address().to_string();
    let refusal = ["another host", &address];
    gcs.fail("models/m/1/", place(&other, "/models/m/1/weights"));
    let text = server.load("m").error_text();
    assert!(refusal.iter().all(|part| text.contains(part)), "{text}");
    assert!(!server.serves("m"));
    gcs.repair();
    gcs.fail("list", place(&other, "?list-type=2"));
    assert_eq!(server.load("m").status, 500);
    server.wait_for_log_with(&["list gs://bucket/models/", "another host", &address]);
    gcs.repair();
    assert_eq!(other.requests(""), 0);
    // One to another path of the same store is.
    gcs.put("elsewhere/weights", "m".repeat(100));
    gcs.fail("models/m/1/", place(&gcs, "/elsewhere/weights"));
    gcs.fail("elsewhere/", Fault::Tag("2"));
    assert_ok(server.load("m"));
    assert!(server.serves("m"));
}

#[test]
fn content_with_another_tag_than_listed_is_refused() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    gcs.fail("models/m/1/", Fault::Tag("forged"));
    let cache = cache();
    let server = server(&gcs, &cache).start();
    let text = server.load("m").error_text();
    assert!(text.contains("ETag") && text.contains("forged"), "{text}");
    assert!(!server.serves("m"));
    gcs.repair();
    assert_ok(server.load("m"));
}

#[test]
fn listing_that_does_not_end_delays_no_listener() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    gcs.fail("list", Fault::Hold);
    let cache = cache();
    let server = server(&gcs, &cache)
        .flag("--model-control-mode=poll")
        .flag("--store-timeout-secs=600")
        .launch();
    let status = |server: &Running, path: &str| server.get(path).status;
    gcs.wait_for_request("list");
    assert_eq!(status(&server, "/v2/health/live"), 200);
    assert_ne!(status(&server, "/v2/health/ready"), 200);
    assert!(!server.metrics_text().is_empty());
    gcs.repair();
    server.wait_until_ready();
    assert!(server.serves("m"));
}
