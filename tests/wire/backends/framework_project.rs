//! `trtserver plugin new --framework`: the project builds, passes its own tests, and serves.

#![allow(clippy::unwrap_used)] // what a test needs and does not find is its failure

use super::sdk::share_target;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use trtserver_tests::isolated::process;
use trtserver_tests::pages::follow_with;
use trtserver_tests::{Running, Server, command_output, folder, root, trtserver};

const NAME: &str = "new_framework";

fn serve(project: &Path, isolation: &str) -> Running {
    Server::new()
        .triton_start_line()
        .backend_dir(project)
        .flag(format!("--backend-config={NAME},isolation={isolation}"))
        .flag("--strict-model-config=false")
        .flag("--exit-on-error=false")
        .copy_models(project.join("models"))
        .model("text", format!("backend: \"{NAME}\""))
        .file("text/1/model.toy", "<html>not found</html>")
        .start()
}

/// Clients of both generations, and what a request must not be.
fn answers(server: &Running) {
    let rows = |columns: usize| {
        let data: Vec<usize> = (1..=2 * columns).collect();
        let input =
            json!({ "name": "INPUT", "datatype": "FP32", "shape": [2, columns], "data": data });
        json!({ "inputs": [input] }).to_string()
    };
    for model in ["example", "completed"] {
        let path = format!("/v2/models/{NAME}_{model}/infer");
        let answer = server.post(&path, &[], rows(2)).json();
        assert_eq!(answer["outputs"][0]["data"], json!([21.0, 43.0]), "{model}");
        let refused = server.post(&path, &[], rows(3));
        assert_eq!(refused.status, 400, "{}", refused.text());
    }
    let header = "batch_size: 1 input { name: \"INPUT\" } output { name: \"SCORE\" }";
    let raw = [1.0f32, 2.0].map(f32::to_le_bytes).concat();
    let v1 =
        server.post(&format!("/api/infer/{NAME}_example"), &[("NV-InferRequest", header)], raw);
    assert_eq!(v1.status, 200, "{}", v1.error_text());
    assert!(v1.body.starts_with(&21f32.to_le_bytes()), "{:?}", v1.body);
    assert!(reason(server, "text").contains("an HTML page and not a model"));
}

/// Why a model is not served.
fn reason(server: &Running, model: &str) -> String {
    let index = server.post("/v2/repository/index", &[], "").json();
    let entry = index.as_array().and_then(|all| all.iter().find(|entry| entry["name"] == model));
    entry.unwrap()["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn new_framework_project_builds_and_serves() {
    let dir = folder();
    let project = dir.path().join(NAME);
    let text = project.to_str().unwrap();
    let words = ["plugin", "new", NAME, "--lang", "rust", "--framework", "--dir", text];
    let ended = trtserver(words);
    assert!(ended.status.success(), "{}", ended.stderr);
    let manifest = fs::read_to_string(project.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("{ path = \"vendor/plugins/framework\" }"), "{manifest}");
    assert!(!manifest.contains(root().to_str().unwrap()), "{manifest}");
    share_target(&project);
    // The lock file is complete.
    let mut metadata = Command::new("cargo");
    metadata.args(["metadata", "--locked", "--format-version", "1"]);
    command_output(metadata.current_dir(&project));
    // The start line of v1.x would complete a batch of one row.
    let followed =
        follow_with(&project.join("README.md"), &project, |server| server.triton_start_line());
    assert_eq!(followed.commands, 4);
    assert!(followed.server.unwrap().stop().success());

    for isolation in ["none", "process"] {
        let server = serve(&project, isolation);
        answers(&server);
        if isolation == "process" {
            assert!(process(&server, &format!("{NAME}_example")).as_raw_nonzero().get() > 0);
        }
        assert!(server.stop().success());
    }
    fs::remove_file(project.join("libtoy.so")).unwrap();
    let server = serve(&project, "none");
    let reason = reason(&server, &format!("{NAME}_example"));
    for part in ["Toy library not found", "libtoy.so", "make libtoy.so", "TOY_LIBRARY=PATH"] {
        assert!(reason.contains(part), "no {part:?} in {reason}");
    }
    assert!(server.stop().success());
}

#[test]
fn projects_for_frameworks_depend_on_a_checkout_that_has_the_crate() {
    let dir = folder();
    let create = |name: &str, interface: &Path| {
        let (to, interface) = (dir.path().join(name), interface.display().to_string());
        let words = ["plugin", "new", name, "--lang", "rust", "--framework", "--plugin-api"];
        let more = [interface.as_str(), "--dir", to.to_str().unwrap()];
        (trtserver(words.into_iter().chain(more)), to.join("Cargo.toml"))
    };
    let (ended, manifest) = create("whole", root());
    assert!(ended.status.success(), "{}", ended.stderr);
    let manifest = fs::read_to_string(manifest).unwrap();
    let path = root().join("plugins/framework").canonicalize().unwrap();
    let line = format!("trtserver-plugin-framework = {{ path = \"{}\" }}", path.display());
    assert!(manifest.contains(&line), "{manifest}");
    // The interface alone.
    let alone = dir.path().join("alone");
    fs::create_dir(&alone).unwrap();
    fs::copy(root().join("plugin-api/Cargo.toml"), alone.join("Cargo.toml")).unwrap();
    let (ended, manifest) = create("part", &alone);
    assert!(ended.stderr.contains("plugins/framework of a whole checkout"), "{}", ended.stderr);
    assert!(!manifest.exists());
}
