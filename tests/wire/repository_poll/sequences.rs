//! Sequences of versions that are reloaded: an unchanged version keeps them, a replaced one lets
//! them end.

use serde_json::{Value, json};
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::polling::{Polled, numbered_sums, polling};
use trtserver_tests::scheduled::NEVER;
use trtserver_tests::{Response, Running};

const START: &str = r#","sequence_start":true"#;
const END: &str = r#","sequence_end":true"#;

fn send(server: &Running, path: &str, id: u64, flags: &str) -> Response {
    let body = format!(
        r#"{{"parameters":{{"sequence_id":{id}{flags}}},
            "inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[1]}}]}}"#
    );
    server.post(&format!("/v2/models/{path}/infer"), &[], body)
}

/// The version that responds to a step of 1, and the sum.
#[track_caller]
fn step(server: &Running, path: &str, id: u64, flags: &str) -> (String, i64) {
    let response = send(server, path, id, flags);
    assert_eq!(response.status, 200, "{}", response.text());
    let json = response.json();
    let sum = json["outputs"].as_array().and_then(|outputs| {
        outputs.iter().find(|output| output["name"] == "OUTPUT0")?["data"][0].as_i64()
    });
    (
        json["model_version"].as_str().unwrap_or_default().to_owned(),
        sum.unwrap_or_else(|| panic!("{json}")),
    )
}

/// One step over v1.
#[track_caller]
fn v1_step(server: &Running, model: &str, id: u64, flags: u32) -> i64 {
    let header = format!(
        "batch_size: 1 correlation_id: {id} flags: {flags} input {{ name: \"INPUT0\" }} \
         output {{ name: \"OUTPUT0\" }}"
    );
    let headers = [("NV-InferRequest", header.as_str())];
    let response = server.post(&format!("/api/infer/{model}"), &headers, 1_i32.to_le_bytes());
    let sum = response.body.first_chunk().filter(|_| response.status == 200);
    i32::from_le_bytes(*sum.unwrap_or_else(|| panic!("{}", response.text()))).into()
}

#[test]
fn begun_sequences_end_on_the_version_that_was_replaced() {
    let server =
        polling().file("s/1/value", "10").file("s/config.pbtxt", numbered_sums("s", NEVER)).start();
    let version = |number: &str, sum: i64| (number.to_owned(), sum);
    assert_eq!(step(&server, "s", 1, START), version("1", 11));
    assert_eq!(v1_step(&server, "s", 2, 1), 11);
    server.models().number("s", 1, 100);
    let mut id = 100;
    let mut begin = |server: &Running| {
        id += 1;
        step(server, "s", id, &format!("{START}{END}"))
    };
    while begin(&server) != version("1", 101) {}
    // Sequences that began before continue where they were, new ones begin on the new version.
    assert_eq!(step(&server, "s", 1, ""), version("1", 12));
    assert_eq!(v1_step(&server, "s", 2, 0), 12);
    assert_eq!(step(&server, "s", 3, START), version("1", 101));
    assert_eq!(step(&server, "s", 1, ""), version("1", 13));
    assert_eq!(step(&server, "s", 3, ""), version("1", 102));
    // A newer version is selected in place of it: the version in the response is that of the
    // sequence.
    server.models().number("s", 2, 200);
    while begin(&server) != version("2", 201) {}
    assert_eq!(step(&server, "s", 3, ""), version("1", 103));
    assert_eq!(step(&server, "s", 1, ""), version("1", 14));
    assert_eq!(step(&server, "s/versions/1", 3, ""), version("1", 104));
    let refused = send(&server, "s/versions/1", 9, START);
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(step(&server, "s", 1, END), version("1", 15));
    assert_eq!(v1_step(&server, "s", 2, 2), 13);
    let ended = send(&server, "s", 1, "");
    assert!(ended.text().contains("must specify the START flag"), "{}", ended.text());
    // An id that begins anew belongs to the new version.
    assert_eq!(step(&server, "s", 3, START), version("2", 201));
    assert_eq!(step(&server, "s", 3, END), version("2", 202));
    assert!(server.stop().success());
}

#[test]
fn unchanged_version_keeps_its_sequences() {
    let config = numbered_sums("s", NEVER) + trtserver_tests::polling::ALL;
    let server = explicit()
        .file("s/1/value", "10")
        .file("s/2/value", "20")
        .file("s/config.pbtxt", &config)
        .flag("--load-model=s")
        .start();
    assert_eq!(step(&server, "s/versions/1", 1, START).1, 11);
    assert_eq!(step(&server, "s/versions/2", 1, START).1, 21);
    server.models().number("s", 2, 30);
    assert_ok(server.load("s"));
    assert_eq!(step(&server, "s/versions/1", 1, "").1, 12);
    assert_eq!(step(&server, "s/versions/2", 1, "").1, 22);
    assert_eq!(step(&server, "s/versions/2", 2, START).1, 31);
    server.wait_until_opened("s", [1, 2]);
    // An unload ends them.
    assert_ok(server.unload("s"));
    assert_ok(server.load("s"));
    assert_eq!(send(&server, "s/versions/1", 1, "").status, 400);
    assert!(server.stop().success());
}

#[test]
fn sequences_that_do_not_end_are_lost_after_the_drain_time() {
    let server = polling()
        .file("s/1/value", "10")
        .file("s/config.pbtxt", numbered_sums("s", NEVER))
        .flag("--exit-sequence-timeout-secs=0")
        .start();
    assert_eq!(step(&server, "s", 1, START).1, 11);
    server.models().number("s", 1, 100);
    server.wait_for_log("1 sequences of 's' version 1, which was replaced, have not ended in time");
    server.poll_until("the sequence is lost", |server| send(server, "s", 1, "").status == 400);
    assert_eq!(step(&server, "s", 1, START).1, 101);
    let index: Value = json!([{"name": "s", "version": "1", "state": "READY"}]);
    assert_eq!(json!(server.entries("s")), index);
    assert!(server.stop().success());
}
