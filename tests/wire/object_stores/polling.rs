//! Polling of a repository in an object store.

use super::{cache, put_model, server};
use tempfile::TempDir;
use trtserver_tests::Server;
use trtserver_tests::control::Control;
use trtserver_tests::fake_gcs::{FakeGcs, Fault};

fn polling(gcs: &FakeGcs, cache: &TempDir) -> Server {
    server(gcs, cache)
        .flag("--model-control-mode=poll")
        .flag("--repository-poll-secs=1")
        .flag("--repository-settle-secs=0")
}

#[test]
fn changes_are_found_and_a_failing_listing_unloads_nothing() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    put_model(&gcs, "other");
    let cache = cache();
    let server = polling(&gcs, &cache).start();
    assert!(server.serves("m") && server.serves("other"));
    let ready = |path: &str| server.get(path).status == 200;

    gcs.put("models/m/2/weights", "two");
    server.poll_until("version 2 is served", |_| ready("/v2/models/m/versions/2/ready"));
    assert!(server.serves("other"));

    gcs.fail("list", Fault::Status(503, "SlowDown"));
    server.wait_for_log_with(&["Failed to poll model repository", "503"]);
    assert!(server.serves("m") && server.serves("other"));
    gcs.repair();
    server.wait_for_log("can be polled again");
    // An error is not a change.
    let log = server.log();
    assert!(!log.contains("failed to load") && !log.contains("re-loading: other"), "{log}");
    assert_eq!(log.matches("successfully loaded 'm' version 1").count(), 1, "{log}");

    for key in ["config.pbtxt", "1/weights", "2/weights"] {
        gcs.delete(&format!("models/m/{key}"));
    }
    server.poll_until("'m' is removed", |_| !ready("/v2/models/m/ready"));
    assert!(server.serves("other"));
}

/// With `--exit-on-error=false` the server starts without the models of a repository that it cannot
/// list, and is ready once it has listed and loaded them.
#[test]
fn server_is_ready_once_a_repository_that_failed_at_start_is_listed() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    gcs.fail("list", Fault::Status(403, "AccessDenied"));
    let cache = cache();
    let server = polling(&gcs, &cache).flag("--exit-on-error=false").launch();
    server.poll_until("the start has ended", |server| {
        server.get("/v2/trtserver/health").json()["started"] == true
    });
    let reason = server.get("/v2/trtserver/health").json()["reason"].to_string();
    assert!(reason.contains("could not be listed") && reason.contains("403"), "{reason}");
    assert_eq!(server.get("/v2/health/ready").status, 400);
    assert_eq!(server.get("/api/health/ready").status, 400);
    gcs.repair();
    server.poll_until("the server is ready", |server| server.get("/v2/health/ready").status == 200);
    assert!(server.serves("m"));
}

#[test]
fn models_are_listed_together_and_downloaded_in_parallel() {
    let gcs = FakeGcs::start();
    for name in ["m1", "m2", "m3", "m4"] {
        put_model(&gcs, name);
    }
    gcs.put("models/.git/config", "no model");
    gcs.put("models/m5.tmp/config.pbtxt", "no model");
    // Requests wait for each other: the load at start ends only if it sends them in parallel.
    gcs.fail("/1/weights", Fault::Hold);
    let cache = cache();
    let server = polling(&gcs, &cache).flag("--model-load-thread-count=4").launch();
    gcs.wait_for_requests("/1/weights", 4);
    gcs.repair();
    server.poll_until("the models serve", |server| {
        ["m1", "m2", "m3", "m4"].iter().all(|name| server.serves(name))
    });
    let (all, single) = (gcs.requests("list models/"), gcs.requests("list models/m"));
    // Eight files of four models and two that are not models, three on a page.
    gcs.wait_for_requests("list models/", all + 2 * 4);
    assert_eq!(gcs.requests("list models/m"), single, "models are listed one by one");
    assert!(!server.index().to_string().contains("tmp"), "{}", server.index());
}

#[test]
fn failed_download_is_tried_again_at_the_next_poll() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    let cache = cache();
    let server = polling(&gcs, &cache).flag("--store-timeout-secs=1").start();
    gcs.fail("models/m/1/", Fault::Status(503, "SlowDown"));
    gcs.put("models/m/1/weights", "new");
    server.wait_for_log("failed to load 'm'");
    assert!(server.serves("m"));
    gcs.repair();
    server.poll_until("the new version serves", |server| {
        server.log().contains("re-loading: m:1") && server.index()[0]["reason"].is_null()
    });
    assert!(server.serves("m"));
}
