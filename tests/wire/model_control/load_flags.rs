//! Flags that decide what is loaded and how: retries, named configurations; and requests that name
//! a repository.

use std::fs;
use trtserver_tests::control::{Control, assert_ok, explicit, refused};
use trtserver_tests::{Server, folder, probe};

#[test]
fn failed_open_is_tried_again() {
    let dir = folder();
    // Beside the model: a file in its directory that changes is a change of the model.
    let left = dir.path().join("failures");
    fs::write(&left, "..").unwrap();
    let config = probe("m", &[("failing_opens", &left.display().to_string())]);
    let server = Server::new().model("m", &config).flag("--model-load-retry-count=2").start();
    assert!(server.serves("m"));
    let log = server.log();
    for line in ["retry 1 of 2: 1 failures are left", "retry 2 of 2: 0 failures are left"] {
        assert!(log.contains(&format!("failed to load 'm' version 1, {line}")), "{log}");
    }

    fs::write(&left, "..").unwrap();
    let server = explicit().model("m", &config).flag("--model-load-retry-count=1").start();
    let failed = server.load("m");
    assert_eq!(failed.status, 400);
    assert!(failed.error_text().contains("0 failures are left"), "{}", failed.text());
    assert_ok(server.load("m"));
}

#[test]
fn named_configuration_is_used_by_models_that_have_it() {
    let fixed = |name: &str| probe(name, &[]).replace("dims: [ -1 ]", "dims: [ 3 ]");
    let server = Server::new()
        .model("both", probe("both", &[]))
        .file("both/configs/small.pbtxt", fixed("both"))
        .model("other", probe("other", &[]))
        .file("other/configs/large.pbtxt", "nonsense")
        .flag("--model-config-name=small")
        .start();
    let dims = |model: &str| {
        let config = server.get(&format!("/v2/models/{model}/config")).json();
        config["input"][0]["dims"].clone()
    };
    assert_eq!((dims("both"), dims("other")), (serde_json::json!([3]), serde_json::json!([-1])));
    let path = Server::new().flag("--model-config-name=../x").refuses_to_start();
    assert!(path.stderr.contains("--model-config-name=../x: expected the name"), "{}", path.stderr);
}

#[test]
fn repository_in_a_request_is_refused() {
    let server = explicit().model("m", probe("m", &[])).start();
    let text = "'repository_name' specification is not supported";
    refused(server.post("/v2/repository/main/index", &[], ""), 501, text);
    refused(server.post("/v2/repository/main/models/m/load", &[], ""), 501, text);
    refused(server.post("/v2/repository/main/models/m/unload", &[], ""), 501, text);
}
