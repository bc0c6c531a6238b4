//! GraphDefs whose shapes contradict the configuration, and the generation of TensorFlow.

use serde_json::{Value, json};
use trtserver_tests::tensorflow_files::{placeholder, typed, versions};
use trtserver_tests::{Running, Server};

const FLOAT: i64 = 1;

/// `y` is `x`, whose placeholder has this shape; `config` has the batch size and the dimensions.
fn identity(
    server: Server,
    name: &str,
    declared: &[i64],
    max_batch_size: i64,
    dims: &str,
) -> Server {
    let tensor = |field: &str, name: &str| {
        format!("{field} {{ name: \"{name}\" data_type: TYPE_FP32 dims: {dims} }}\n")
    };
    let config = format!(
        "platform: \"tensorflow_graphdef\" max_batch_size: {max_batch_size}\n{}{}",
        tensor("input", "x"),
        tensor("output", "y")
    );
    let graph = [
        placeholder("x", FLOAT, Some(declared)),
        typed("y", "Identity", &["x"], FLOAT),
        versions(),
    ];
    server.model(name, config).file(&format!("{name}/1/model.graphdef"), graph.concat())
}

fn infer(server: &Running, model: &str, shape: &[usize], data: &Value) -> Value {
    let input = json!({ "name": "x", "datatype": "FP32", "shape": shape, "data": data });
    let body = json!({ "inputs": [input] }).to_string();
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body);
    assert_eq!(response.status, 200, "{model}: {}", response.text());
    let output = &response.json()["outputs"][0];
    json!([output["shape"], output["data"]])
}

#[test]
fn configured_shapes_are_used_where_a_graph_declares_others() {
    let server = identity(Server::new(), "flat", &[-1, 1], 0, "[ 1 ]");
    let server = identity(server, "wide", &[-1, 1], 4, "[ 3 ]");
    let server = identity(server, "fixed", &[1, 2], 4, "[ 2 ]");
    let server = identity(server, "same", &[-1, 2], 4, "[ 2 ]").start();
    assert_eq!(infer(&server, "flat", &[1], &json!([5])), json!([[1], [5.0]]));
    for (model, dims) in [("wide", 3), ("fixed", 2), ("same", 2)] {
        let data: Value = (0..2 * dims).map(|n| n as f32).collect();
        assert_eq!(infer(&server, model, &[2, dims], &data), json!([[2, dims], data]), "{model}");
    }
    for (model, declared, configured) in
        [("flat", "[-1,1]", "[1]"), ("wide", "[-1,1]", "[-1,3]"), ("fixed", "[1,2]", "[-1,2]")]
    {
        server.wait_for_log_with(&[&format!(
            "model '{model}': input 'x': the graph declares shape {declared}, the model configuration specifies \
             {configured}, which is used"
        )]);
    }
    assert!(!server.log().contains("model 'same': input 'x': the graph declares"));
    assert!(server.stop().success());
}

#[test]
fn version_is_the_generation_of_tensorflow() {
    for version in ["1", "2"] {
        let server = Server::new().flag(format!("--backend-config=tensorflow,version={version}"));
        let server = identity(server, "same", &[-1, 2], 4, "[ 2 ]").start();
        assert_eq!(infer(&server, "same", &[1, 2], &json!([1, 2])), json!([[1, 2], [1.0, 2.0]]));
        let other = format!("asks for TensorFlow {version}; TensorFlow ");
        assert_eq!(server.log().contains(&other), version == "1", "{}", server.log());
        assert!(server.stop().success());
    }
    let server = Server::new().flag("--backend-config=tensorflow,version=3");
    let ended = identity(server, "same", &[-1, 2], 4, "[ 2 ]").refuses_to_start();
    let refused = "--backend-config=tensorflow,version=3 chooses the generation of TensorFlow, which is 1 or 2";
    assert!(ended.stderr.contains(refused), "{}", ended.stderr);
}
