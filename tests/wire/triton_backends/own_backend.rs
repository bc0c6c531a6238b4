//! Models that bring the library of their backend, in the directory of the model or of a version.

use std::fs;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::isolated::{process, processes};
use trtserver_tests::triton_backends::{rogues, unusable};
use trtserver_tests::{Running, backends, parameters, probe};

fn model(more: &[(&str, &str)]) -> String {
    format!(
        "backend: \"mine\"\nmax_batch_size: 0\n\
         input [ {{ name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] }} ]\n\
         output [ {{ name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] }} ]\n{}",
        parameters(more)
    )
}

#[track_caller]
fn works(server: &Running, model: &str) {
    let body =
        r#"{"id":"good","inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1],"data":[1]}]}"#;
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    assert_eq!(response.status, 200, "{model}: {}", response.text());
    assert_eq!(response.json()["outputs"][0]["data"][0], 5, "{model}");
}

#[track_caller]
fn refused(server: &Running, model: &str, parts: &[&str]) {
    let response = server.load(model);
    let says = response.error_text();
    assert!(response.status >= 400, "{model}: {}", response.text());
    for part in parts {
        assert!(says.contains(part), "{model}: no {part:?} in {says:?}");
    }
}

#[test]
fn runtime_selects_another_library_file() {
    let made = rogues(&["mine"]);
    let library = made.path().join("mine/libtriton_mine.so");
    let fast = made.path().join("mine/libtriton_fast.so");
    fs::copy(&library, &fast).unwrap_or_else(|e| panic!("{}: {e}", fast.display()));
    let of_model = |runtime: &str| model(&[]) + &format!("runtime: \"{runtime}\"\n");
    let server = explicit()
        .triton_start_line()
        .backend_dir(backends())
        .backend_dir(made.path())
        .model("usual", model(&[]))
        .model("fast", of_model("libtriton_fast.so"))
        .model("own", of_model("own.so"))
        .file("own/own.so", fs::read(&library).unwrap_or_else(|e| panic!("{e}")))
        .model("none", of_model("libtriton_none.so"))
        .model("path", of_model("../mine/libtriton_fast.so"))
        .model("plugin", probe("plugin", &[]) + "runtime: \"libtriton_fast.so\"\n")
        .start();
    let libraries = [
        ("usual", "mine/libtriton_mine.so"),
        ("fast", "mine/libtriton_fast.so"),
        ("own", "own/own.so"),
    ];
    for (name, library) in libraries {
        assert_ok(server.load(name));
        works(&server, name);
        let maps = format!("/proc/{}/maps", process(&server, name).as_raw_nonzero());
        let mapped = fs::read_to_string(&maps).unwrap_or_else(|e| panic!("{maps}: {e}"));
        assert!(mapped.contains(library), "{name}: {mapped}");
    }
    let missing =
        "unable to find backend library 'libtriton_none.so' for model 'none', searched: '";
    refused(&server, "none", &[missing, "none/1/libtriton_none.so'", "mine/libtriton_none.so'"]);
    let escapes = "backend library name '../mine/libtriton_fast.so' escapes backend directory '";
    refused(&server, "path", &[escapes, "', for model 'path', check model config runtime field"]);
    assert!(!server.log().contains("'runtime'"), "{}", server.log());
    assert_ok(server.load("plugin"));
    server.wait_for_log_with(&["model 'plugin'", "'runtime' has no effect"]);
    assert!(server.stop().success());
}

#[test]
fn platform_implies_a_backend_of_triton() {
    let installed = rogues(&["pytorch"]);
    let configuration = model(&[]).replace("backend: \"mine\"", "platform: \"pytorch_libtorch\"");
    let library = fs::read(installed.path().join("pytorch/libtriton_pytorch.so"));
    let library = library.unwrap_or_else(|e| panic!("{e}"));
    let common = || explicit().triton_start_line();
    // Installed; or in the model's directory, where the install has a plugin of this name that
    // refuses the platform.
    for server in [
        common().backend_dir(installed.path()).model("torch", &configuration),
        common().model("torch", &configuration).file("torch/libtriton_pytorch.so", library),
    ] {
        let server = server.start();
        assert_ok(server.load("torch"));
        works(&server, "torch");
        let config = server.get("/v2/models/torch/config").json();
        assert_eq!(config["backend"], "pytorch");
        assert_eq!(config["default_model_filename"], "model.pt");
        assert!(server.stop().success());
    }
    // Without a library the plugin says what to do, and a plugin serves beside a library of another name.
    let server = common().model("torch", &configuration).file("torch/libtriton_other.so", "none");
    let server = server.file("torch/1/model.pt", "none").start();
    refused(&server, "torch", &["TorchScript"]);
    assert!(server.stop().success());
}

#[test]
fn libraries_in_directories_of_models() {
    let made = rogues(&["mine"]);
    unusable(made.path(), "next", "NEXT_MAJOR");
    let read = |path: &str| {
        let path = made.path().join(path);
        fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let library = read("mine/libtriton_mine.so");
    let server = explicit()
        .triton_start_line()
        .model("beside", model(&[]))
        .file("beside/libtriton_mine.so", &library)
        .model("inside", model(&[]))
        .file("inside/1/libtriton_mine.so", &library)
        .model("local", model(&[("isolation", "none")]))
        .file("local/libtriton_mine.so", &library)
        .model("without", model(&[]))
        .model("text", model(&[]))
        .file("text/libtriton_mine.so", "none")
        .model("next", model(&[]))
        .file("next/libtriton_mine.so", read("next/libtriton_next.so"))
        .start();
    for name in ["beside", "inside", "local"] {
        assert_ok(server.load(name));
        works(&server, name);
    }
    assert!(process(&server, "beside") != process(&server, "inside"));
    assert!(processes(&server, "local").is_empty());
    // The others are loaded, and their libraries are not for this model.
    refused(&server, "without", &["backend library for backend 'mine'", "'without'"]);
    refused(&server, "text", &["text/libtriton_mine.so"]);
    refused(&server, "next", &["needs version 2 of the interface, found 1.19"]);
    // An unchanged model stays as it is.
    let before = process(&server, "beside");
    assert_ok(server.load("beside"));
    assert_eq!(process(&server, "beside"), before);
    let path = server.models().path().join("beside/libtriton_mine.so");
    fs::remove_file(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    refused(&server, "beside", &["backend library for backend 'mine'"]);
    works(&server, "beside");
    works(&server, "inside");
    assert!(server.stop().success());
}
