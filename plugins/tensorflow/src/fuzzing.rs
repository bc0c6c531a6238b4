//! Oracles for fuzzing: arbitrary model files. Each panics when a property does not hold. `fuzz/`
//! drives them with libFuzzer; a unit test runs them over `fuzz/seeds`.

use crate::check::check_signature;
use crate::complete;
use crate::graph_def::GraphDefView;
use crate::graph_names::configured_signature;
use crate::saved_model::{self, SignatureSelection};
use crate::signature::{GraphTensor, Signature};
use std::collections::HashSet;
use std::path::Path;
use trtserver_framework::check::{Element, TensorDeclaration};
use trtserver_framework::config::{Config, ConfiguredTensor};
use trtserver_plugin_api::abi::types::dtype;

/// Panics when its property does not hold for these bytes.
pub type Oracle = fn(&[u8]);

/// All oracles by the names of their fuzz targets and seed folders.
pub const ORACLES: &[(&str, Oracle)] = &[
    ("tensorflow_graph_def", tensorflow_graph_def),
    ("tensorflow_saved_model", tensorflow_saved_model),
];

/// A GraphDef. A configuration of its placeholders and ends agrees with the file.
pub fn tensorflow_graph_def(bytes: &[u8]) {
    let Ok(graph) = GraphDefView::read(bytes) else { return };
    let ends = graph.ends();
    let fed: HashSet<&str> = ends.inputs.iter().map(|input| input.operation.as_str()).collect();
    for output in &ends.outputs {
        let unfed = graph.unfed(&output.operation, &fed);
        assert!(unfed.is_empty(), "{unfed:?} is not a placeholder");
    }
    let config = configuration(&ends);
    match configured_signature(&graph, &config, Path::new("F")) {
        Ok(signature) => agrees(&config, &signature),
        // A name that ends like the index of an output stands for another tensor.
        Err(error) => assert!(graph.is_empty() || has_indexed_name(&ends), "{error}"),
    }
    let additions = complete::graph_def(&Config::default(), ends, 4, |_| Ok(()));
    if let Ok(Some(text)) = additions.map(|additions| additions.text) {
        is_printable(&text);
    }
}

/// A `saved_model.pb`. A configuration of its signature agrees with the file.
pub fn tensorflow_saved_model(bytes: &[u8]) {
    for tag in ["serve", "train"] {
        let selection = SignatureSelection { tags: vec![tag.to_owned()], signature: None };
        match saved_model::read_saved_model(bytes, &selection, "M", Path::new("F")) {
            Ok(named) => {
                agrees(&configuration(&named.signature), &named.signature);
                let (config, signature) = (Config::default(), &named.signature);
                let additions = complete::saved_model(&config, signature, 4, |_| Ok(()));
                if let Ok(Some(text)) = additions.map(|additions| additions.text) {
                    is_printable(&text);
                }
            }
            Err(error) => assert!(error.text.starts_with("unable to load model 'M'"), "{error}"),
        }
    }
    // What TensorFlow returns for a loaded graph has the same reader.
    let selection = SignatureSelection::new([].into_iter());
    let _ = saved_model::read_meta_graph(bytes, &selection, "M", Path::new("F"));
}

/// A configuration without batching that lists the signature's tensors as they are.
fn configuration(signature: &Signature) -> Config {
    let decl = |tensor: &GraphTensor| {
        let dims = tensor.dims.clone().filter(|dims| !dims.is_empty()).unwrap_or_else(|| vec![1]);
        ConfiguredTensor {
            name: tensor.name.clone(),
            dtype: match tensor.element() {
                Element::Known(dtype) => dtype,
                _ => dtype::FP32,
            },
            model_dims: dims.clone(),
            dims,
            ..ConfiguredTensor::default()
        }
    };
    Config {
        model: "M".into(),
        inputs: signature.inputs.iter().map(decl).collect(),
        outputs: signature.outputs.iter().map(decl).collect(),
        ..Config::default()
    }
}

/// The plan has every tensor in its position, or a type is not supported.
fn agrees(config: &Config, signature: &Signature) {
    let mut tensors = signature.inputs.iter().chain(&signature.outputs);
    let supported =
        tensors.all(|tensor| matches!(tensor.element(), Element::Known(_) | Element::Unknown));
    match check_signature(config, signature) {
        Ok(plan) => {
            assert!(supported);
            for (decl, slot) in config.inputs.iter().zip(&plan.inputs) {
                assert_eq!((&decl.name, decl.dtype), (&slot.name, slot.dtype));
            }
        }
        Err(error) => assert!(!supported, "{error}"),
    }
}

fn has_indexed_name(signature: &Signature) -> bool {
    let mut tensors = signature.inputs.iter().chain(&signature.outputs);
    tensors.any(|tensor| tensor.operation.contains(':'))
}

fn is_printable(text: &str) {
    assert!(text.bytes().all(|byte| byte == b'\n' || (0x20..0x7f).contains(&byte)), "{text:?}");
}

#[cfg(test)]
#[path = "fuzzing_tests.rs"]
mod tests;
