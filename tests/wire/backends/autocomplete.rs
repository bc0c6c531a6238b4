//! Completion of configurations by a backend: which fields are added, which are refused, and its
//! state for opening the model.

use serde_json::{Value, json};
use trtserver_tests::{Running, Server, parameters};

/// A model whose configuration says no more than these parameters; the probe adds INPUT0 and
/// OUTPUT0.
fn incomplete(more: &[(&str, &str)]) -> String {
    "backend: \"probe\"\n".to_owned() + &parameters(more)
}

fn server() -> Server {
    Server::new().flag("--strict-model-config=false")
}

fn config(server: &Running, model: &str) -> Value {
    server.get(&format!("/v2/models/{model}/config")).json()
}

#[test]
fn patch_completes_policy_scheduling_instances_and_parameters() {
    let patch = "max_batch_size: 4 model_transaction_policy { decoupled: true } dynamic_batching { \
                 preferred_batch_size: [ 2 ] } instance_group [ { kind: KIND_CPU count: 2 } ] \
                 parameters { key: \"added\" value { string_value: \"x\" } }";
    let patch = patch.replace('"', "\\\"");
    let own = incomplete(&[("patch", &patch), ("added", "mine")])
        + "max_batch_size: 8 instance_group [ { kind: KIND_CPU count: 1 } ]";
    let isolated = incomplete(&[("patch", &patch), ("isolation", "process")]);
    let server = server()
        .model("all", incomplete(&[("patch", &patch)]))
        .model("own", own)
        .model("isolated", isolated)
        .start();
    for model in ["all", "isolated"] {
        let all = config(&server, model);
        assert_eq!(all["max_batch_size"], 4, "{all}");
        assert_eq!(all["model_transaction_policy"]["decoupled"], true, "{all}");
        assert_eq!(all["dynamic_batching"]["preferred_batch_size"], json!([2]), "{all}");
        assert_eq!(all["instance_group"][0]["count"], 2, "{all}");
        assert_eq!(all["parameters"]["added"]["string_value"], "x", "{all}");
        // A decoupled model is not served by protocols with one response.
        let refused = server.infer(model, "").error_text();
        assert!(refused.contains("decoupled"), "{refused}");
    }
    let own = config(&server, "own");
    assert_eq!(
        (&own["max_batch_size"], &own["instance_group"][0]["count"]),
        (&json!(8), &json!(1))
    );
    assert_eq!(own["parameters"]["added"]["string_value"], "mine", "{own}");
    assert_eq!(own["model_transaction_policy"]["decoupled"], true, "{own}");
    assert!(server.stop().success());
}

#[test]
fn patch_of_a_decided_field_fails_the_load_and_names_it() {
    for (patch, field) in [
        ("name: \\\"other\\\"", "'name' to 'other', which is 'bad' already"),
        ("ensemble_scheduling { }", "'ensemble_scheduling'"),
        (
            "parameters { key: \\\"isolation\\\" value { string_value: \\\"process\\\" } }",
            "the parameter 'isolation'",
        ),
    ] {
        let ended = server().model("bad", incomplete(&[("patch", patch)])).refuses_to_start();
        let expected =
            format!("model 'bad': the auto-complete result of backend 'probe' sets {field}");
        assert!(ended.stderr.contains(&expected), "no {expected:?} in {}", ended.stderr);
    }
}

/// The state belongs to the version that was read, and is freed after it was opened.
#[test]
fn state_of_completion_reaches_model_open() {
    let both = incomplete(&[]) + "max_batch_size: 8 version_policy { all { } }";
    let server = server()
        .model("both", both)
        .file("both/2/.keep", "")
        .model("isolated", incomplete(&[("isolation", "process")]) + "max_batch_size: 8")
        .start();
    server.wait_for_log("version 2 opens with state of version 2");
    assert_eq!(server.log().matches("opens with state").count(), 1, "{}", server.log());
    for model in ["both", "isolated"] {
        assert_eq!(server.infer(model, "").status, 200);
    }
    assert!(server.stop().success());
}
