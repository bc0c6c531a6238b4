//! Polling of a repository in an object store.

use super::{cache, put_model, server};
use trtserver_tests::control::Control;
use trtserver_tests::fake_gcs::{FakeGcs, Fault};

#[test]
fn changes_are_found_and_a_failing_listing_unloads_nothing() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    put_model(&gcs, "other");
    let cache = cache();
    let server = server(&gcs, &cache)
        .flag("--model-control-mode=poll")
        .flag("--repository-poll-secs=1")
        .flag("--repository-settle-secs=0")
        .start();
    assert!(server.serves("m") && server.serves("other"));
    let ready = |path: &str| server.get(path).status == 200;

    gcs.put("models/m/2/weights", "two");
    server.poll_until("version 2 is served", |_| ready("/v2/models/m/versions/2/ready"));
    assert!(server.serves("other"));

    gcs.fail("list", Fault::Status(503, "SlowDown"));
    server.wait_for_log("503");
    assert!(server.serves("m") && server.serves("other"));
    gcs.repair();

    for key in ["config.pbtxt", "1/weights", "2/weights"] {
        gcs.delete(&format!("models/m/{key}"));
    }
    server.poll_until("'m' is removed", |_| !ready("/v2/models/m/ready"));
    assert!(server.serves("other"));
}
