//! The ONNX graph under construction: values, the nodes that compute them, and what is known of
//! their shapes.

use super::tensor::ConstantTensor;
use crate::onnx::{
    Attribute, GraphProto, ModelProto, NodeProto, OperatorSet, TensorProto, ValueInfo,
};
use std::collections::{BTreeMap, HashSet};

/// Operator set of the graph: the last in which Softmax flattens the dimensions behind its axis, as
/// Caffe2's does, and in which axes and split sizes are attributes.
const OPERATOR_SET: i64 = 12;
/// The format of the model that goes with it.
const IR_VERSION: i64 = 7;

/// A value of the graph. Unlike a blob it is written once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphValue(usize);

#[derive(Debug, Default)]
struct KnownValue {
    /// -1 = unknown size; `None` = unknown rank.
    dims: Option<Vec<i64>>,
    constant: Option<ConstantTensor>,
}

#[derive(Debug)]
struct GraphNode {
    operator: &'static str,
    inputs: Vec<GraphValue>,
    outputs: Vec<GraphValue>,
    attributes: Vec<Attribute>,
    /// Blob that the operator of the net writes, for messages of ONNX Runtime.
    blob: String,
}

/// An input of the model.
#[derive(Debug, Clone)]
pub struct NetInput {
    pub name: String,
    /// ONNX's number of the element type.
    pub element: i32,
    /// Batch dimension included; -1 = dynamic.
    pub dims: Vec<i64>,
}

#[derive(Debug, Default)]
pub struct GraphBuilder {
    values: Vec<KnownValue>,
    nodes: Vec<GraphNode>,
    inputs: Vec<(GraphValue, NetInput)>,
    /// See [`GraphNode::blob`]: of the operator that is being translated.
    pub blob: String,
}

impl GraphBuilder {
    fn add(&mut self, known: KnownValue) -> GraphValue {
        self.values.push(known);
        GraphValue(self.values.len() - 1)
    }

    pub fn input(&mut self, input: NetInput) -> GraphValue {
        let value = self.add(KnownValue { dims: Some(input.dims.clone()), constant: None });
        self.inputs.push((value, input));
        value
    }

    /// Whether the value is the input of this name.
    pub fn is_input(&self, value: GraphValue, name: &str) -> bool {
        self.inputs.iter().any(|(own, input)| *own == value && input.name == name)
    }

    pub fn constant(&mut self, tensor: ConstantTensor) -> GraphValue {
        self.add(KnownValue { dims: Some(tensor.dims.clone()), constant: Some(tensor) })
    }

    /// A vector of 64-bit integers.
    pub fn integers(&mut self, values: &[i64]) -> GraphValue {
        self.constant(ConstantTensor::integers(values))
    }

    /// A scalar.
    pub fn float(&mut self, value: f32) -> GraphValue {
        self.constant(ConstantTensor::floats(&[], &[value]))
    }

    /// A node with several outputs, of unknown shape.
    pub fn nodes(
        &mut self,
        operator: &'static str,
        inputs: &[GraphValue],
        attributes: Vec<Attribute>,
        n_outputs: usize,
    ) -> Vec<GraphValue> {
        let outputs: Vec<GraphValue> =
            (0..n_outputs).map(|_| self.add(KnownValue::default())).collect();
        self.nodes.push(GraphNode {
            operator,
            inputs: inputs.to_vec(),
            outputs: outputs.clone(),
            attributes,
            blob: self.blob.clone(),
        });
        outputs
    }

    /// A node with one output, of unknown shape.
    pub fn node(
        &mut self,
        operator: &'static str,
        inputs: &[GraphValue],
        attributes: Vec<Attribute>,
    ) -> GraphValue {
        self.nodes(operator, inputs, attributes, 1)[0]
    }

    /// A node whose output has the shape of its first input.
    pub fn same(
        &mut self,
        operator: &'static str,
        inputs: &[GraphValue],
        attributes: Vec<Attribute>,
    ) -> GraphValue {
        let dims = inputs.first().and_then(|&value| self.dims(value).map(<[i64]>::to_vec));
        let output = self.node(operator, inputs, attributes);
        self.shaped(output, dims)
    }

    /// Sets what is known of a shape.
    pub fn shaped(&mut self, value: GraphValue, dims: Option<Vec<i64>>) -> GraphValue {
        self.values[value.0].dims = dims;
        value
    }

    pub fn dims(&self, value: GraphValue) -> Option<&[i64]> {
        self.values[value.0].dims.as_deref()
    }

    pub fn rank(&self, value: GraphValue) -> Option<usize> {
        self.dims(value).map(<[i64]>::len)
    }

    /// Size of a dimension; -1 if it is unknown.
    pub fn dim(&self, value: GraphValue, axis: usize) -> i64 {
        self.dims(value).and_then(|dims| dims.get(axis).copied()).unwrap_or(-1)
    }

    pub fn known_constant(&self, value: GraphValue) -> Option<&ConstantTensor> {
        self.values[value.0].constant.as_ref()
    }

    pub fn transpose(&mut self, value: GraphValue, permutation: &[i64]) -> GraphValue {
        let dims = self.dims(value).filter(|dims| dims.len() == permutation.len());
        let pick = |dims: &[i64]| -> Option<Vec<i64>> {
            let axes = permutation.iter().map(|&axis| usize::try_from(axis).ok());
            axes.map(|axis| dims.get(axis?).copied()).collect()
        };
        let dims = dims.and_then(pick);
        let output = self.node("Transpose", &[value], vec![Attribute::ints("perm", permutation)]);
        self.shaped(output, dims)
    }

    /// Reshapes to a fixed shape: 0 copies a dimension, -1 is computed.
    pub fn reshape(&mut self, value: GraphValue, shape: &[i64]) -> GraphValue {
        let dims = shape.iter().enumerate().map(|(axis, &dim)| match dim {
            0 => self.dim(value, axis),
            _ => dim.max(-1),
        });
        let dims = dims.collect();
        let shape = self.integers(shape);
        let output = self.node("Reshape", &[value, shape], vec![]);
        self.shaped(output, Some(dims))
    }

    /// Inserts dimensions of size 1; `axes` count in the result and are not negative.
    pub fn unsqueeze(&mut self, value: GraphValue, axes: &[i64]) -> GraphValue {
        if axes.is_empty() {
            return value;
        }
        let dims = self.dims(value).map(|dims| {
            let mut old = dims.iter();
            let ones = |axis: usize| axes.contains(&(axis as i64));
            let n = dims.len() + axes.len();
            (0..n).map(|at| if ones(at) { 1 } else { *old.next().unwrap_or(&-1) }).collect()
        });
        let output = self.node("Unsqueeze", &[value], vec![Attribute::ints("axes", axes)]);
        self.shaped(output, dims)
    }

    /// The model with the named outputs, and without nodes and constants that they do not need.
    ///
    /// # Errors
    /// The constants have more bytes than `max_bytes`; the sum may be unknown.
    pub fn finish(
        mut self,
        outputs: &[(String, GraphValue)],
        max_bytes: usize,
    ) -> Result<ModelProto, Option<usize>> {
        let mut names = self.name_outputs(outputs);
        let mut needed: HashSet<GraphValue> = names.keys().copied().collect();
        let mut nodes = Vec::new();
        for node in self.nodes.drain(..).rev() {
            if node.outputs.iter().any(|output| needed.contains(output)) {
                needed.extend(&node.inputs);
                nodes.push(node);
            }
        }
        nodes.reverse();

        let reserved = reserved_prefix(&names);
        let mut name = |value: GraphValue| {
            names.entry(value).or_insert_with(|| format!("{reserved}{}", value.0)).clone()
        };
        let mut bytes = 0usize;
        let mut initializer: Vec<TensorProto> = Vec::new();
        for (at, known) in self.values.into_iter().enumerate() {
            let Some(tensor) = known.constant.filter(|_| needed.contains(&GraphValue(at))) else {
                continue;
            };
            bytes = tensor.bytes().and_then(|n| n.checked_add(bytes)).ok_or(None)?;
            if bytes > max_bytes {
                return Err(Some(bytes));
            }
            initializer.push(tensor.into_proto(name(GraphValue(at))));
        }
        let node = nodes.into_iter().enumerate().map(|(nth, node)| NodeProto {
            input: node.inputs.iter().map(|&value| name(value)).collect(),
            output: node.outputs.iter().map(|&value| name(value)).collect(),
            name: format!("{} {nth} of '{}'", node.operator, node.blob),
            op_type: node.operator.to_owned(),
            attribute: node.attributes,
        });
        let node = node.collect();
        let inputs = self.inputs.iter().map(|(_, input)| input);
        let input = inputs.map(|input| ValueInfo::tensor(&input.name, input.element, &input.dims));
        let graph = GraphProto {
            node,
            name: "NetDef".to_owned(),
            initializer,
            input: input.collect(),
            output: outputs.iter().map(|(name, _)| ValueInfo::inferred(name)).collect(),
        };
        Ok(ModelProto {
            ir_version: IR_VERSION,
            producer_name: "trtserver".to_owned(),
            graph: Some(graph),
            opset_import: vec![OperatorSet { domain: String::new(), version: OPERATOR_SET }],
        })
    }

    /// Names of inputs and outputs. A value that already has a name, or that no node computes, is
    /// copied: an output of the model needs a name of its own.
    fn name_outputs(&mut self, outputs: &[(String, GraphValue)]) -> BTreeMap<GraphValue, String> {
        let mut names: BTreeMap<GraphValue, String> =
            self.inputs.iter().map(|(value, input)| (*value, input.name.clone())).collect();
        for (name, value) in outputs {
            if names.get(value) == Some(name) {
                continue;
            }
            let taken = names.contains_key(value) || self.known_constant(*value).is_some();
            self.blob.clone_from(name);
            let value = if taken { self.same("Identity", &[*value], vec![]) } else { *value };
            names.insert(value, name.clone());
        }
        names
    }
}

/// A prefix that no name of an input or output has.
fn reserved_prefix(names: &BTreeMap<GraphValue, String>) -> String {
    let mut prefix = String::from("#");
    while names.values().any(|name| name.starts_with(&prefix)) {
        prefix.push('#');
    }
    prefix
}
