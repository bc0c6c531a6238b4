//! Unit tests of `kernels.rs`.

use super::*;
use crate::tensorflow_files::{Node, call, entry, field, library, node, number, typed};

/// A `KernelDef` for a device that accepts these types for `T`.
fn kernel(device: &str, types: &[u8], label: &str) -> Vec<u8> {
    let constraint = match types.is_empty() {
        true => vec![],
        false => field(3, [field(1, "T"), field(2, field(1, field(6, types)))].concat()),
    };
    field(1, [field(1, "Op"), field(2, device), constraint, field(5, label)].concat())
}

fn missing(graph: &[Vec<u8>], output: &str) -> Option<String> {
    let kernels = |kind: &str| match kind {
        "Add" => Some([kernel("CPU", &[1, 2], ""), kernel("CPU", &[3], "")].concat()),
        "OnGpu" => Some(kernel("GPU", &[], "")),
        "Labelled" => Some(kernel("CPU", &[], "x")),
        "Everywhere" => Some(kernel("DEFAULT", &[], "")),
        "None" => Some(vec![]),
        _ => None,
    };
    let fed = HashSet::from(["fed"]);
    let found = find_missing(&graph.concat(), &[output], &fed, &["CPU".to_owned()], kernels);
    found.unwrap().map(|missing| missing.to_string())
}

#[test]
fn kernels_are_found_by_device_type_and_label() {
    let graph = [
        typed("a", "Add", &["fed", "b"], 2),
        typed("b", "Add", &["e"], 3),
        typed("wrong", "Add", &["a"], 7),
        node("e", "Everywhere", &["u"]),
        node("u", "Unknown", &[]),
        node("gpu", "OnGpu", &[]),
        node("labelled", "Labelled", &[]),
        node("fed", "None", &["gpu"]),
        node("after", "Everywhere", &["a", "^gpu"]),
    ];
    assert_eq!(missing(&graph, "a"), None);
    let text = "no kernel for operation 'wrong' of type 'Add' with T = TYPE_STRING";
    assert_eq!(missing(&graph, "wrong").unwrap(), text);
    let text = "no kernel for operation 'gpu' of type 'OnGpu'";
    assert_eq!(missing(&graph, "after").unwrap(), text);
    assert!(missing(&graph, "labelled").is_some());
}

#[test]
fn functions_and_operations_for_xla_are_left_to_tensorflow() {
    let attributes = entry(5, "_XlaMustCompile", number(5, 1));
    let graph = [
        node("direct", "f", &["xla"]),
        call(1, "called", "f"),
        library(&[("f", &[])]),
        Node { name: "xla", kind: "None", inputs: &[], attributes }.encode(1),
    ];
    assert_eq!(missing(&graph, "direct"), None);
    assert_eq!(missing(&graph, "called"), None);
}
