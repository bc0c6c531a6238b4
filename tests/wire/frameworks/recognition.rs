//! Models that the plugins recognise by their files: no platform in the configuration, no default
//! file name.

#![allow(clippy::unwrap_used)] // the functions here are parts of tests

use serde_json::json;
use std::fs;
use trtserver_tests::{Running, Server, root};

/// The digits classifier in this format, with its model file or directory renamed and without
/// platform or file name.
fn digits(example: &str, files: &[(&str, &str)]) -> Server {
    let from = root().join("examples").join(example);
    let config = fs::read_to_string(from.join("config.pbtxt")).unwrap();
    let kept = |line: &&str| !["name:", "platform:"].iter().any(|field| line.starts_with(field));
    let config: Vec<&str> = config.lines().filter(kept).collect();
    let labels = fs::read(from.join("digit_labels.txt")).unwrap();
    let server = Server::new()
        .flag("--strict-model-config=false")
        .model("digits", config.join("\n"))
        .file("digits/digit_labels.txt", labels);
    files.iter().fold(server, |server, (file, renamed)| {
        server.file(&format!("digits/1/{renamed}"), fs::read(from.join("1").join(file)).unwrap())
    })
}

fn assert_served(server: Running, platform: &str, file: &str) {
    let config = server.get("/v2/models/digits/config").json();
    let completed = json!([config["platform"], config["default_model_filename"]]);
    assert_eq!(completed, json!([platform, file]));
    let image = vec![0.0; 64];
    let request = json!({ "inputs": [
        { "name": "IMAGE", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": image } ] });
    let response = server.post("/v2/models/digits/infer", &[], request.to_string());
    assert_eq!(response.json()["outputs"][0]["shape"], json!([1, 10]), "{}", response.text());
    assert!(server.stop().success());
}

#[test]
fn netdef_of_any_name() {
    let files = [("model.netdef", "lenet.netdef"), ("init_model.netdef", "init_lenet.netdef")];
    let server = digits("models-caffe2/digits_netdef", &files).start();
    assert_served(server, "caffe2_netdef", "lenet.netdef");
}

mod with_tensorflow {
    use super::{assert_served, digits};

    const FILE: &str = "model.savedmodel/saved_model.pb";

    #[test]
    fn saved_model_of_any_name() {
        let files = [(FILE, "lenet/saved_model.pb")];
        let server = digits("models-tensorflow/digits_savedmodel", &files).start();
        assert_served(server, "tensorflow_savedmodel", "lenet");
    }

    #[test]
    fn two_saved_models_are_refused_with_their_names() {
        let files = [(FILE, "a/saved_model.pb"), (FILE, "b/saved_model.pb")];
        let ended = digits("models-tensorflow/digits_savedmodel", &files).refuses_to_start();
        let text = "no model of platform 'tensorflow_savedmodel': expected one SavedModel directory, found 'a', 'b'";
        assert!(ended.stderr.contains(text), "{}", ended.stderr);
    }
}
