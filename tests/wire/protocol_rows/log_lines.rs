//! docs/protocol/v1.md §6.6, §8.3 and v2.md §2.18, §3.7: lines of the log that tests and tools look
//! for.

use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::scheduled::{NEVER, accumulator, correlation, flag, sequences};
use trtserver_tests::{Server, probe};

#[test]
fn changes_of_a_model() {
    let server = explicit().model("m", probe("m", &[])).start();
    assert_ok(server.load("m"));
    server.models().file("m/config.pbtxt", probe("m", &[("fail", "x")]));
    assert_ok(server.load("m"));
    assert_ok(server.unload("m"));
    for line in [
        "New status tracking for model 'm'",
        "loading: m:1",
        "successfully loaded 'm' version 1",
        "Updating config for model 'm'",
        "re-loading: m:1",
        "unloading: m:1",
        "successfully unloaded 'm' version 1",
    ] {
        server.wait_for_log(line);
    }
    server.models().file("m/config.pbtxt", probe("m", &[("fail_in", "model_open")]));
    assert_eq!(server.load("m").status, 400);
    server.wait_for_log("failed to load 'm' version 1: Internal: ");
    assert!(server.stop().success());
}

#[test]
fn failed_start() {
    let failing = probe("m", &[("fail_in", "model_open")]);
    let ended = Server::new().model("m", failing).refuses_to_start();
    for line in ["failed to load 'm' version 1: ", "failed to load all models"] {
        assert!(ended.stderr.contains(line), "{line}: {}", ended.stderr);
    }
    assert_eq!(ended.code(), 1);
}

/// START on a sequence that has not ended: a warning, and the sequence begins anew.
#[test]
fn start_of_a_running_sequence() {
    let controls = [flag("START", "int32"), correlation("UINT64")];
    let scheduling = sequences(NEVER, "direct { }", &controls);
    let server = Server::new().model("sums", accumulator("sums", 4, "slot", &scheduling)).start();
    let header = r#"batch_size: 1 correlation_id: 7 flags: 1 input { name: "INPUT0" dims: 1 } output { name: "OUTPUT0" }"#;
    for _ in 0..2 {
        let headers = [("NV-InferRequest", header)];
        let response = server.post("/api/infer/sums", &headers, 5i32.to_le_bytes());
        assert_eq!((response.status, &response.body[..4]), (200, &5i32.to_le_bytes()[..]));
    }
    server.wait_for_log(
        "sequence 7 for model 'sums' has a conflict. The previous sequence did not end before this sequence start. Previous \
         sequence will be terminated early.",
    );
    assert!(server.stop().success());
}
