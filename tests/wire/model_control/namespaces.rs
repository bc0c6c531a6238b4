//! `--model-namespacing`: models of equal names in different repositories.

use serde_json::{Value, json};
use std::fs;
use trtserver_tests::control::{Control, assert_ok, explicit, pair};
use trtserver_tests::polling::{Polled, numbered, polling};
use trtserver_tests::{Repository, Running, Server, probe};

/// An ensemble that applies `part` twice. `namespace`: that of the steps.
fn twice(name: &str, namespace: &str) -> String {
    let steps = format!("model_name: \"part\" model_namespace: \"{namespace}\"");
    let config = pair("part").replace("name: \"pair\"", &format!("name: \"{name}\""));
    if namespace.is_empty() { config } else { config.replace("model_name: \"part\"", &steps) }
}

/// `part`, which adds `number`, and an ensemble of it.
fn fill(repository: &Repository, ensemble: &str, number: &str) {
    repository.file("part/config.pbtxt", numbered("part"));
    repository.file("part/1/value", number);
    repository.model(ensemble, &twice(ensemble, ""));
}

fn namespaces(server: Server, second: &Repository) -> Server {
    server
        .flag("--model-namespacing=true")
        .flag(format!("--model-repository={}", second.path().display()))
}

#[track_caller]
fn is_ambiguous(server: &Running, model: &str) {
    let response = server.infer(model, "");
    let text = format!(
        "There are 2 identifiers of model '{model}' in global map, model namespace must be provided to resolve \
         ambiguity."
    );
    assert_eq!((response.status, response.error_text()), (400, text.clone()));
    let statistics = server.get(&format!("/v2/models/{model}/stats"));
    assert_eq!((statistics.status, statistics.error_text()), (400, text.clone()));
    let status = server.get(&format!("/api/status/{model}"));
    let quoted = text.replace('\'', "\\'");
    assert!(
        status.status == 400 && status.error_text().contains(&quoted),
        "{}",
        status.error_text()
    );
}

#[test]
fn models_of_equal_names_are_served_beside_each_other() {
    let second = Repository::new();
    fill(&second, "second", "20");
    second.file("alone/config.pbtxt", numbered("alone"));
    second.file("alone/1/value", "3");
    let server = namespaces(polling(), &second);
    let namespace = second.path().display().to_string();
    let server = server
        .file("part/config.pbtxt", numbered("part"))
        .file("part/1/value", "10")
        .model("first", twice("first", ""))
        .model("third", twice("third", &namespace))
        .start();
    let answers = |all: [i64; 4]| {
        let models = ["first", "second", "third", "alone"];
        models.iter().zip(all).all(|(model, number)| server.answer(model) == Some((1, number)))
    };
    assert!(answers([20, 40, 40, 3]));
    is_ambiguous(&server, "part");
    assert_eq!(server.entries("part").len(), 2, "{}", server.index());
    let sample = r#"nv_inference_request_success{model="part",namespace=""#;
    assert_eq!(server.metrics_text().matches(sample).count(), 2, "{}", server.metrics_text());

    // The ensemble takes the only one that is left, by polling.
    let part = server.models().path().join("part");
    let moved = server.models().path().join("part.tmp");
    fs::rename(&part, &moved).unwrap();
    server.poll_until("the other model is used", |_| answers([40, 40, 40, 3]));
    assert_eq!(server.answer("part"), Some((1, 20)));
    fs::rename(&moved, &part).unwrap();
    server.poll_until("its own model is used", |_| answers([20, 40, 40, 3]));
    is_ambiguous(&server, "part");
    server.models().number("part", 1, 11);
    server.poll_until("a change is loaded", |_| answers([22, 40, 40, 3]));
    assert!(server.stop().success());
}

#[test]
fn requests_load_and_unload_all_models_of_a_name() {
    let second = Repository::new();
    fill(&second, "second", "20");
    let server = namespaces(explicit(), &second)
        .file("part/config.pbtxt", numbered("part"))
        .file("part/1/value", "10")
        .model("first", twice("first", ""))
        .start();
    let states = || -> Vec<Value> {
        server.entries("part").iter().map(|entry| entry["state"].clone()).collect()
    };
    assert_ok(server.load("first"));
    assert_eq!(server.answer("first"), Some((1, 20)));
    assert_eq!(server.answer("part"), Some((1, 10)), "the other one is not loaded");
    assert_ok(server.load("part"));
    assert_eq!(states(), [json!("READY"), json!("READY")]);
    is_ambiguous(&server, "part");
    assert_ok(server.load("second"));
    assert_eq!(server.answer("second"), Some((1, 40)));
    assert_ok(server.unload("part"));
    assert_eq!(states(), [json!("UNAVAILABLE"), json!("UNAVAILABLE")]);
    assert_eq!(server.infer("part", "").status, 404);
    assert_eq!(server.load("none").status, 500);
    assert!(server.stop().success());
}

#[test]
fn namespace_of_a_step_needs_the_flag() {
    let ended = Server::new()
        .model("part", probe("part", &[]))
        .model("first", twice("first", "/elsewhere"))
        .refuses_to_start();
    let text = "'ensemble_scheduling.step.model_namespace' of model 'first' is used only with --model-namespacing=true";
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
}
