//! Oracle for fuzzing: arbitrary nets. It panics when a property does not hold. `fuzz/` drives it
//! with libFuzzer; a unit test runs it over `fuzz/seeds`.

use crate::netdef;
use crate::translate::{self, NetInput, NetInputs, NetOutputs, tensor::element};
use prost::Message;
use std::collections::HashSet;

/// Panics when its property does not hold for these bytes.
pub type Oracle = fn(&[u8]);

/// All oracles by the names of their fuzz targets and seed folders.
pub const ORACLES: &[(&str, Oracle)] = &[("caffe2_netdef", caffe2_netdef)];

/// The length of an initialization net (two bytes), that net, and a predict net. Both forms of a
/// net are read without a crash. What is translated reads values that are written before, writes
/// each once, and keeps within the limit.
pub fn caffe2_netdef(bytes: &[u8]) {
    const MAX_BYTES: usize = 1 << 20;
    let Some((head, nets)) = bytes.split_first_chunk::<2>() else { return };
    let Some((init, predict)) = nets.split_at_checked(usize::from(u16::from_le_bytes(*head)))
    else {
        return;
    };
    let (Ok(init), Ok(predict)) = (netdef::read_net(init), netdef::read_net(predict)) else {
        return;
    };
    let encoded = predict.encode_to_vec();
    // Encoded, because NaN differs from itself.
    let decoded = netdef::read_net(&encoded).map(|net| net.encode_to_vec());
    assert_eq!(decoded, Ok(encoded));
    let outputs = NetOutputs::from_net(&predict, &[], &[]);
    let inputs = NetInputs::from_nets(&init, &predict, &outputs);
    let inputs = inputs.required.into_iter().collect::<HashSet<_>>();
    let inputs: Vec<NetInput> = inputs
        .into_iter()
        .map(|name| NetInput { name, element: element::FLOAT, dims: vec![-1, 3, 8, 8] })
        .collect();
    let translated = translate::translate_nets(init, predict, &inputs, &outputs, MAX_BYTES);
    let Ok(model) = translated else { return };
    let graph = model.graph.unwrap_or_default();
    let mut written: HashSet<&str> = HashSet::new();
    for name in graph.input.iter().map(|input| &input.name) {
        assert!(written.insert(name), "input '{name}' twice");
    }
    for tensor in &graph.initializer {
        assert!(tensor.raw_data.len() <= MAX_BYTES);
        assert!(written.insert(&tensor.name), "initialiser '{}' twice", tensor.name);
    }
    for node in &graph.node {
        for input in &node.input {
            assert!(written.contains(&input[..]), "'{input}' is read before it is written");
        }
        for output in &node.output {
            assert!(written.insert(output), "'{output}' is written twice");
        }
    }
    assert!(graph.output.iter().all(|output| written.contains(&output.name[..])));
}

#[cfg(test)]
#[path = "fuzzing_tests.rs"]
mod tests;
