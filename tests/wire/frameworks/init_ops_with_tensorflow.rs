//! `TF_INIT_OPS_FILE`: operations of a GraphDef that each session runs before its first request.

use serde_json::json;
use trtserver_tests::tensorflow_files::{
    Node, entry, field, number, placeholder, shape, typed, versions,
};
use trtserver_tests::{Server, parameters};

const TEXT: i64 = 7;
const INT64: i64 = 9;

/// An operation with types as attributes.
fn with_types(name: &str, kind: &str, inputs: &[&str], types: [&str; 2]) -> Vec<u8> {
    let types = types.into_iter().zip([TEXT, INT64]);
    let attributes = types.flat_map(|(key, value)| entry(5, key, number(6, value))).collect();
    Node { name, kind, inputs, attributes }.encode(1)
}

/// A constant; `values` are encoded fields of its `TensorProto`.
fn constant(name: &str, data_type: i64, dims: &[i64], values: Vec<u8>) -> Vec<u8> {
    let tensor = [number(1, data_type), field(2, shape(Some(dims))), values].concat();
    let dtype = entry(5, "dtype", number(6, data_type));
    let attributes = [dtype, entry(5, "value", field(8, tensor))].concat();
    Node { name, kind: "Const", inputs: &[], attributes }.encode(1)
}

/// `y` = the number of the word `x` in a table that `fill` fills.
fn graph() -> Vec<u8> {
    [
        placeholder("x", TEXT, Some(&[-1])),
        with_types("table", "HashTableV2", &[], ["key_dtype", "value_dtype"]),
        constant("keys", TEXT, &[2], [field(8, "one"), field(8, "two")].concat()),
        constant("values", INT64, &[2], [number(10, 1), number(10, 2)].concat()),
        constant("other", INT64, &[], number(10, -1)),
        with_types("fill", "InitializeTableV2", &["table", "keys", "values"], ["Tkey", "Tval"]),
        with_types("find", "LookupTableFindV2", &["table", "x", "other"], ["Tin", "Tout"]),
        typed("y", "Identity", &["find"], INT64),
        versions(),
    ]
    .concat()
}

fn config(file: &str, more: &str) -> String {
    "platform: \"tensorflow_graphdef\"
     input { name: \"x\" data_type: TYPE_STRING dims: [ -1 ] }
     output { name: \"y\" data_type: TYPE_INT64 dims: [ -1 ] }\n"
        .to_owned()
        + &parameters(&[("TF_INIT_OPS_FILE", file)])
        + more
}

#[test]
fn operations_of_the_file_are_run_in_each_session() {
    let own_sessions = parameters(&[("TF_SESSION_PER_INSTANCE", "true")])
        + "instance_group { kind: KIND_CPU count: 2 }";
    let server = Server::new()
        .flag("--exit-on-error=false")
        .flag("--strict-readiness=false")
        .model("words", config("init_ops.json", &own_sessions))
        .file("words/1/model.graphdef", graph())
        .file("words/init_ops.json", r#"{"init_ops": ["fill"]}"#)
        .model("absent", config("init_ops.json", ""))
        .file("absent/1/model.graphdef", graph())
        .model("wrong", config("init_ops.json", ""))
        .file("wrong/1/model.graphdef", graph())
        .file("wrong/1/init_ops.json", r#"{"init_ops": ["nowhere"]}"#)
        .start();
    let body =
        r#"{"inputs":[{"name":"x","datatype":"BYTES","shape":[3],"data":["two","six","one"]}]}"#;
    for _ in 0..8 {
        let response = server.post("/v2/models/words/infer", &[], body);
        assert_eq!(response.json()["outputs"][0]["data"], json!([2, -1, 1]), "{}", response.text());
    }
    server.wait_for_log_with(&["failed to load 'absent'", "there is no file 'init_ops.json' in "]);
    server.wait_for_log_with(&["failed to load 'wrong'", "no operation 'nowhere' to run"]);
    assert!(server.stop().success());
}
