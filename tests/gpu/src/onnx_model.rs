//! An ONNX file with the layers of ResNet-50 and arbitrary weights: the work of the network,
//! without its download.

use trtserver_proto_wire::{put_bytes, put_number};

/// Pixels of a side of the input, which has three channels.
pub const SIDE: usize = 224;
/// Floats of an image.
pub const IMAGE: usize = 3 * SIDE * SIDE;
pub const CLASSES: usize = 1000;
/// Blocks of each stage.
const STAGES: [usize; 4] = [3, 4, 6, 3];

const FLOAT: u64 = 1;

/// The network with a 64th of `channels` of ResNet-50's channels: 64 for the whole. `X` of any
/// number of images gives `Y`.
pub fn resnet(channels: usize) -> Vec<u8> {
    let mut graph = Graph::default();
    let stem = graph.conv("X", 3, channels, 7, 2);
    let stem = graph.node("Relu", &[&stem], &[]);
    let pool = [
        ("kernel_shape", ints(&[3, 3])),
        ("strides", ints(&[2, 2])),
        ("pads", ints(&[1, 1, 1, 1])),
    ];
    let mut last = graph.node("MaxPool", &[&stem], &pool);
    let mut width = channels;
    for (stage, blocks) in STAGES.into_iter().enumerate() {
        let (inner, outer) = (channels << stage, (4 * channels) << stage);
        for block in 0..blocks {
            let stride = if block == 0 && stage > 0 { 2 } else { 1 };
            let shortcut =
                if block == 0 { graph.conv(&last, width, outer, 1, stride) } else { last.clone() };
            let a = graph.conv(&last, width, inner, 1, 1);
            let a = graph.node("Relu", &[&a], &[]);
            let b = graph.conv(&a, inner, inner, 3, stride);
            let b = graph.node("Relu", &[&b], &[]);
            let c = graph.conv(&b, inner, outer, 1, 1);
            let sum = graph.node("Add", &[&c, &shortcut], &[]);
            (last, width) = (graph.node("Relu", &[&sum], &[]), outer);
        }
    }
    let pooled = graph.node("GlobalAveragePool", &[&last], &[]);
    let flat = graph.node("Flatten", &[&pooled], &[]);
    let (weights, bias) = (graph.weights(&[CLASSES, width]), graph.weights(&[CLASSES]));
    graph.put("Gemm", &[&flat, &weights, &bias], "Y", &[("transB", int(1))]);
    graph.model()
}

/// Messages of the graph, and numbers for names.
#[derive(Default)]
struct Graph {
    nodes: Vec<u8>,
    initializers: Vec<u8>,
    names: usize,
    random: u64,
}

impl Graph {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    /// A convolution that keeps the size, but for its stride.
    fn conv(&mut self, input: &str, from: usize, to: usize, kernel: usize, stride: i64) -> String {
        let (weights, bias) = (self.weights(&[to, from, kernel, kernel]), self.weights(&[to]));
        let (pad, size) = ((kernel / 2) as i64, kernel as i64);
        let attributes = [
            ("kernel_shape", ints(&[size, size])),
            ("strides", ints(&[stride, stride])),
            ("pads", ints(&[pad; 4])),
        ];
        self.node("Conv", &[input, &weights, &bias], &attributes)
    }

    fn node(&mut self, operator: &str, inputs: &[&str], attributes: &[(&str, Vec<u8>)]) -> String {
        let output = self.name();
        self.put(operator, inputs, &output, attributes);
        output
    }

    fn put(
        &mut self,
        operator: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[(&str, Vec<u8>)],
    ) {
        let mut node = Vec::new();
        inputs.iter().for_each(|input| put_bytes(&mut node, 1, input.as_bytes()));
        put_bytes(&mut node, 2, output.as_bytes());
        put_bytes(&mut node, 4, operator.as_bytes());
        for (name, value) in attributes {
            let mut attribute = Vec::new();
            put_bytes(&mut attribute, 1, name.as_bytes());
            attribute.extend(value);
            put_bytes(&mut node, 5, &attribute);
        }
        put_bytes(&mut self.nodes, 1, &node);
    }

    /// An initializer of values that keep the activations in range.
    fn weights(&mut self, dims: &[usize]) -> String {
        let name = self.name();
        let fan_in: usize = dims[1..].iter().product();
        let range = (3.0 / fan_in as f32).sqrt();
        let mut raw = Vec::with_capacity(4 * dims.iter().product::<usize>());
        for _ in 0..dims.iter().product() {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let unit = (self.random >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
            raw.extend((range * unit).to_le_bytes());
        }
        let mut tensor = Vec::new();
        dims.iter().for_each(|dim| put_number(&mut tensor, 1, *dim as u64));
        put_number(&mut tensor, 2, FLOAT);
        put_bytes(&mut tensor, 8, name.as_bytes());
        put_bytes(&mut tensor, 9, &raw);
        put_bytes(&mut self.initializers, 5, &tensor);
        name
    }

    fn model(self) -> Vec<u8> {
        let mut graph = self.nodes;
        put_bytes(&mut graph, 2, b"resnet");
        graph.extend(self.initializers);
        put_bytes(&mut graph, 11, &tensor("X", &[3, SIDE, SIDE]));
        put_bytes(&mut graph, 12, &tensor("Y", &[CLASSES]));
        let mut opset = Vec::new();
        put_bytes(&mut opset, 1, b"");
        put_number(&mut opset, 2, 13);
        let mut model = Vec::new();
        put_number(&mut model, 1, 8);
        put_bytes(&mut model, 7, &graph);
        put_bytes(&mut model, 8, &opset);
        model
    }
}

/// The value of an attribute.
fn int(value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, 3, value as u64);
    put_number(&mut out, 20, 2);
    out
}

fn ints(values: &[i64]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|value| put_number(&mut out, 8, *value as u64));
    put_number(&mut out, 20, 7);
    out
}

/// A tensor of floats with a batch dimension.
fn tensor(name: &str, dims: &[usize]) -> Vec<u8> {
    let nest = |number: u32, inner: &[u8]| {
        let mut out = Vec::new();
        put_bytes(&mut out, number, inner);
        out
    };
    let mut shape = nest(1, &nest(2, b"N"));
    for dim in dims {
        let mut value = Vec::new();
        put_number(&mut value, 1, *dim as u64);
        put_bytes(&mut shape, 1, &value);
    }
    let mut tensor = Vec::new();
    put_number(&mut tensor, 1, FLOAT);
    put_bytes(&mut tensor, 2, &shape);
    let mut value = nest(1, name.as_bytes());
    put_bytes(&mut value, 2, &nest(1, &tensor));
    value
}

/// The configuration of the model, with further fields.
pub fn config(name: &str, more: &str) -> String {
    format!(
        "name: \"{name}\"\nplatform: \"onnxruntime_onnx\"\nmax_batch_size: 8\n{more}\n\
         input {{ name: \"X\" data_type: TYPE_FP32 dims: [ 3, {SIDE}, {SIDE} ] }}\n\
         output {{ name: \"Y\" data_type: TYPE_FP32 dims: [ {CLASSES} ] }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx_runtime::Bare;
    use std::path::Path;

    #[test]
    fn narrow_network_runs_on_the_cpu() {
        let library = std::env::var("TRTSERVER_ONNXRUNTIME_LIBRARY").unwrap_or_else(|_| {
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/dist/lib/libonnxruntime.so.1")
                .to_owned()
        });
        let mut bare = Bare::open(Path::new(&library), &resnet(4), None, 2).unwrap();
        let scores = |bare: &mut Bare, value: f32| {
            let images: Vec<f32> = (0..2 * IMAGE).map(|i| value * (i % 7) as f32).collect();
            bare.run(&images).unwrap().to_vec()
        };
        let (first, second) = (scores(&mut bare, 0.1), scores(&mut bare, 0.2));
        assert_eq!(first.len(), 2 * CLASSES);
        assert!(first.iter().all(|score| score.is_finite() && score.abs() < 1e3));
        assert_ne!(first, second);
        assert_eq!(first, scores(&mut bare, 0.1));
    }
}
