//! Unit tests of `graph_names.rs`.

use super::*;
use crate::tensorflow_files::{Node, entry, node, number, placeholder, versions};
use trtserver_framework::config::ConfiguredTensor;

fn graph() -> Vec<u8> {
    let split = Node {
        name: "tower/split",
        kind: "Split",
        inputs: &["axis", "image"],
        attributes: entry(5, "num_split", number(3, 2)),
    };
    [
        placeholder("image", 1, Some(&[-1, 16])),
        placeholder("keep", 1, Some(&[])),
        node("axis", "Const", &[]),
        split.encode(1),
        node("tower/logits", "Mul", &["tower/split:1", "keep"]),
        node("classes", "Softmax", &["tower/logits"]),
        versions(),
    ]
    .concat()
}

fn config(inputs: &[&str], outputs: &[&str]) -> Config {
    let decl =
        |name: &&str| ConfiguredTensor { name: (*name).to_owned(), ..ConfiguredTensor::default() };
    Config {
        model: "M".into(),
        inputs: inputs.iter().map(decl).collect(),
        outputs: outputs.iter().map(decl).collect(),
        ..Config::default()
    }
}

fn named(config: &Config) -> Result<Signature, String> {
    let bytes = graph();
    let graph = GraphDefView::read(&bytes).unwrap();
    configured_signature(&graph, config, Path::new("/m/1/model.graphdef"))
        .map_err(|fault| fault.text)
}

#[test]
fn tensors_are_named_by_operation_or_tensor() {
    let signature =
        named(&config(&["image:0", "keep"], &["tower/split:1", "tower/split", "classes", "image"]));
    let signature = signature.unwrap();
    let tensor = |tensor: &GraphTensor| (tensor.operation.clone(), tensor.index);
    assert_eq!(tensor(&signature.inputs[0]), ("image".into(), 0));
    assert_eq!(signature.inputs[0].name, "image:0");
    assert_eq!(signature.inputs[0].dims, Some(vec![-1, 16]));
    assert_eq!(tensor(&signature.outputs[0]), ("tower/split".into(), 1));
    assert_eq!(tensor(&signature.outputs[1]), ("tower/split".into(), 0));
    assert_eq!(signature.outputs[3].data_type, 1);
}

#[test]
fn tensors_of_the_host_are_named_after_those_of_the_configuration() {
    let mut config = config(&["image"], &["classes"]);
    config.facts.host_inputs.push("keep".into());
    config.facts.host_outputs.push("tower/logits:0".into());
    let signature = named(&config).unwrap();
    assert_eq!(signature.inputs[1].name, "keep");
    assert_eq!(signature.outputs[1].name, "tower/logits:0");
}

#[test]
fn wrong_names_are_refused() {
    let place = "unable to load model 'M' from /m/1/model.graphdef: ";
    let outputs = "allowed outputs are: classes and the outputs of all other operations";
    for (inputs, output, text) in [
        (
            ["Image", "keep"],
            "classes",
            "unexpected inference input 'Image', allowed inputs are: image, keep; similar names: image"
                .to_owned(),
        ),
        (
            ["axis", "keep"],
            "classes",
            "unexpected inference input 'axis', allowed inputs are: image, keep; 'axis' is an \
             operation of type Const"
                .to_owned(),
        ),
        (
            ["image:1", "keep"],
            "classes",
            "unexpected inference input 'image:1', allowed inputs are: image, keep; a placeholder \
             has output 0 alone"
                .to_owned(),
        ),
        (
            ["image", "image:0"],
            "classes",
            "two inputs of the configuration are the placeholder 'image'".to_owned(),
        ),
        (
            ["image", "keep"],
            "logits:0",
            format!("unexpected inference output 'logits:0', {outputs}; similar names: tower/logits"),
        ),
        (
            ["image", "keep"],
            "nothing like it",
            format!("unexpected inference output 'nothing like it', {outputs}"),
        ),
        (
            ["image", "keep"],
            "tower/split:2",
            format!(
                "unexpected inference output 'tower/split:2', {outputs}; operation 'tower/split' \
                 (Split) has 2 outputs"
            ),
        ),
    ] {
        let error = named(&config(&inputs, &[output])).unwrap_err();
        assert_eq!(error, format!("{place}{text}"));
    }
}

#[test]
fn number_of_inputs_is_checked() {
    let error = named(&config(&["image", "keep", "x"], &["classes"])).unwrap_err();
    assert_eq!(
        error,
        "unable to load model 'M', configuration expects 3 inputs, model provides at most 2; \
         allowed inputs are: image, keep"
    );
    let error = named(&config(&["image"], &["tower/split", "classes"])).unwrap_err();
    assert_eq!(
        error,
        "unable to load model 'M', configuration expects 1 inputs, model provides at most 2; \
         output 'classes' needs inputs that are not configured: keep"
    );
    assert!(named(&config(&["image"], &["tower/split"])).is_ok());
}

#[test]
fn empty_graph_is_refused() {
    let empty = GraphDefView::read(&[]).unwrap();
    let error = configured_signature(&empty, &config(&[], &[]), Path::new("F")).unwrap_err();
    assert_eq!(error.text, "unable to load model 'M' from F: model M has an empty network");
}

#[test]
fn incomplete_configuration_gets_placeholders_and_ends() {
    let bytes = graph();
    let graph = GraphDefView::read(&bytes).unwrap();
    let names = |config: &Config| {
        let signature = to_complete(&graph, config, Path::new("F")).map_err(|fault| fault.text)?;
        let names = |tensors: Vec<GraphTensor>| -> Vec<String> {
            tensors.into_iter().map(|tensor| tensor.name).collect()
        };
        Ok::<_, String>((names(signature.inputs), names(signature.outputs)))
    };
    let (inputs, outputs) = names(&config(&[], &["tower/split:1"])).unwrap();
    assert_eq!(
        (inputs, outputs),
        (vec!["image".into(), "keep".into()], vec!["tower/split:1".into()])
    );
    let (inputs, outputs) = names(&config(&["image:0"], &[])).unwrap();
    assert_eq!((inputs, outputs), (vec!["image:0".into()], vec!["classes".into()]));
    let mut with_host = config(&[], &[]);
    with_host.facts.host_inputs.push("keep:0".into());
    assert_eq!(names(&with_host).unwrap().0, ["image"]);
    assert!(names(&config(&["images"], &[])).unwrap_err().contains("similar names: image"));
}
