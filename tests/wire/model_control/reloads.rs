//! A model that serves is loaded again: what replaces it, and what stays when the new files fail.

use serde_json::json;
use std::fs;
use trtserver_tests::control::{Control, assert_ok, explicit, ready, refused, unloaded};
use trtserver_tests::probe;

#[test]
fn failed_reload_keeps_the_old_version() {
    let server = explicit().model("m", probe("m", &[])).flag("--load-model=m").start();
    let config = |text: String| server.models().file("m/config.pbtxt", text);
    assert!(server.serves("m"));
    config(probe("m", &[("fail", "new text")]));
    assert!(server.serves("m"), "files are read only when a load is requested");
    assert_ok(server.load("m"));
    refused(server.infer("m", ""), 500, "new text");
    config(probe("m", &[]));
    assert_ok(server.load("m"));
    assert!(server.serves("m"));
    let series = r#"nv_inference_request_success{model="m",version="1"}"#;
    assert_eq!(server.metrics(series), Some(3.0));

    // An invalid configuration.
    let path = config("name: \"m\"\n  max_batch_size: eight\n".into());
    let v2 = server.load("m");
    let place = format!("load failed for model 'm': {}:2:19: max_batch_size", path.display());
    assert_eq!(v2.status, 400);
    assert!(
        v2.error_text().starts_with(&place) && v2.error_text().ends_with('\n'),
        "{}",
        v2.text()
    );
    let v1 = server.v1_error("load", "m");
    assert!(v1.contains("failed to load 'm', failed to poll from model repository"), "{v1}");
    assert!(v1.contains("code: INTERNAL"), "{v1}");
    assert!(server.serves("m"));

    // A configuration with which no instance opens.
    config(probe("m", &[("fail_in", "instance_open"), ("fail", "no instance for you")]));
    let text =
        "load failed for model 'm': version 1 is at UNAVAILABLE state: no instance for you\n";
    refused(server.load("m"), 400, text);
    let v1 = server.v1_error("load", "m");
    assert!(v1.contains("failed to load 'm', versions that are not available: 1"), "{v1}");
    assert!(server.serves("m"));
    assert_eq!(server.index(), json!([ready("m")]));
    assert_eq!(server.get("/v2/health/ready").status, 200);

    // Where no version serves, the index shows the failure until the model is unloaded.
    assert_ok(server.unload("m"));
    refused(server.load("m"), 400, text);
    let index = server.index();
    assert_eq!(index[0]["reason"], "no instance for you", "{index}");
    assert_eq!(server.get("/v2/health/ready").status, 400);
    assert_ok(server.unload("m"));
    server.wait_for_index(&json!([unloaded("m")]));
    assert_eq!(server.get("/v2/health/ready").status, 200);
    config("nonsense".into());
    assert_eq!(server.load("m").status, 500);
    assert!(server.index()[0]["reason"].as_str().is_some_and(|r| r.contains("config.pbtxt:1:")));
    assert_ok(server.unload("m"));
    server.wait_for_index(&json!([unloaded("m")]));
    config(probe("m", &[]));
    assert_ok(server.load("m"));
    assert!(server.serves("m"));
    assert_eq!(server.metrics(series), Some(6.0));
}

#[test]
fn reload_adds_and_removes_versions() {
    let policy = "version_policy { latest { num_versions: 2 } }";
    let server = explicit().model("m", probe("m", &[]) + policy).flag("--load-model=m").start();
    let metadata = || server.get("/v2/models/m").json()["versions"].clone();
    server.models().version("m", 2);
    server.models().version("m", 3);
    assert_ok(server.load("m"));
    assert_eq!(metadata(), json!(["2", "3"]));
    let entry = |version: &str, state: &str, reason: &str| match reason {
        "" => json!({"name": "m", "version": version, "state": state}),
        _ => json!({"name": "m", "version": version, "state": state, "reason": reason}),
    };
    // The deselected version is closed.
    server.poll_until("version 1 is closed", |s| {
        s.index()[0] == entry("1", "UNAVAILABLE", "unloaded")
    });
    assert_eq!(server.get("/v2/models/m/versions/1/ready").status, 400);
    let remove =
        |n: i64| fs::remove_dir_all(server.models().path().join(format!("m/{n}"))).unwrap();
    remove(3);
    remove(1);
    assert_ok(server.load("m"));
    assert_eq!(metadata(), json!(["2"]));
    let model = &server.get("/api/status/m").text();
    assert!(model.contains("key: 3") && !model.contains("key: 1\n"), "{model}");
    assert_eq!(server.infer("m", "").json()["model_version"], "2");

    // All version directories are removed: loaded versions continue.
    remove(2);
    refused(server.load("m"), 500, "failed to load 'm', no version is available");
    let v1 = server.v1_error("load", "m");
    assert!(v1.contains("failed to load 'm', no version is available"), "{v1}");
    server.models().remove("m");
    refused(server.load("m"), 500, "failed to load 'm', failed to poll from model repository");
    assert!(server.serves("m"));
    server.poll_until("it is forgotten", |s| {
        assert_ok(s.unload("m"));
        s.index() == json!([])
    });
}

#[test]
fn failed_version_replaces_none() {
    let policy = "version_policy { latest { num_versions: 2 } }\n";
    let server = explicit().copy_model("tests/models/addsub_fp32").start();
    let path = server.models().path().join("addsub_fp32/config.pbtxt");
    let config = fs::read_to_string(&path).unwrap_or_default() + policy;
    server.models().file("addsub_fp32/config.pbtxt", config);
    assert_ok(server.load("addsub_fp32"));
    server.models().file("addsub_fp32/2/model.onnx", "not a model");
    let v2 = server.load("addsub_fp32");
    let start = "load failed for model 'addsub_fp32': version 2 is at UNAVAILABLE state: ";
    assert_eq!(v2.status, 400);
    assert!(v2.error_text().starts_with(start), "{}", v2.text());
    let v1 = server.v1_error("load", "addsub_fp32");
    let text = "failed to load 'addsub_fp32', versions that are not available: 2";
    assert!(v1.contains(text), "{v1}");
    assert_eq!(server.index(), json!([ready("addsub_fp32")]));
    // If no version of the model serves, the versions that open are published.
    assert_ok(server.unload("addsub_fp32"));
    assert_eq!(server.load("addsub_fp32").status, 400);
    let index = server.index();
    assert_eq!((&index[0]["state"], &index[1]["state"]), (&json!("READY"), &json!("UNAVAILABLE")));
    let model = server.models().path().join("addsub_fp32");
    fs::copy(model.join("1/model.onnx"), model.join("2/model.onnx")).unwrap();
    assert_ok(server.load("addsub_fp32"));
    assert_eq!(server.get("/v2/models/addsub_fp32").json()["versions"], json!(["1", "2"]));
}
