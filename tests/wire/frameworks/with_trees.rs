//! Decision trees of LightGBM and XGBoost: with the clients of both generations, as repositories of
//! Triton's FIL backend, and damaged files.

#![allow(clippy::expect_used)] // the functions here are parts of tests

use serde_json::{Value, json};
use std::fs;
use trtserver_tests::isolated::process;
use trtserver_tests::{Running, Server, backends, dist, folder, python_v1, python_v2, root};

fn model_file(path: &str) -> Vec<u8> {
    fs::read(root().join("tests/models/trees").join(path)).expect("a model")
}

/// The outputs of a model for one row.
fn ask(server: &Running, model: &str, row: &[f64]) -> Value {
    let input =
        json!({ "name": "input__0", "datatype": "FP32", "shape": [1, row.len()], "data": row });
    let body = json!({ "inputs": [input] }).to_string();
    server.post(&format!("/v2/models/{model}/infer"), &[], body).json()
}

/// Models without a configuration, for the clients of both generations. The start line of v1.x
/// would complete them with batches of one row.
fn answers(server: Server) {
    let server = server
        .flag("--strict-model-config=false")
        .flag("--backend-config=fil,default-max-batch-size=100000");
    let folder = root().join("tests/models/trees");
    let models = fs::read_dir(folder).expect("the models").map(|entry| entry.expect("one").path());
    let server = models.filter(|model| model.is_dir()).fold(server, Server::copy_model).start();
    python_v2(&server, "v2_trees.py", &[]);
    python_v1(&server, "v1_trees.py", &[]);
    assert!(server.stop().success());
}

#[test]
fn both_generations_of_clients() {
    answers(Server::new());
}

#[test]
fn both_generations_of_clients_with_isolation() {
    answers(Server::new().flag("--backend-config=fil,isolation=process"));
}

/// As FIL's documentation writes it.
fn fil(model_type: &str, dims: u32, more: &str) -> String {
    format!(
        "backend: \"fil\"
         max_batch_size: 32768
         input [ {{ name: \"input__0\" data_type: TYPE_FP32 dims: [ 6 ] }} ]
         output [ {{ name: \"output__0\" data_type: TYPE_FP32 dims: [ {dims} ] }} {more}
         instance_group [{{ kind: KIND_AUTO }}]
         parameters [
           {{ key: \"model_type\" value: {{ string_value: \"{model_type}\" }} }},
           {{ key: \"output_class\" value: {{ string_value: \"true\" }} }},
           {{ key: \"predict_proba\" value: {{ string_value: \"{}\" }} }},
           {{ key: \"storage_type\" value: {{ string_value: \"AUTO\" }} }}
         ]
         dynamic_batching {{ }}\n",
        dims > 1
    )
}

/// Configurations and file names of Triton's FIL backend, with and without completion.
#[test]
fn repositories_of_fil() {
    let end = "]";
    let shap = ", { name: \"treeshap_output\" data_type: TYPE_FP32 dims: [ 7 ] } ]";
    for strict in ["true", "false"] {
        let server = Server::new()
            .flag(format!("--strict-model-config={strict}"))
            .model("json", fil("xgboost_json", 1, end))
            .file("json/1/xgboost.json", model_file("xgb_binary/1/model.json"))
            .model("ubj", fil("xgboost_ubj", 3, end))
            .file("ubj/1/xgboost.ubj", model_file("xgb_three/1/model.ubj"))
            .model("model", fil("xgboost", 3, end))
            .file("model/1/xgboost.model", model_file("xgb_three/1/model.ubj"))
            .model("text", fil("lightgbm", 2, shap))
            .file("text/1/model.txt", model_file("lgbm_binary/1/model.txt"))
            .start();
        let row = [0.1, 0.2, -0.3, 0.4, 0.5, 3.0];
        let outputs = |model: &str| ask(&server, model, &row)["outputs"].clone();
        let class = outputs("json")[0]["data"][0].as_f64();
        assert!(class == Some(0.0) || class == Some(1.0), "{class:?}");
        assert_eq!(outputs("ubj")[0]["shape"], json!([1, 3]));
        assert_eq!(outputs("ubj")[0]["data"], outputs("model")[0]["data"]);
        let text = outputs("text");
        let pair = [0, 1].map(|at| text[0]["data"][at].as_f64().unwrap_or(f64::NAN));
        assert!((pair[0] + pair[1] - 1.0).abs() < 1e-6, "{text}");
        assert_eq!(
            (&text[1]["name"], &text[1]["shape"]),
            (&json!("treeshap_output"), &json!([1, 7]))
        );
        let log = server.log();
        assert!(log.contains("model 'json': parameter 'storage_type' has no effect"), "{log}");
        assert!(server.stop().success());
    }
}

/// Files that cannot be loaded, and what is said of them; the others are served.
#[test]
fn errors_name_model_and_file() {
    let text = model_file("lgbm_binary/1/model.txt");
    let half = &text[..text.len() / 3];
    let server = Server::new()
        .flag("--strict-model-config=false")
        .flag("--exit-on-error=false")
        .copy_model("tests/models/trees/lgbm_binary")
        .model("swapped", "platform: \"xgboost\" default_model_filename: \"model.txt\"")
        .file("swapped/1/model.txt", &text)
        .model("cut", "")
        .file("cut/1/model.txt", half)
        .model("pointer", "platform: \"lightgbm\"")
        .file("pointer/1/model.txt", "version https://git-lfs.github.com/spec/v1\n")
        .model("page", "backend: \"fil\" platform: \"xgboost\"")
        .file("page/1/model.json", "<!DOCTYPE html>")
        .model("two", "backend: \"fil\" platform: \"lightgbm\"")
        .file("two/1/a.txt", &text)
        .file("two/1/b.txt", &text)
        .model(
            "wide",
            "backend: \"fil\" max_batch_size: 8
            input [ { name: \"x\" data_type: TYPE_FP32 dims: [ 7 ] } ]",
        )
        .file("wide/1/model.txt", &text)
        .start();
    let index = server.post("/v2/repository/index", &[], "").json();
    let reason = |model: &str| {
        let entries = index.as_array().expect("a list");
        let found = entries.iter().find(|entry| entry["name"] == model).expect("the model");
        found["reason"].as_str().unwrap_or_default().to_owned()
    };
    for (model, expected) in [
        ("swapped", "model.txt: the file is a LightGBM model, and the platform is 'xgboost'"),
        ("cut", "cut/1/model.txt: the file is truncated: it ends within the model"),
        ("pointer", "pointer/1/model.txt: the file is a Git LFS pointer and not the model"),
        ("page", "page/1/model.json: the file is an HTML page and not a model"),
        ("two", "expected one model, found 'a.txt', 'b.txt': default_model_filename chooses one"),
        ("wide", "input 'x' has dims [7], and the model has 6 features: expected dims [6]"),
    ] {
        assert!(reason(model).contains(expected), "{model}: {}", reason(model));
    }
    let row = [0.0; 6];
    assert_eq!(ask(&server, "lgbm_binary", &row)["outputs"][0]["shape"], json!([1, 1]));
    let refused = ask(&server, "lgbm_binary", &row[..5])["error"].clone();
    assert!(refused.as_str().is_some_and(|text| text.contains("[-1,6]")), "{refused}");
    assert!(server.stop().success());
}

/// libxgboost.so would follow the numbers of features wherever they lead: they are checked before.
#[test]
fn a_file_whose_trees_lead_nowhere_fails_its_own_model() {
    let text = String::from_utf8(model_file("xgb_binary/1/model.json")).expect("JSON");
    let key = "\"split_indices\":[";
    let at = text.find(key).expect("a tree") + key.len();
    let damaged = format!("{}90000000{}", &text[..at], &text[at..]);
    let server = Server::new()
        .flag("--strict-model-config=false")
        .flag("--exit-on-error=false")
        .copy_model("tests/models/trees/xgb_binary")
        .model("damaged", "platform: \"xgboost\"")
        .file("damaged/1/model.json", damaged)
        .start();
    let index = server.post("/v2/repository/index", &[], "").json();
    let entries = index.as_array().expect("a list");
    let damaged = entries.iter().find(|entry| entry["name"] == "damaged").expect("the model");
    let reason = damaged["reason"].as_str().unwrap_or_default();
    let expected = "the file is damaged: tree 0: node 0 splits feature 900000001 of 6";
    assert!(reason.contains("model.json: ") && reason.contains(expected), "{index}");
    assert_eq!(ask(&server, "xgb_binary", &[0.0; 6])["outputs"][0]["shape"], json!([1, 1]));
    assert!(server.stop().success());
}

/// A server without the libraries says how to get them, and serves other models.
#[test]
fn missing_libraries() {
    let dir = folder();
    let file = "libtrtserver_fil.so";
    let to = dir.path().join("backends/fil");
    fs::create_dir_all(&to).expect("a folder");
    fs::copy(backends().join("fil").join(file), to.join(file)).expect("the plugin");
    let server = Server::new()
        .backend_dir(dir.path().join("backends"))
        .env("LD_LIBRARY_PATH", "")
        .env("TRTSERVER_LIGHTGBM_LIBRARY", dist().join("lib/lib_lightgbm.so"))
        .env("TRTSERVER_XGBOOST_LIBRARY", "")
        .flag("--strict-model-config=false")
        .flag("--exit-on-error=false")
        .copy_model("tests/models/trees/lgbm_binary")
        .copy_model("tests/models/trees/xgb_binary")
        .start();
    assert_eq!(ask(&server, "lgbm_binary", &[0.0; 6])["outputs"][0]["shape"], json!([1, 1]));
    let index = server.post("/v2/repository/index", &[], "").text();
    for part in [
        "XGBoost library not found; looked for libxgboost.so*",
        &dir.path().join("lib").display().to_string(),
        "pip install xgboost-cpu",
        "--backend-config=fil,xgboost-library=PATH",
        "TRTSERVER_XGBOOST_LIBRARY=PATH",
    ] {
        assert!(index.contains(part), "no {part:?} in {index}");
    }
    assert!(server.stop().success());
}

/// The models of the examples, beside the process of one of them.
#[test]
fn examples() {
    let server = Server::new().copy_models("examples/models-trees").start();
    let pixels = fs::read(root().join("examples/digits/seven.f32")).expect("the picture");
    let pixels = pixels.chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let pixels: Vec<f64> = pixels.map(f64::from).collect();
    for model in ["digits_lightgbm", "digits_xgboost"] {
        let scores = ask(&server, model, &pixels)["outputs"][0]["data"].clone();
        assert!(scores[7].as_f64().is_some_and(|seven| seven > 0.5), "{model}: {scores}");
    }
    assert!(process(&server, "digits_xgboost").as_raw_nonzero().get() > 0);
    assert!(server.stop().success());
}
