//! Ensembles by request: steps are loaded and unloaded with them.

use serde_json::json;
use trtserver_tests::control::{Control, assert_ok, explicit, pair, refused};
use trtserver_tests::probe;

#[test]
fn ensemble_loads_its_steps() {
    let server = explicit()
        .model("a", probe("a", &[]))
        .model("pair", pair("a"))
        .model(
            "outer",
            pair("pair").replace("name: \"pair\"\nplatform", "name: \"outer\"\nplatform"),
        )
        .model(
            "alone",
            pair("missing").replace("name: \"pair\"\nplatform", "name: \"alone\"\nplatform"),
        )
        .start();
    assert_ok(server.load("outer"));
    assert!(server.serves("outer") && server.serves("pair") && server.serves("a"));

    // A step is unloaded and loaded again.
    assert_ok(server.unload("a"));
    assert!(!server.serves("pair") && !server.serves("outer"));
    let reason = server.index()[2]["reason"].clone();
    assert!(reason.as_str().is_some_and(|r| r.contains("depends on")), "{reason}");
    assert_eq!(server.get("/v2/health/ready").status, 200, "all unloads were requested");
    assert_ok(server.load("a"));
    assert!(server.serves("pair") && server.serves("outer"));

    // A step with other tensors invalidates the ensemble until it is restored.
    let text = probe("a", &[]).replace("TYPE_FP32", "TYPE_INT32");
    server.models().file("a/config.pbtxt", text);
    assert_ok(server.load("a"));
    assert!(!server.serves("pair") && !server.serves("outer"));
    let reason = server.index()[3]["reason"].clone();
    assert!(reason.as_str().is_some_and(|r| r.contains("inconsistent data type")), "{reason}");
    assert_eq!(server.get("/v2/health/ready").status, 400);
    server.models().file("a/config.pbtxt", probe("a", &[]));
    assert_ok(server.load("a"));
    assert!(server.serves("pair") && server.serves("outer"));

    // With unload_dependents, models loaded only for the ensemble are unloaded; `a` was loaded by
    // name.
    assert_ok(server.control("outer", "unload", json!({"unload_dependents": true})));
    assert!(!server.serves("outer") && !server.serves("pair") && server.serves("a"));
    assert_ok(server.unload("a"));
    assert_ok(server.load("outer"));
    assert_ok(server.unload("outer"));
    assert!(server.serves("pair"), "left alone by default");
    assert_ok(server.load("outer"));
    assert_ok(server.control("outer", "unload", json!({"unload_dependents": true})));
    assert!(!server.serves("pair") && !server.serves("a"));

    let text = "load failed for model 'alone': ensemble alone contains models that are not available or \
                ambiguous: missing\n";
    refused(server.load("alone"), 400, text);
    assert!(server.stop().success());
}

#[test]
fn recursive_ensembles_are_refused() {
    let named = |name: &str, step: &str| {
        pair(step).replace("name: \"pair\"\nplatform", &format!("name: \"{name}\"\nplatform"))
    };
    let server = explicit()
        .model("a", probe("a", &[]))
        .model("one", named("one", "a"))
        .model("two", named("two", "one"))
        .flag("--load-model=two")
        .start();
    server.models().file("one/config.pbtxt", named("one", "two"));
    for name in ["one", "two"] {
        let response = server.load(name);
        let text =
            format!("load failed for model '{name}': circular dependency between ensembles: ");
        assert_eq!(response.status, 400);
        assert!(response.error_text().starts_with(&text), "{}", response.text());
    }
    // The cycle includes the loaded configuration, not the one in the other directory.
    server.models().file("two/config.pbtxt", "nonsense");
    let error_text = server.load("one").error_text();
    assert!(error_text.contains("circular dependency between ensembles: "), "{error_text}");
    assert!(server.serves("one") && server.serves("two"));
}

#[test]
fn unload_dependents_keeps_shared_steps() {
    let top = |name: &str| {
        pair("pair").replace("name: \"pair\"\nplatform", &format!("name: \"{name}\"\nplatform"))
    };
    let server = explicit()
        .model("a", probe("a", &[]))
        .model("pair", pair("a"))
        .model("left", top("left"))
        .model("right", top("right"))
        .start();
    assert_ok(server.load("left"));
    assert_ok(server.load("right"));
    assert_ok(server.control("left", "unload", json!({"unload_dependents": true})));
    assert!(!server.serves("left") && server.serves("right"));
    assert_ok(server.control("right", "unload", json!({"unload_dependents": true})));
    assert!(["right", "pair", "a"].iter().all(|name| !server.serves(name)));
}
