//! TensorFlow's GraphDef and SavedModel files, encoded by hand, including files that TensorFlow
//! itself would not write. The plugin's unit tests include this file.

use trtserver_proto_wire::{put_bytes, put_number};

/// A text, bytes or message field.
pub fn field(number: u32, contents: impl AsRef<[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, number, contents.as_ref());
    out
}

pub fn number(number: u32, value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, number, value.cast_unsigned());
    out
}

/// `TensorShapeProto`.
pub fn shape(dims: Option<&[i64]>) -> Vec<u8> {
    match dims {
        None => number(3, 1),
        Some(dims) => dims.iter().flat_map(|&dim| field(2, number(1, dim))).collect(),
    }
}

/// An entry of a map, as field `of` of its message.
pub fn entry(of: u32, key: &str, value: Vec<u8>) -> Vec<u8> {
    field(of, [field(1, key), field(2, value)].concat())
}

/// `NodeDef` as field 1 of a graph, or field 3 of a function.
pub struct Node<'a> {
    pub name: &'a str,
    pub kind: &'a str,
    pub inputs: &'a [&'a str],
    /// Encoded attributes: field 5.
    pub attributes: Vec<u8>,
}

impl Node<'_> {
    pub fn encode(&self, of: u32) -> Vec<u8> {
        let inputs = self.inputs.iter().flat_map(|input| field(3, input));
        let node = [field(1, self.name), field(2, self.kind), inputs.collect()].concat();
        field(of, [node, self.attributes.clone()].concat())
    }
}

/// An operation without attributes.
pub fn node(name: &str, kind: &str, inputs: &[&str]) -> Vec<u8> {
    Node { name, kind, inputs, attributes: vec![] }.encode(1)
}

/// An operation with the type of its tensors as attribute `T`.
pub fn typed(name: &str, kind: &str, inputs: &[&str], data_type: i64) -> Vec<u8> {
    let attributes = entry(5, "T", number(6, data_type));
    Node { name, kind, inputs, attributes }.encode(1)
}

pub fn placeholder(name: &str, data_type: i64, dims: Option<&[i64]>) -> Vec<u8> {
    let dtype = entry(5, "dtype", number(6, data_type));
    let shape = entry(5, "shape", field(7, shape(dims)));
    let attributes = [dtype, shape].concat();
    Node { name, kind: "Placeholder", inputs: &[], attributes }.encode(1)
}

/// A call as field `of`; the attribute `f` names the function.
pub fn call(of: u32, name: &str, function: &str) -> Vec<u8> {
    let attributes = entry(5, "f", field(10, field(1, function)));
    Node { name, kind: "PartitionedCall", inputs: &[], attributes }.encode(of)
}

/// A function library with one function per name, each of which calls others.
pub fn library(functions: &[(&str, &[&str])]) -> Vec<u8> {
    let function = |(name, calls): &(&str, &[&str])| {
        let calls = calls.iter().flat_map(|called| call(3, "call", called));
        field(1, [field(1, field(1, name)), calls.collect()].concat())
    };
    field(2, functions.iter().flat_map(function).collect::<Vec<u8>>())
}

/// A current `producer` version.
pub fn versions() -> Vec<u8> {
    field(4, number(1, 1882))
}

/// `TensorInfo`.
pub fn tensor_info(name: &str, data_type: i64, dims: Option<&[i64]>) -> Vec<u8> {
    [field(1, name), number(2, data_type), field(3, shape(dims))].concat()
}

/// `SignatureDef` of two inputs and an output, as an entry of a meta graph.
pub fn signature(name: &str) -> Vec<u8> {
    let message = [
        entry(1, "b", tensor_info("serve_b:0", 7, Some(&[-1, 4]))),
        entry(1, "a", tensor_info("serve_a:1", 1, None)),
        entry(2, "y", tensor_info("StatefulPartitionedCall:2", 3, Some(&[-1]))),
        field(3, "tensorflow/serving/predict"),
    ];
    entry(5, name, message.concat())
}

/// A meta graph as field 2 of a SavedModel.
pub fn meta_graph(tags: &[&str], graph: &[u8], signatures: &[&str]) -> Vec<u8> {
    let tags: Vec<u8> = tags.iter().flat_map(|tag| field(4, tag)).collect();
    let signatures: Vec<u8> = signatures.iter().flat_map(|name| signature(name)).collect();
    field(2, [field(1, tags), field(2, graph), signatures].concat())
}
