//! Unit tests of `state.rs`.

use super::*;
use crate::tensorflow_files::{call, field, node, number, placeholder};

fn operation(name: &str, stateful: bool) -> Vec<u8> {
    field(1, [field(1, name), number(17, stateful.into())].concat())
}

/// A function with one node of this kind, as the library of a graph.
fn function(name: &str, kind: &str) -> Vec<u8> {
    let node = field(3, [field(1, "n"), field(2, kind)].concat());
    field(2, field(1, [field(1, field(1, name)), node].concat()))
}

#[test]
fn operations_with_state_are_found_where_outputs_need_them() {
    let known = stateful_operations(
        &[
            ("Add", false),
            ("AssignVariableOp", true),
            ("PartitionedCall", false),
            ("Placeholder", false),
            ("ReadVariableOp", true),
            ("RandomUniform", true),
            ("TensorArrayWriteV3", true),
            ("VariableV2", true),
        ]
        .map(|(name, stateful)| operation(name, stateful))
        .concat(),
    )
    .unwrap();
    assert_eq!((known.len(), known["Add"], known["VariableV2"]), (8, false, true));
    let graph = [
        placeholder("x", 1, None),
        node("sum", "Add", &["x:0", "read"]),
        node("read", "ReadVariableOp", &["random"]),
        node("random", "RandomUniform", &["array", "variable"]),
        node("array", "TensorArrayWriteV3", &[]),
        node("variable", "VariableV2", &[]),
        node("assigned", "AssignVariableOp", &["x"]),
        node("after", "Add", &["x", "^assigned"]),
        node("custom", "MyOp", &["x"]),
        node("number", "StringToNumber", &["x"]),
        call(1, "called", "f"),
        function("f", "AssignVariableOp"),
    ]
    .concat();
    let found = |outputs: &[&str]| find_state(&graph, outputs, &known).unwrap().keeping;
    let needs_nul = |output: &str| find_state(&graph, &[output], &known).unwrap().needs_nul;
    assert!(needs_nul("number") && !needs_nul("sum"));
    assert_eq!(found(&["sum", "x", "absent"]), [""; 0]);
    assert_eq!(found(&["after"]), ["AssignVariableOp"]);
    assert_eq!(found(&["called"]), ["AssignVariableOp"]);
    assert_eq!(found(&["custom", "after"]), ["AssignVariableOp", "MyOp"]);
}
