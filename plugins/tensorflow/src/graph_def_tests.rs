//! Unit tests of `graph_def.rs`.

use super::*;
use crate::tensorflow_files::{Node, entry, field, library, node, number, placeholder, versions};

fn names(tensors: &[GraphTensor]) -> Vec<&str> {
    tensors.iter().map(|tensor| tensor.name.as_str()).collect()
}

#[test]
fn tensor_names_have_an_optional_index() {
    for (name, expected) in [
        ("x", ("x", 0)),
        ("x:0", ("x", 0)),
        ("scope/x:12", ("scope/x", 12)),
        ("x:", ("x:", 0)),
        ("x:-1", ("x:-1", 0)),
        ("x:99999", ("x:99999", 0)),
        ("", ("", 0)),
    ] {
        assert_eq!(tensor_name(name), expected);
    }
}

#[test]
fn placeholders_and_ends_are_found() {
    let split = Node {
        name: "s",
        kind: "Split",
        inputs: &["c", "a"],
        attributes: entry(5, "num_split", number(3, 3)),
    };
    let bytes = [
        placeholder("a", 1, Some(&[-1, 16])),
        placeholder("b", 7, None),
        placeholder("scalar", 9, Some(&[])),
        node("c", "Const", &[]),
        split.encode(1),
        node("y", "Add", &["s:2", "b", "^init"]),
        node("init", "NoOp", &[]),
        node("z", "Identity", &["a"]),
        versions(),
    ];
    let bytes = bytes.concat();
    let graph = GraphDefView::read(&bytes).unwrap();
    let ends = graph.ends();
    assert_eq!(names(&ends.inputs), ["a", "b", "scalar"]);
    assert_eq!(names(&ends.outputs), ["y", "z"]);
    assert_eq!((ends.inputs[0].data_type, &ends.inputs[0].dims), (1, &Some(vec![-1, 16])));
    assert_eq!((ends.inputs[1].data_type, &ends.inputs[1].dims), (7, &None));
    assert_eq!(ends.inputs[2].dims, Some(vec![]));
    assert_eq!((ends.outputs[0].data_type, &ends.outputs[0].dims), (types::UNKNOWN, &None));
    assert_eq!(graph.operation("s").unwrap().n_outputs, Some(3));
    assert_eq!(graph.operation("y").unwrap().n_outputs, None);

    // An old graph has no shape of placeholders without dimensions.
    let old = bytes[..bytes.len() - versions().len()].to_vec();
    assert_eq!(GraphDefView::read(&old).unwrap().ends().inputs[2].dims, None);
}

#[test]
fn placeholders_that_an_output_needs_are_found() {
    let bytes = [
        placeholder("a", 1, None),
        placeholder("b", 1, None),
        placeholder("c", 1, None),
        node("d", "PlaceholderWithDefault", &["a"]),
        node("m", "Merge", &["c"]),
        node("y", "Add", &["d", "^b"]),
        node("z", "Add", &["y:0", "m:0", "absent", "loop"]),
        node("loop", "NextIteration", &["z"]),
    ];
    let bytes = bytes.concat();
    let graph = GraphDefView::read(&bytes).unwrap();
    let unfed = |output, fed: &[&str]| graph.unfed(output, &fed.iter().copied().collect());
    assert_eq!(unfed("z", &[]), ["a", "b"]);
    assert_eq!(unfed("z", &["d"]), ["b"]);
    assert_eq!(unfed("z", &["a", "b"]), [""; 0]);
    assert_eq!(unfed("c", &[]), ["c"]);
    assert_eq!(unfed("absent", &[]), [""; 0]);
}

#[test]
fn malformed_graphs_are_refused() {
    let refusal = |bytes: &[u8]| GraphDefView::read(bytes).unwrap_err().to_string();
    let good = placeholder("a", 1, Some(&[-1, 16]));
    for end in 1..good.len() {
        assert_eq!(refusal(&good[..end]), "not a GraphDef: truncated message", "{end}");
    }
    assert_eq!(refusal(b"<html></html>"), "not a GraphDef: groups are not supported");
    assert_eq!(refusal(&[good.clone(), good].concat()), "not a GraphDef: two operations named 'a'");
    let nameless = field(1, field(2, "NoOp"));
    assert_eq!(refusal(&nameless), "not a GraphDef: an operation without a name");
    let latin = field(1, field(1, [0xe9]));
    assert_eq!(refusal(&latin), "not a GraphDef: name of an operation is not UTF-8");
    for (dims, text) in [(vec![-2], "a dimension of -2"), (vec![1; 255], "254 dimensions")] {
        assert!(refusal(&placeholder("a", 1, Some(&dims))).contains(text));
    }
    let cycle = [node("x", "f", &[]), library(&[("f", &["f"])])].concat();
    assert_eq!(refusal(&cycle), "cyclic function library: f -> f");
}
