//! Two releases of TensorFlow in one server: one in the server's process, one in a process of its
//! own.

#![allow(clippy::expect_used)] // `server` is a part of tests

use serde_json::json;
use std::fs;
use trtserver_tests::{Running, Server, parameters, tensorflow};

const NEW: &str = "addsub_fp32";
const OLD: &str = "addsub_int32";

/// `NEW` runs on the default library, `OLD` on the one of release 2.12.0.
fn server(parameters_of_old: &[(&str, &str)]) -> Server {
    let (default, old) = (tensorflow("2.21.0"), tensorflow("2.12.0"));
    let server = Server::new()
        .copy_model(format!("tests/models/graphdef/{NEW}"))
        .copy_model(format!("tests/models/savedmodel/{OLD}"))
        .flag(format!("--backend-config=tensorflow,library={}", default.display()))
        .flag(format!("--backend-config=tensorflow,library-2.12={}", old.display()));
    let config = server.models().join(OLD).join("config.pbtxt");
    let text = fs::read_to_string(&config).expect("a configuration");
    fs::write(&config, text + &parameters(parameters_of_old)).expect("a configuration");
    server
}

#[track_caller]
fn adds(server: &Running, model: &str, datatype: &str) {
    let input = |name: &str| json!({ "name": name, "datatype": datatype, "shape": [1, 16], "data": vec![3; 16] });
    let body = json!({ "inputs": [input("INPUT0"), input("INPUT1")] }).to_string();
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    assert_eq!(response.status, 200, "{model}: {}", response.text());
    let outputs = response.json()["outputs"].clone();
    assert_eq!(outputs[0]["data"][15].as_f64(), Some(6.0), "{outputs}");
}

#[test]
fn serve_side_by_side() {
    let server = server(&[("TF_LIBRARY", "2.12"), ("isolation", "process")]).start();
    adds(&server, NEW, "FP32");
    adds(&server, OLD, "INT32");
    let log = server.log();
    for release in ["TensorFlow 2.21.0 from ", "TensorFlow 2.12.0 from "] {
        assert!(log.contains(release), "no {release:?} in {log}");
    }
    assert!(server.stop().success());
}

#[test]
fn second_release_in_one_process_is_refused() {
    let server = server(&[("TF_LIBRARY", "2.12")]).flag("--exit-on-error=false");
    // The library of the model that is loaded first stays; the other model fails.
    let server = server.start();
    let index = server.post("/v2/repository/index", &[], "").text();
    for part in ["has loaded another TensorFlow", "isolation", "process", "UNAVAILABLE"] {
        assert!(index.contains(part), "no {part:?} in {index}");
    }
    let ready = |model: &str| server.get(&format!("/v2/models/{model}/ready")).status == 200;
    match (ready(NEW), ready(OLD)) {
        (true, false) => adds(&server, NEW, "FP32"),
        (false, true) => adds(&server, OLD, "INT32"),
        other => panic!("{other:?}: {index}"),
    }
    assert!(server.stop().success());
}
