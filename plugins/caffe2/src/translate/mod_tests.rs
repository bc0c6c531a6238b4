//! Unit tests of the translation as a whole; `src/tests` compares results of operators with
//! Caffe2's.

use super::*;
use crate::netdef::read_net;

fn net(text: &str) -> NetDef {
    read_net(text.as_bytes()).unwrap()
}

fn image() -> NetInput {
    NetInput { name: "x".into(), element: tensor::element::FLOAT, dims: vec![-1, 3, 4, 4] }
}

fn run(init: &str, predict: &str) -> Result<ModelProto, TranslationRefusal> {
    run_with(init, predict, &[])
}

fn run_with(
    init: &str,
    predict: &str,
    configured: &[&str],
) -> Result<ModelProto, TranslationRefusal> {
    let (predict, configured) = (net(predict), configured.iter().map(|&name| name.to_owned()));
    let outputs = NetOutputs::from_net(&predict, &configured.collect::<Vec<_>>(), &[]);
    translate_nets(net(init), predict, &[image()], &outputs, 1 << 20)
}

const EMPTY: &str = "name: \"init\"";

#[test]
fn overwritten_blobs_become_values_of_their_own() {
    let predict = r#"
        op { input: "x" output: "y" type: "Relu" } op { input: "y" output: "y" type: "Sigmoid" }
        op { input: "y" output: "unused" type: "Tanh" }
        external_input: "x" external_output: "y""#;
    let graph = run(EMPTY, predict).unwrap().graph.unwrap();
    let nodes: Vec<&str> = graph.node.iter().map(|node| &node.op_type[..]).collect();
    assert_eq!(nodes, ["Relu", "Sigmoid"]);
    assert_eq!(graph.node[0].output, graph.node[1].input);
    assert_eq!(graph.node[1].output, ["y"]);
}

#[test]
fn outputs_without_a_node_of_their_own_are_copied() {
    let init = r#"op { output: "w" type: "GivenTensorFill" arg { name: "shape" ints: 1 } arg { name: "values" floats: 2 } }"#;
    let predict = r#"
        op { input: "x" output: "y" type: "Copy" } op { input: "y" output: "z" output: "mask" type: "Dropout" }
        external_input: "x" external_input: "w" external_output: "x" external_output: "y" external_output: "z"
        external_output: "w""#;
    let graph = run(init, predict).unwrap().graph.unwrap();
    let copies: Vec<&str> = graph.node.iter().map(|node| &node.output[0][..]).collect();
    assert_eq!(copies, ["y", "z", "w"]);
    assert_eq!(graph.output.len(), 4);
}

#[test]
fn net_without_external_output_has_the_configured_outputs_or_those_of_its_last_operator() {
    let predict = r#"
        op { input: "x" output: "a" type: "Relu" } op { input: "a" output: "b" type: "Tanh" }
        op { input: "b" output: "y" output: "mask" type: "Dropout" } external_input: "x""#;
    let listed = format!("{predict} external_output: \"b\"");
    for (predict, configured, want) in [
        (predict, &[][..], &["y"][..]),
        (predict, &["a", "y"], &["a", "y"]),
        // What the net lists counts.
        (&listed, &["a"], &["b"]),
    ] {
        let graph = run_with(EMPTY, predict, configured).unwrap().graph.unwrap();
        let outputs: Vec<&str> = graph.output.iter().map(|output| &output.name[..]).collect();
        assert_eq!(outputs, want, "{configured:?}");
    }
    for (configured, want) in [
        ("c", "no operator writes output 'c' of the model configuration (the net lists no"),
        (
            "mask",
            "output 'mask' of the model configuration (the net lists no external_output) is an output of",
        ),
    ] {
        let refusal = run_with(EMPTY, predict, &[configured]).unwrap_err();
        assert!(refusal.text.contains(want), "{}", refusal.text);
    }
    let refusal = run(EMPTY, "external_input: \"x\"").unwrap_err();
    assert!(refusal.text.contains("its last operator has no output"), "{}", refusal.text);
}

#[test]
fn refusals_name_net_operator_and_output() {
    let text = |init: &str, predict: &str| {
        let refusal = run(init, predict).unwrap_err();
        (refusal.net, refusal.text)
    };
    let relu =
        r#"op { input: "x" output: "y" type: "Relu" } external_input: "x" external_output: "y" "#;
    let (at, refusal) = text("op { output: \"w\" type: \"XavierFill\" }", relu);
    assert_eq!(at, NetPart::Init);
    assert!(
        refusal.starts_with("operator 'XavierFill' (number 0, output 'w'): it writes random"),
        "{refusal}"
    );
    let cases = [
        (
            "op { input: \"x\" output: \"y\" type: \"RoIAlign\" }",
            "operator 'RoIAlign' (number 0, output 'y'): the operator is not",
        ),
        (
            "op { input: \"x\" output: \"y\" type: \"Int8Relu\" }",
            "(number 0, output 'y'): quantised operators are not supported",
        ),
        // A cycle: the first of two operators reads what the second writes.
        (
            "op { input: \"b\" output: \"a\" type: \"Relu\" } op { input: \"a\" output: \"b\" type: \"Relu\" }",
            "it reads blob 'b', which no operator before it writes and which is not an input",
        ),
        (
            "op { input: \"x\" output: \"y\" output: \"m\" type: \"Dropout\" } op { input: \"m\" output: \"z\" type: \"Relu\" }",
            "it reads blob 'm', an output of operator 'Dropout' (number 0, output 'y') that is not computed",
        ),
        (
            "op { input: \"x\" output: \"x\" type: \"Relu\" } external_output: \"x\"",
            "blob 'x' is an input that the net overwrites and an output, so the name has two meanings",
        ),
        ("external_output: \"q\"", "no operator writes external_output 'q'"),
        (
            "op { input: \"x\" output: \"y\" type: \"Elu\" arg { name: \"alpha\" i: 1 } }",
            "its argument 'alpha' is not a floating-point number",
        ),
        (
            "op { input: \"x\" output: \"y\" type: \"FC\" }",
            "it has 1 inputs, at least 2 are needed",
        ),
    ];
    for (predict, expected) in cases {
        let (at, refusal) = text(EMPTY, predict);
        assert_eq!(at, NetPart::Predict);
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn weights_beyond_the_limit_are_refused_before_they_are_made() {
    let init = r#"op { output: "w" type: "ConstantFill" arg { name: "shape" ints: 1000000 ints: 1000000 } }"#;
    let predict = r#"op { input: "x" input: "w" output: "y" type: "Add" } external_input: "x" external_output: "y""#;
    let refusal = run(init, predict).unwrap_err();
    assert_eq!(refusal.text, "the weights have 4000000000000 bytes, the limit is 1048576");
    let refusal = run(&init.replace("1000000 ", "9223372036854775807 "), predict).unwrap_err();
    assert!(refusal.text.contains("more than can be addressed"), "{}", refusal.text);
}
