//! Recognition of model files by backends (`trts.model_probe`): models of any name, ambiguous
//! directories.

use serde_json::{Value, json};
use tempfile::TempDir;
use trtserver_tests::{Running, Server, backends, compile_c, folder, root};

/// A directory with the backend `cpp_bundle`: platform `bundle` is one directory of any name with a
/// file `bundle.txt`.
fn backend() -> TempDir {
    let dir = folder();
    compile_c("tests/plugins/cpp-bundle/bundle.cpp", dir.path(), "cpp_bundle");
    dir
}

fn server(dir: &TempDir) -> Server {
    Server::new().backend_dir(dir.path()).flag("--strict-model-config=false")
}

/// Platform, backend and model file in the configuration that the server reports.
fn completed(server: &Running, model: &str) -> [Value; 3] {
    let config = server.get(&format!("/v2/models/{model}/config")).json();
    ["platform", "backend", "default_model_filename"].map(|field| config[field].clone())
}

#[test]
fn model_of_any_name_is_detected() {
    let dir = backend();
    let isolated = "parameters { key: \"isolation\" value { string_value: \"process\" } }";
    for setting in ["version=1.0", "isolation=process"] {
        let server = server(&dir)
            .flag(format!("--backend-config=cpp_bundle,{setting}"))
            .file("bare/1/resnet/bundle.txt", "")
            .file("flat/1/model.flat", "")
            .model("platform", "platform: \"bundle\"")
            .file("platform/1/first/bundle.txt", "")
            .file("platform/1/notes.txt", "")
            .model("backend", "backend: \"cpp_bundle\"")
            .file("backend/1/second/bundle.txt", "")
            .model("unknown", "platform: \"mxnet\"")
            .file("unknown/1/third/bundle.txt", "")
            .model("isolated", isolated)
            .file("isolated/1/fourth/bundle.txt", "")
            // The latest version alone is served.
            .file("versions/1/old/bundle.txt", "")
            .file("versions/2/new/bundle.txt", "")
            .start();
        for (model, platform, file) in [
            ("bare", "bundle", "resnet"),
            ("flat", "flat", "model.flat"),
            ("platform", "bundle", "first"),
            ("backend", "bundle", "second"),
            ("unknown", "bundle", "third"),
            ("isolated", "bundle", "fourth"),
            ("versions", "bundle", "new"),
        ] {
            let expected = [platform, "cpp_bundle", file].map(|text| json!(text));
            assert_eq!(completed(&server, model), expected, "{model}, {setting}");
            let response = server.infer(model, "");
            assert_eq!(response.json()["outputs"][0]["data"], json!([file]), "{}", response.text());
        }
        server.wait_for_log(
            "model 'unknown': the unknown platform 'mxnet' is replaced by the detected platform 'bundle'",
        );
        assert!(server.stop().success());
    }
}

#[test]
fn ambiguous_and_unrecognised_files_fail_the_load_with_their_names() {
    let dir = backend();
    let two = |server: Server| server.file("m/1/a/bundle.txt", "").file("m/1/b/bundle.txt", "");
    let other = |server: Server| server.file("m/1/weights.bin", "").file("m/1/empty/readme", "");
    let versions = |server: Server| {
        two(server.model("m", "version_policy { all { } }")).file("m/2/c/bundle.txt", "")
    };
    let named = |server: Server| server.model("m", "platform: \"bundle\"");
    let ambiguous = "no model of platform 'bundle': both 'a' and 'b' are bundles";
    for (server, parts) in [
        (two(server(&dir)), &["model 'm'", "/m/1' (which contains 'a/', 'b/')", ambiguous][..]),
        (two(named(server(&dir))), &["unable to autofill for 'm': ", "/m/1'", ambiguous]),
        (
            other(named(server(&dir))),
            &[
                "(which contains 'empty/', 'weights.bin')",
                "expected a directory with a file 'bundle.txt'",
            ],
        ),
        (
            versions(server(&dir)).file("m/1/model.flat", ""),
            &[
                "unable to autofill for 'm' due to multiple versions: version 1 holds 'model.flat'",
                "'c'",
            ],
        ),
    ] {
        let ended = server.refuses_to_start();
        for part in parts {
            assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
        }
    }
}

#[test]
fn strict_configuration_has_the_default_file() {
    let dir = backend();
    let config = "platform: \"bundle\" input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1 ] } ] \
                  output [ { name: \"OUTPUT0\" data_type: TYPE_STRING dims: [ 1 ] } ]";
    let server = Server::new()
        .backend_dir(dir.path())
        .model("strict", config)
        .file("strict/1/resnet/bundle.txt", "")
        .start();
    assert_eq!(completed(&server, "strict")[2], "model.bundle");
    assert!(server.stop().success());
}

/// A framework is not loaded because a model of another one is detected.
#[test]
fn detection_opens_no_backend() {
    let dir = backend();
    let model = std::fs::read(root().join("tests/models/addsub_fp32/1/model.onnx"));
    let server = server(&dir)
        .backend_dir(backends())
        .file("mine/1/model.onnx", model.unwrap_or_default())
        .start();
    assert_eq!(completed(&server, "mine")[0], "onnxruntime_onnx");
    assert!(!server.log().contains("opened backend 'cpp_bundle'"), "{}", server.log());
    assert!(server.stop().success());
}
