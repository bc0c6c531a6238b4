//! Files that come with a load request (`file:VERSION/PATH`).

use serde_json::{Value, json};
use std::fs;
use trtserver_tests::control::{Control, assert_ok, explicit, ready, refused};
use trtserver_tests::{folder, probe};

/// The configuration as JSON, with a label file.
fn config(name: &str) -> String {
    json!({
        "name": name, "backend": "probe", "max_batch_size": 8,
        "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
        "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1], "label_filename": "labels.txt"}],
    })
    .to_string()
}

/// In base64.
const LABELS: &str = "YQpiCg==";
const X: &str = "eA==";

const NOT_POLLED: &str = "failed to load 'm', failed to poll from model repository";

#[test]
fn files_of_a_request_are_the_model_until_it_is_unloaded() {
    let dir = folder();
    let private = || {
        let entries = fs::read_dir(dir.path()).expect("a folder").flatten();
        let paths = entries.map(|entry| entry.path());
        let is_ours =
            |path: &std::path::PathBuf| path.to_string_lossy().contains("/trtserver-model-");
        paths.filter(is_ours).collect::<Vec<_>>()
    };
    let server = explicit().model("m", probe("m", &[])).env("TMPDIR", dir.path()).start();
    assert_ok(server.load("m"));
    // A model that is in no repository.
    let files = json!({"config": config("new"), "file:labels.txt": LABELS, "file:4/x": X});
    assert_ok(server.control("new", "load", files));
    assert!(server.serves("new") && server.serves("m"));
    assert_eq!(
        server.index(),
        json!([ready("m"), {"name": "new", "version": "4", "state": "READY"}])
    );
    let [model] = private().try_into().unwrap_or_else(|found| panic!("{found:?}"));
    assert_eq!(fs::read_to_string(model.join("labels.txt")).expect("a file"), "a\nb\n");
    assert!(model.join("4/x").exists());
    // A request whose files do not suffice leaves the model as it is.
    let files = json!({"config": config("new"), "file:4/x": X});
    let failed = server.control("new", "load", files);
    assert_eq!(failed.status, 400);
    assert!(failed.error_text().contains("unable to read label file"), "{}", failed.text());
    assert!(server.serves("new"));
    server.poll_until("the files of the failed load are removed", |_| private() == [model.clone()]);
    // Without the files it is in no repository.
    let text = "failed to load 'new', failed to poll from model repository";
    refused(server.load("new"), 500, text);
    assert!(server.serves("new"));
    assert_ok(server.unload("new"));
    assert_ok(server.load("m"));
    server.poll_until("its files are removed", |_| private().is_empty());
    assert!(server.serves("m"));
}

/// As `base64` on the command line and libraries for mail write it.
#[test]
fn files_may_be_in_lines_and_without_padding() {
    let dir = folder();
    let server = explicit().env("TMPDIR", dir.path()).start();
    for (number, text) in ["YQpi\nCg==\n", "YQpiCg", " YQ\r\npi\r\nCg ", LABELS].iter().enumerate()
    {
        let files = json!({"config": config("new"), "file:labels.txt": text, "file:4/x": "eA"});
        assert_ok(server.control("new", "load", files));
        let request = inference_with_class();
        let response = server.post("/v2/models/new/infer", &[], request);
        assert_eq!(response.status, 200, "{number}: {}", response.text());
        assert_eq!(response.json()["outputs"][0]["data"][0], "2.000000:1:b", "{text:?}");
        assert_ok(server.unload("new"));
    }
}

fn inference_with_class() -> &'static str {
    r#"{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}],
        "outputs":[{"name":"OUTPUT0","parameters":{"classification":1}}]}"#
}

/// The steps of Triton's published example for model control over HTTP; that over gRPC is alike.
#[test]
fn published_example_of_model_control_passes() {
    let server = explicit().triton_start_line().copy_models("examples/models").start();
    assert_ok(server.load("simple"));
    let wrong = r#""parameters": {"config": {{"max_batch_size": "16"}}}"#;
    let response = server.control("simple", "load", json!({"config": wrong}));
    assert!(response.error_text().contains("failed to load"), "{}", response.text());
    assert_ok(server.control("simple", "load", json!({"config": r#"{"max_batch_size":"16"}"#})));
    assert_eq!(server.get("/v2/models/simple/config").json()["max_batch_size"], 16);
    assert_ok(server.unload("simple"));
    assert!(!server.serves("simple"));
    let response = server.load("wrong_model_name");
    assert!(response.error_text().contains("failed to load"), "{}", response.text());
}

#[test]
fn invalid_files_are_refused_by_name() {
    let server = explicit().model("m", probe("m", &[])).start();
    let load = |name: &str, value: Value| {
        server.control("m", "load", json!({"config": config("m"), name: value}))
    };
    for path in ["../x", "/etc/x", "1/../../x", "", "1/"] {
        let why = format!(
            "load parameter 'file:{path}': expected file:VERSION/PATH with a path below the model's directory"
        );
        let text = format!("{NOT_POLLED}: {why}");
        refused(load(&format!("file:{path}"), X.into()), 500, &text);
        server.wait_for_log(&why);
    }
    let not_base64 = load("file:1/x", "%%%".into());
    assert_eq!(not_base64.status, 400);
    let start = "load parameter 'file:1/x' of model 'm': ";
    assert!(not_base64.error_text().starts_with(start), "{}", not_base64.text());
    assert_eq!(load("file:1/x", 3.into()).status, 500);
    let alone = server.control("m", "load", json!({"file:1/x": X}));
    let why = "the load request has files but no parameter 'config', which is required with files";
    refused(alone, 500, &format!("{NOT_POLLED}: {why}"));
    server.wait_for_log(why);
    let unversioned = load("file:labels.txt", LABELS.into());
    refused(unversioned, 500, "failed to load 'm', no version is available");
    assert_ok(server.load("m"));
}
