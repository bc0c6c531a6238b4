//! A server without TensorFlow's library serves everything else.

#![allow(clippy::expect_used)] // `server` is a part of tests

use std::fs;
use trtserver_tests::{Server, backends, dist, folder};

/// The plugin without the libraries of the install; ONNX Runtime is named, so that its models can
/// be served.
fn server(dir: &tempfile::TempDir) -> Server {
    let backend_dir = dir.path().join("backends");
    for plugin in
        ["tensorflow/libtrtserver_tensorflow.so", "onnxruntime/libtrtserver_onnxruntime.so"]
    {
        let to = backend_dir.join(plugin);
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(backends().join(plugin), to).expect("the plugin");
    }
    Server::new()
        .backend_dir(backend_dir)
        .env("LD_LIBRARY_PATH", "")
        .env("TRTSERVER_TENSORFLOW_LIBRARY", "")
        .env("TRTSERVER_ONNXRUNTIME_LIBRARY", dist().join("lib/libonnxruntime.so.1"))
        .copy_model("tests/models/identity_fp32")
        .copy_model("tests/models/graphdef/addsub_fp32")
        .copy_model("tests/models/savedmodel/addsub_int32")
}

/// The library, where it was looked for, and the command that gets it.
fn explains(text: &str, dir: &tempfile::TempDir) {
    let root = dir.path().display();
    for part in [
        "TensorFlow library not found; looked for libtensorflow_cc.so*",
        &format!("{root}/backends/tensorflow"),
        &format!("{root}/lib"),
        "libtensorflow_cc.so.2",
        "cargo xtask runtimes --tensorflow",
        "pip install tensorflow-cpu",
        "TRTSERVER_TENSORFLOW_LIBRARY",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn other_models_are_served() {
    let dir = folder();
    let server = server(&dir).flag("--exit-on-error=false").start();
    assert_eq!(server.infer("identity_fp32", "").status, 200);
    let index = server.post("/v2/repository/index", &[], "").json();
    for model in ["addsub_fp32", "addsub_int32"] {
        assert_eq!(server.get(&format!("/v2/models/{model}/ready")).status, 400);
        let entry = index.as_array().and_then(|all| all.iter().find(|m| m["name"] == model));
        let entry = entry.unwrap_or_else(|| panic!("no {model} in {index}"));
        assert_eq!(entry["state"], "UNAVAILABLE", "{index}");
        explains(entry["reason"].as_str().unwrap_or_default(), &dir);
    }
    assert!(server.stop().success());
}

#[test]
fn start_fails_by_default() {
    let dir = folder();
    let ended = server(&dir).refuses_to_start();
    explains(&ended.stderr, &dir);
    assert!(ended.stderr.contains("'addsub_fp32'"), "{}", ended.stderr);
}
