//! ONNX files whose declarations mislead: first dimensions that are not a batch, shapes of outputs,
//! maps.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use trtserver_tests::{Running, Server, root};

/// A model of `tests/models/completion`.
fn file(model: &str) -> Vec<u8> {
    let path = root().join("tests/models/completion").join(model).join("1/model.onnx");
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A server with models: name, file, configuration.
fn with(server: Server, models: &[(&str, &str, &str)]) -> Server {
    models.iter().fold(server, |server, (name, of, config)| {
        server.model(name, config).file(&format!("{name}/1/model.onnx"), file(of))
    })
}

fn config(server: &Running, model: &str) -> Value {
    server.get(&format!("/v2/models/{model}/config")).json()
}

/// Shape and data of the outputs by name, or status and text of the error.
fn infer(
    server: &Running,
    model: &str,
    (name, datatype, shape): (&str, &str, &[usize]),
    data: &Value,
) -> Result<BTreeMap<String, (Value, Value)>, (u16, String)> {
    let input = json!({ "name": name, "datatype": datatype, "shape": shape, "data": data });
    let body = json!({ "inputs": [input] }).to_string();
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    if response.status != 200 {
        return Err((response.status, response.error_text()));
    }
    let outputs = response.json()["outputs"].as_array().cloned().unwrap_or_default();
    let output = |output: Value| {
        let name = output["name"].as_str().unwrap_or_default().to_owned();
        (name, (output["shape"].clone(), output["data"].clone()))
    };
    Ok(outputs.into_iter().map(output).collect())
}

/// Eight clients at once, each with 20 requests of its own number below eight.
fn clients(request: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for client in 0..8 {
            let request = &request;
            scope.spawn(move || (0..20).for_each(|nth| request((client + nth) % 8)));
        }
    });
}

/// One positive score.
fn scores(class: usize) -> Value {
    (0..8).map(|at| if at == class { 1 } else { -1 }).collect()
}

#[test]
fn clients_get_their_own_rows_of_models_that_do_not_batch() {
    let models =
        ["detector", "detector_unnamed", "first_row", "running_sum"].map(|name| (name, name, ""));
    let server = with(Server::new().triton_start_line(), &models).start();
    for (model, why) in [
        (
            "detector",
            "the first dimension of input 'scores' is named 'batch' in the file, that of output 'boxes' is named 'num_dets'",
        ),
        (
            "detector_unnamed",
            "a run of 2 rows of zeros returned output 'boxes' of shape [0,2], whose first dimension is not 2",
        ),
        (
            "first_row",
            "a run of 2 rows of zeros returned output 'y' of shape [1,4], whose first dimension is not 2",
        ),
        ("running_sum", "a row of output 'y' depends on the other rows of the run"),
    ] {
        let config = config(&server, model);
        assert_eq!(config["max_batch_size"], 0, "{config}");
        assert!(config["dynamic_batching"].is_null(), "{config}");
        let line = format!(
            "model '{model}': max_batch_size is completed as 0: {why}; a configuration with"
        );
        server.wait_for_log(&line);
    }
    clients(|class| {
        for model in ["detector", "detector_unnamed"] {
            let found = infer(&server, model, ("scores", "FP32", &[1, 8]), &scores(class)).unwrap();
            assert_eq!(found["boxes"], (json!([1, 2]), json!([0, class])), "{model}");
        }
        let row = json!([class as f64, 1.0, 2.0, 3.0]);
        let found = infer(&server, "running_sum", ("x", "FP32", &[1, 4]), &row).unwrap();
        assert_eq!(found["y"], (json!([1, 4]), row));
    });
    assert!(server.stop().success());
}

#[test]
fn models_that_batch_are_found_by_a_run() {
    let models = ["embedding", "window"].map(|name| (name, name, ""));
    let server = with(Server::new().triton_start_line(), &models).start();
    for model in ["embedding", "window"] {
        let config = config(&server, model);
        assert_eq!(config["max_batch_size"], 4, "{config}");
        assert!(config["dynamic_batching"].is_object(), "{config}");
    }
    clients(|n| {
        let sums =
            infer(&server, "embedding", ("tokens", "INT64", &[1, 2]), &json!([n, 1])).unwrap();
        let sum = |at: usize| 3 * n + 3 + 2 * at;
        assert_eq!(
            sums["sum"],
            (json!([1, 3]), json!([sum(0) as f64, sum(1) as f64, sum(2) as f64]))
        );
    });
    assert!(server.stop().success());
}

const BATCHING: &str = "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 50000 preferred_batch_size: [ 8 ] }";

/// The user says that the model batches, and no run is asked at load.
#[test]
fn outputs_without_the_rows_of_a_batch_are_not_scattered() {
    let models =
        [("first_row", "first_row", BATCHING), ("detector", "detector", "max_batch_size: 8")];
    let server = with(Server::new().triton_start_line(), &models).start();
    assert_eq!(config(&server, "first_row")["max_batch_size"], 8);
    clients(|n| {
        let row = json!([n as f64, 1.0, 2.0, 3.0]);
        let outputs = infer(&server, "first_row", ("x", "FP32", &[1, 4]), &row).unwrap();
        assert_eq!(outputs["y"], (json!([1, 4]), row));
    });
    let log = server.wait_for_log("requests are executed one by one from now on");
    assert_eq!(
        log.matches("model 'first_row', output 'y': expected a first dimension of").count(),
        1,
        "{log}"
    );

    let two = json!([1, -1, -1, 1, -1, -1, -1, -1]);
    let (status, text) = infer(&server, "detector", ("scores", "FP32", &[1, 8]), &two).unwrap_err();
    let expected = "model 'detector', output 'boxes': expected a first dimension of 1, the number of rows of the run, \
                    found shape [2,2]";
    assert!(status == 500 && text.contains(expected), "{status} {text}");
    let config = config(&server, "detector");
    assert!(config["dynamic_batching"].is_null(), "{config}");
    server.wait_for_log("model 'detector': dynamic_batching is not completed: the first dimension of input 'scores'");
    assert!(server.stop().success());
}

fn tensor(name: &str, data_type: &str, dims: &str) -> String {
    format!("[ {{ name: \"{name}\" data_type: {data_type} {dims} }} ]")
}

/// The configuration of a model with one input and one output.
fn configured(input: &str, output: &str, more: &str) -> String {
    format!("input {input} output {output} {more}")
}

#[test]
fn actual_shapes_are_returned_where_the_file_declares_wrong_ones() {
    let isolated = "parameters { key: \"isolation\" value { string_value: \"process\" } }";
    let models = [
        ("label", "label", ""),
        ("isolated", "label", isolated),
        ("pages", "pages", ""),
        ("narrowed", "narrowed", ""),
    ];
    let server = with(Server::new().flag("--strict-model-config=false"), &models).start();
    let rows = json!([1, 0, 0, 0, 0, 1, 0, 1, 0]);
    for model in ["label", "isolated"] {
        let config = config(&server, model);
        assert_eq!(
            (&config["max_batch_size"], &config["output"][0]["dims"]),
            (&json!(0), &json!([1]))
        );
        for _ in 0..3 {
            let outputs = infer(&server, model, ("x", "FP32", &[3, 3]), &rows).unwrap();
            assert_eq!(outputs["label"], (json!([3]), json!([10, 30, 20])), "{model}");
            let outputs = infer(&server, model, ("x", "FP32", &[1, 3]), &json!([0, 0, 1])).unwrap();
            assert_eq!(outputs["label"], (json!([1]), json!([30])), "{model}");
        }
        let line = format!(
            "model '{model}', output 'label': the file declares shape [1] and a run returned [3]"
        );
        let log = server.wait_for_log(&line);
        assert_eq!(log.matches(&line).count(), 1, "{log}");
    }
    let outputs =
        infer(&server, "pages", ("x", "FP32", &[2, 4]), &json!([1, 2, 3, 4, 5, 6, 7, 8])).unwrap();
    assert_eq!(outputs["y"].0, json!([15, 2, 4]));
    // The graph as it is read and as it is run say different things.
    assert_eq!(config(&server, "narrowed")["output"][0]["dims"], json!([1, -1, 4]));
    let outputs = infer(&server, "narrowed", ("x", "FP32", &[1, 4]), &json!([1, 2, 3, 4])).unwrap();
    assert_eq!(outputs["hn"], (json!([1, 1, 4]), json!([1.0, 2.0, 3.0, 4.0])));
    assert!(server.stop().success());
}

#[test]
fn lines_of_the_runtime_name_the_model() {
    let isolated = "parameters { key: \"isolation\" value { string_value: \"process\" } }";
    let models = [("here", "label", ""), ("apart", "label", isolated)];
    let server = with(Server::new().flag("--strict-model-config=false"), &models).start();
    let rows = json!([1, 0, 0, 0, 0, 1, 0, 1, 0]);
    for (model, _, _) in models {
        // The library warns that the file declares another shape of the output.
        infer(&server, model, ("x", "FP32", &[3, 3]), &rows).unwrap();
        server.wait_for_log_with(&[
            &format!("onnx runtime: model '{model}' version 1: "),
            "Expected shape from model",
        ]);
    }
    let log = server.log();
    let unnamed =
        |line: &&str| line.contains("onnx runtime: ") && !line.contains("runtime: model '");
    assert_eq!(log.lines().find(unnamed), None);
}

#[test]
fn configured_shapes_of_outputs_win_over_the_file() {
    let x = |dims| tensor("x", "TYPE_FP32", dims);
    let y = |dims| tensor("y", "TYPE_FP32", dims);
    let right = configured(&x("dims: [ -1, 4 ]"), &y("dims: [ 15, -1, 4 ]"), "");
    let wrong = configured(&x("dims: [ -1, 4 ]"), &y("dims: [ 14, -1, 4 ]"), "");
    let label = tensor("label", "TYPE_INT64", "dims: [ 1 ] reshape { shape: [ ] }");
    let batch = configured(&x("dims: [ 3 ]"), &label, BATCHING);
    let fixed = configured(&x("dims: [ 1, 4 ]"), &y("dims: [ 15, 1, 4 ]"), "");
    let models = [
        ("right", "pages", &*right),
        ("fixed", "pages", &fixed),
        ("wrong", "pages", &wrong),
        ("label", "label", &batch),
    ];
    let server = with(Server::new(), &models).start();
    let values = json!([1, 2, 3, 4]);
    for model in ["right", "fixed"] {
        let outputs = infer(&server, model, ("x", "FP32", &[1, 4]), &values).unwrap();
        assert_eq!(outputs["y"].0, json!([15, 1, 4]), "{model}");
    }
    server.wait_for_log(
        "model 'right': output 'y': the file declares shape [1,-1], the model configuration specifies [15,-1,4], which is used",
    );
    let refused = infer(&server, "wrong", ("x", "FP32", &[1, 4]), &values).unwrap_err();
    let text = "output 'y' for model 'wrong' has shape [15,1,4] but model configuration specifies shape [14,-1,4]";
    assert_eq!(refused, (400, text.to_owned()));
    clients(|n| {
        let row = (0..3).map(|at| if at == n % 3 { 1 } else { 0 }).collect();
        let outputs = infer(&server, "label", ("x", "FP32", &[1, 3]), &row).unwrap();
        assert_eq!(outputs["label"], (json!([1, 1]), json!([10 * (n % 3 + 1)])));
    });
    assert!(!server.log().contains("one by one"));
    assert!(server.stop().success());
}

#[test]
fn outputs_that_are_not_tensors_are_named_with_the_way_out() {
    let server = Server::new().flag("--strict-model-config=false");
    let server = with(server, &[("zipmap", "zipmap", "")]).start();
    server.wait_for_log(
        "model 'zipmap': output 'probabilities' is a sequence and left out: only dense tensors can be sent to clients; \
         converters for scikit-learn, LightGBM and XGBoost write a tensor instead with the option zipmap=False",
    );
    let outputs = config(&server, "zipmap")["output"].clone();
    assert_eq!(outputs.as_array().map(Vec::len), Some(1), "{outputs}");
    let outputs = infer(&server, "zipmap", ("x", "FP32", &[1, 2]), &json!([0, 1])).unwrap();
    assert_eq!(outputs["label"].1, json!([1]));
    assert!(server.stop().success());

    let input = tensor("x", "TYPE_FP32", "dims: [ -1, 2 ]");
    let asked = configured(&input, &tensor("probabilities", "TYPE_FP32", "dims: [ -1, 2 ]"), "");
    let ended = with(Server::new(), &[("zipmap", "zipmap", &asked)]).refuses_to_start();
    assert!(ended.stderr.contains("the model has a sequence here"), "{}", ended.stderr);
    assert!(ended.stderr.contains("zipmap=False"), "{}", ended.stderr);
}

/// First mistakes: each error says what to do.
#[test]
fn files_that_are_not_a_served_model_are_called_what_they_are() {
    let model = file("embedding");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let server = Server::new()
        .flag("--strict-model-config=false")
        .flag("--exit-on-error=false")
        .flag("--strict-readiness=false")
        .file("beside/model.onnx", &model)
        .file("renamed/1/bert.onnx", &model)
        .file("pointer/1/model.onnx", pointer)
        .file("page/1/model.onnx", "<!DOCTYPE html><html></html>")
        .file("cut/1/model.onnx", &model[..model.len() / 2])
        .file("good/1/model.onnx", &model)
        .start();
    let index = server.post("/v2/repository/index", &[], "").json();
    for (model, why) in [
        (
            "beside",
            "has no version directory, which is named by a number: move 'model.onnx' into '",
        ),
        (
            "renamed",
            "no model of platform 'onnxruntime_onnx': expected the file 'model.onnx'; 'bert.onnx' is served once",
        ),
        ("pointer", "the file is a Git LFS pointer and not the model"),
        ("page", "the file is an HTML page and not a model"),
        ("cut", "the file is truncated"),
    ] {
        let entry = index.as_array().unwrap().iter().find(|entry| entry["name"] == model);
        let reason = entry.map(|entry| entry["reason"].to_string()).unwrap_or_default();
        assert!(reason.contains(why), "{model}: {index}");
    }
    let size = config(&server, "good")["max_batch_size"].as_u64().unwrap() as usize;
    let many = vec![1; size + 1];
    let (status, text) =
        infer(&server, "good", ("tokens", "INT64", &[size + 1, 1]), &json!(many)).unwrap_err();
    let expected = format!(
        "batch-size must be <= {size} for 'good'; its configuration file has no max_batch_size, and {size} is the"
    );
    assert!(status == 400 && text.contains(&expected), "{text}");
    assert!(server.stop().success());
}
