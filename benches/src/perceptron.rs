//! A small ONNX model: layers of 64, 512, 512 and 16 values, 17 µs for one row and 32 µs for eight.
//! Weights are -1, 0 and 1 and few of them are not 0, so that sums are exact in any order.

use prost::Message;

pub const INPUTS: usize = 64;
pub const OUTPUTS: usize = 16;
/// The number of values of each layer.
const LAYERS: [usize; 4] = [INPUTS, 512, 512, OUTPUTS];
/// One weight in so many is not 0.
const SPARSE: usize = 16;

/// Weight from value `from` of layer `layer` to value `to` of the next one.
fn weight(layer: usize, from: usize, to: usize) -> f32 {
    let mixed = (from * 31 + to * 17 + layer * 7).wrapping_mul(2_654_435_761) >> 7;
    match mixed % (2 * SPARSE) {
        0 => 1.0,
        1 => -1.0,
        _ => 0.0,
    }
}

/// What the model makes of a row.
pub fn outputs(row: &[f32]) -> Vec<f32> {
    let mut values = row.to_vec();
    for layer in 0..LAYERS.len() - 1 {
        let sum = |to| -> f32 {
            values.iter().enumerate().map(|(from, value)| value * weight(layer, from, to)).sum()
        };
        let last = layer + 2 == LAYERS.len();
        values = (0..LAYERS[layer + 1])
            .map(sum)
            .map(|sum: f32| if last { sum } else { sum.max(0.0) })
            .collect();
    }
    values
}

/// The bytes of the model's file: `INPUT0` and `OUTPUT0`, any number of rows.
pub fn file() -> Vec<u8> {
    let mut graph = GraphProto { name: "perceptron".into(), ..Default::default() };
    let mut before = "INPUT0".to_owned();
    for layer in 0..LAYERS.len() - 1 {
        let last = layer + 2 == LAYERS.len();
        let (weights, product) = (format!("w{layer}"), format!("p{layer}"));
        graph.initializer.push(tensor(&weights, layer));
        let product = if last { "OUTPUT0".to_owned() } else { product };
        graph.node.push(node("MatMul", &[before, weights], &product));
        before = product;
        if !last {
            let active = format!("a{layer}");
            graph.node.push(node("Relu", &[before], &active));
            before = active;
        }
    }
    graph.input.push(rows_of("INPUT0", INPUTS));
    graph.output.push(rows_of("OUTPUT0", OUTPUTS));
    let opset_import = vec![OperatorSet { version: 13 }];
    ModelProto { ir_version: 8, graph: Some(graph), opset_import }.encode_to_vec()
}

fn tensor(name: &str, layer: usize) -> TensorProto {
    let (rows, columns) = (LAYERS[layer], LAYERS[layer + 1]);
    let weights = (0..rows).flat_map(|from| (0..columns).map(move |to| weight(layer, from, to)));
    TensorProto {
        dims: vec![rows as i64, columns as i64],
        data_type: FLOAT,
        name: name.into(),
        raw_data: weights.flat_map(f32::to_le_bytes).collect(),
    }
}

fn node(operator: &str, inputs: &[String], output: &str) -> NodeProto {
    NodeProto { input: inputs.to_vec(), output: vec![output.into()], op_type: operator.into() }
}

fn rows_of(name: &str, values: usize) -> ValueInfo {
    let dim = vec![
        Dimension { value: None, name: Some("rows".into()) },
        Dimension { value: Some(values as i64), name: None },
    ];
    let tensor = TensorType { element: FLOAT, shape: Some(TensorShape { dim }) };
    ValueInfo { name: name.into(), r#type: Some(TypeProto { tensor: Some(tensor) }) }
}

const FLOAT: i32 = 1;

#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(int64, tag = "1")]
    ir_version: i64,
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    opset_import: Vec<OperatorSet>,
}

#[derive(Clone, PartialEq, Message)]
struct OperatorSet {
    #[prost(int64, tag = "2")]
    version: i64,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    node: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<ValueInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    output: Vec<String>,
    #[prost(string, tag = "4")]
    op_type: String,
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "vec", tag = "9")]
    raw_data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfo {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    r#type: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeProto {
    #[prost(message, optional, tag = "1")]
    tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorType {
    #[prost(int32, tag = "1")]
    element: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<TensorShape>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorShape {
    #[prost(message, repeated, tag = "1")]
    dim: Vec<Dimension>,
}

#[derive(Clone, PartialEq, Message)]
struct Dimension {
    #[prost(int64, optional, tag = "1")]
    value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}
