//! Requests for each frontend, and the same bytes for its floor.

use crate::exchange::{Exchange, Expect, Wire, grpc, http};
use crate::floor::{ECHO_PATH, ECHO_STREAM_PATH, Echo};
use crate::options::Floor;
use crate::perceptron;
use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::encode_varint;
use trtserver_proto::{v1, v2};

/// Different contents, so that a swapped response is noticed.
const VARIANTS: usize = 4;
/// After so many values a tensor repeats them.
const PERIOD: usize = 1021;
/// Values of a large tensor.
const LARGE: usize = 256;
const UNARY_PATH: &str = "/inference.GRPCInferenceService/ModelInfer";
const STREAM_PATH: &str = "/inference.GRPCInferenceService/ModelStreamInfer";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontend {
    V1Http,
    V1Grpc,
    V2Http,
    V2Json,
    /// JSON in the request, raw bytes in the response.
    V2JsonIn,
    /// The other way round.
    V2JsonOut,
    V2Grpc,
    V2Stream,
}

impl Frontend {
    /// The frontends of the main table.
    pub const ALL: [Frontend; 6] = [
        Frontend::V2Http,
        Frontend::V2Json,
        Frontend::V2Grpc,
        Frontend::V2Stream,
        Frontend::V1Http,
        Frontend::V1Grpc,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Frontend::V1Http => "v1-http",
            Frontend::V1Grpc => "v1-grpc",
            Frontend::V2Http => "v2-http",
            Frontend::V2Json => "v2-json",
            Frontend::V2JsonIn => "v2-json-in",
            Frontend::V2JsonOut => "v2-json-out",
            Frontend::V2Grpc => "v2-grpc",
            Frontend::V2Stream => "v2-stream",
        }
    }

    pub fn wire(self) -> Wire {
        match self {
            Frontend::V1Http
            | Frontend::V2Http
            | Frontend::V2Json
            | Frontend::V2JsonIn
            | Frontend::V2JsonOut => Wire::Http1,
            Frontend::V1Grpc | Frontend::V2Grpc => Wire::Grpc,
            Frontend::V2Stream => Wire::Stream,
        }
    }

    pub fn floor(self) -> Floor {
        match self.wire() {
            Wire::Http1 => Floor::Hyper,
            Wire::Grpc | Wire::Stream => Floor::Tonic,
        }
    }
}

/// A model with the tensors of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Echoes this many bytes of FP32 values.
    Identity(usize),
    /// The same by a model of this name.
    Echo(&'static str, usize),
    /// Echoes 64 bytes; the model has this name, and batches.
    Row(&'static str),
    /// Sum and difference of two tensors of sixteen FP32 values, in ONNX Runtime.
    AddSub,
    /// One row of `perceptron.rs`; the model has this name, and batches.
    Perceptron(&'static str),
}

/// One tensor each: name and values.
type Tensors = Vec<(&'static str, Vec<f32>)>;

impl Work {
    pub fn model(self) -> &'static str {
        match self {
            Work::Identity(_) => "identity",
            Work::Row(model) | Work::Echo(model, _) | Work::Perceptron(model) => model,
            Work::AddSub => "addsub_fp32",
        }
    }

    /// Bytes of one tensor.
    pub fn bytes(self) -> usize {
        match self {
            Work::Identity(bytes) | Work::Echo(_, bytes) => bytes,
            Work::AddSub | Work::Row(_) => 64,
            Work::Perceptron(_) => 4 * perceptron::INPUTS,
        }
    }

    fn batches(self) -> bool {
        !matches!(self, Work::Identity(_) | Work::Echo(..))
    }

    fn tensors(self, variant: usize) -> (Tensors, Tensors) {
        // Few significant bits in small tensors, so that sums are exact and JSON is short; all
        // digits in large ones.
        let values = |seed: usize, n: usize| -> Vec<f32> {
            let short = |i| ((i * 7 + seed * 131) % PERIOD) as f32 * 0.5;
            let value = |i| if n < LARGE { short(i) } else { short(i).sin() };
            let mut values = (0..n.min(PERIOD)).map(value).collect::<Vec<_>>();
            if n > PERIOD {
                values = values.repeat(n.div_ceil(PERIOD));
                values.truncate(n);
            }
            values
        };
        match self {
            Work::Identity(_) | Work::Echo(..) | Work::Row(_) => {
                let values = values(variant, self.bytes() / 4);
                (vec![("INPUT0", values.clone())], vec![("OUTPUT0", values)])
            }
            Work::Perceptron(_) => {
                let values = values(variant, perceptron::INPUTS);
                let outputs = perceptron::outputs(&values);
                (vec![("INPUT0", values)], vec![("OUTPUT0", outputs)])
            }
            Work::AddSub => {
                let (a, b) = (values(variant, 16), values(variant + VARIANTS, 16));
                let sum = a.iter().zip(&b).map(|(a, b)| a + b).collect();
                let difference = a.iter().zip(&b).map(|(a, b)| a - b).collect();
                (
                    vec![("INPUT0", a), ("INPUT1", b)],
                    vec![("OUTPUT0", sum), ("OUTPUT1", difference)],
                )
            }
        }
    }
}

impl Work {
    /// Input data for perf_analyzer: the first variant. It checks responses if the model has fixed
    /// shapes.
    pub fn perf_analyzer_json(self) -> serde_json::Value {
        let (inputs, outputs) = self.tensors(0);
        let tensors = |tensors: &Tensors| -> serde_json::Value {
            let tensor = |(name, values): &(&str, Vec<f32>)| {
                let content = serde_json::json!({ "content": values, "shape": [values.len()] });
                ((*name).to_owned(), content)
            };
            serde_json::Value::Object(tensors.iter().map(tensor).collect())
        };
        let mut data = serde_json::json!({ "data": [tensors(&inputs)] });
        if self == Work::AddSub {
            data["validation_data"] = serde_json::json!([tensors(&outputs)]);
        }
        data
    }
}

/// The requests to the server.
pub fn exchanges(frontend: Frontend, work: Work) -> Vec<Exchange> {
    let variants = if work.bytes() > 1 << 20 { 1 } else { VARIANTS };
    (0..variants).map(|variant| exchange(frontend, work, variant)).collect()
}

/// The same with `count` different contents, of which there are 1021.
pub fn unequal_exchanges(frontend: Frontend, work: Work, count: usize) -> Vec<Exchange> {
    (0..count).map(|variant| exchange(frontend, work, variant)).collect()
}

/// The requests of sequence `id` over ModelStreamInfer.
pub fn steps(model: &'static str, id: u64, steps: u64) -> Vec<Exchange> {
    use v2::{InferParameter, infer_parameter::ParameterChoice};
    let work = Work::Row(model);
    let step = |number| {
        let (inputs, outputs) = work.tensors(number as usize % VARIANTS);
        let raw =
            |tensors: &Tensors| tensors.iter().map(|(_, values)| bytes_of_floats(values)).collect();
        let mut request = v2_request(work, &inputs, &outputs, raw(&inputs));
        let mut set = |name: &str, value| {
            let value = InferParameter { parameter_choice: Some(value) };
            request.parameters.insert(name.to_owned(), value);
        };
        set("sequence_id", ParameterChoice::Int64Param(id as i64));
        set("sequence_start", ParameterChoice::BoolParam(number == 0));
        set("sequence_end", ParameterChoice::BoolParam(number + 1 == steps));
        let outputs: Vec<Bytes> = raw(&outputs);
        grpc(STREAM_PATH, &request, Expect::Ends(repeated(6, &outputs)))
    };
    (0..steps).map(step).collect()
}

/// The requests to the floor: the same bytes, which it echoes.
pub fn floor_exchanges(frontend: Frontend, work: Work) -> Vec<Exchange> {
    let echo = |exchange: Exchange| match frontend.wire() {
        Wire::Http1 => {
            let head = exchange.message.windows(4).position(|four| four == b"\r\n\r\n");
            let body = exchange.message.slice(head.map_or(0, |at| at + 4)..);
            Exchange { expect: Expect::Ends(body), ..exchange }
        }
        Wire::Grpc | Wire::Stream => {
            let data = exchange.message.slice(5..);
            let path = if frontend.wire() == Wire::Grpc { ECHO_PATH } else { ECHO_STREAM_PATH };
            grpc(path, &Echo { data: data.clone() }, Expect::Ends(data))
        }
    };
    exchanges(frontend, work).into_iter().map(echo).collect()
}

fn exchange(frontend: Frontend, work: Work, variant: usize) -> Exchange {
    let (inputs, outputs) = work.tensors(variant);
    let raw =
        |tensors: &Tensors| tensors.iter().map(|(_, values)| bytes_of_floats(values)).collect();
    let (raw_in, raw_out): (Vec<Bytes>, Vec<Bytes>) = (raw(&inputs), raw(&outputs));
    let model = work.model();
    let v2_path = format!("/v2/models/{model}/infer");
    match frontend {
        Frontend::V1Http => {
            let path = format!("/api/infer/{model}?format=binary");
            let header = format!("NV-InferRequest:{}\r\n", v1_text(&inputs, &outputs));
            http(&path, &header, &raw_in.concat(), Expect::Starts(raw_out.concat().into()))
        }
        Frontend::V2Http | Frontend::V2Json | Frontend::V2JsonIn | Frontend::V2JsonOut => {
            let raw_input = matches!(frontend, Frontend::V2Http | Frontend::V2JsonOut);
            let raw_output = matches!(frontend, Frontend::V2Http | Frontend::V2JsonIn);
            let json = v2_json(work, &inputs, &outputs, [raw_input, raw_output]);
            let (header, tensors) = match raw_input {
                true => (
                    format!("Inference-Header-Content-Length: {}\r\n", json.len()),
                    raw_in.concat(),
                ),
                false => (String::new(), Vec::new()),
            };
            let first = outputs.into_iter().next();
            let expect = match raw_output {
                true => Expect::Ends(raw_out.concat().into()),
                false => Expect::Numbers(first.map_or_else(Vec::new, |(_, values)| values)),
            };
            http(&v2_path, &header, &[json.as_bytes(), &tensors].concat(), expect)
        }
        Frontend::V1Grpc => {
            let request = v1::InferRequest {
                model_name: model.to_owned(),
                model_version: -1,
                meta_data: Some(v1_header(&inputs, &outputs)),
                raw_input: raw_in,
            };
            let path = "/nvidia.inferenceserver.GRPCService/Infer";
            grpc(path, &request, Expect::Ends(repeated(3, &raw_out)))
        }
        Frontend::V2Grpc | Frontend::V2Stream => {
            let request = v2_request(work, &inputs, &outputs, raw_in);
            let path = if frontend == Frontend::V2Grpc { UNARY_PATH } else { STREAM_PATH };
            grpc(path, &request, Expect::Ends(repeated(6, &raw_out)))
        }
    }
}

/// The bytes of a raw tensor.
pub fn bytes_of_floats(values: &[f32]) -> Bytes {
    // Quick in a debug build, too, where the tests make tensors of 16 MiB.
    let mut bytes = vec![0; 4 * values.len()];
    for (to, value) in bytes.chunks_exact_mut(4).zip(values) {
        to.copy_from_slice(&value.to_le_bytes());
    }
    bytes.into()
}

/// Raw tensors as encoded at the end of a response.
fn repeated(field: u8, tensors: &[Bytes]) -> Bytes {
    let mut wire = BytesMut::new();
    for tensor in tensors {
        wire.put_u8(field << 3 | 2);
        encode_varint(tensor.len() as u64, &mut wire);
        wire.put_slice(tensor);
    }
    wire.freeze()
}

fn v1_text(inputs: &Tensors, outputs: &Tensors) -> String {
    let mut text = "batch_size: 1".to_owned();
    for (name, values) in inputs {
        text += &format!(" input {{ name: \"{name}\" dims: {} }}", values.len());
    }
    for (name, _) in outputs {
        text += &format!(" output {{ name: \"{name}\" }}");
    }
    text
}

fn v1_header(inputs: &Tensors, outputs: &Tensors) -> v1::InferRequestHeader {
    use v1::infer_request_header::{Input, Output};
    let input = |(name, values): &(&str, Vec<f32>)| Input {
        name: (*name).to_owned(),
        dims: vec![values.len() as i64],
        ..Input::default()
    };
    let output =
        |(name, _): &(&str, Vec<f32>)| Output { name: (*name).to_owned(), ..Output::default() };
    v1::InferRequestHeader {
        batch_size: 1,
        input: inputs.iter().map(input).collect(),
        output: outputs.iter().map(output).collect(),
        ..v1::InferRequestHeader::default()
    }
}

fn shape(work: Work, values: &[f32]) -> Vec<i64> {
    let n = values.len() as i64;
    if work.batches() { vec![1, n] } else { vec![n] }
}

fn v2_json(
    work: Work,
    inputs: &Tensors,
    outputs: &Tensors,
    [raw_input, raw_output]: [bool; 2],
) -> String {
    let input = |(name, values): &(&str, Vec<f32>)| {
        let mut input = serde_json::json!({
            "name": name, "shape": shape(work, values), "datatype": "FP32",
        });
        if raw_input {
            input["parameters"] = serde_json::json!({ "binary_data_size": values.len() * 4 });
        } else {
            input["data"] = serde_json::json!(values);
        }
        input
    };
    let output = |(name, _): &(&str, Vec<f32>)| serde_json::json!({ "name": name, "parameters": { "binary_data": raw_output } });
    let inputs: Vec<_> = inputs.iter().map(input).collect();
    let outputs: Vec<_> = outputs.iter().map(output).collect();
    serde_json::json!({ "inputs": inputs, "outputs": outputs }).to_string()
}

/// The first variant, with one raw entry for each input.
pub fn v2_message(work: Work) -> v2::ModelInferRequest {
    let (inputs, outputs) = work.tensors(0);
    let raw = inputs.iter().map(|(_, values)| bytes_of_floats(values)).collect();
    v2_request(work, &inputs, &outputs, raw)
}

fn v2_request(
    work: Work,
    inputs: &Tensors,
    outputs: &Tensors,
    raw: Vec<Bytes>,
) -> v2::ModelInferRequest {
    use v2::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
    let input = |(name, values): &(&str, Vec<f32>)| InferInputTensor {
        name: (*name).to_owned(),
        datatype: "FP32".to_owned(),
        shape: shape(work, values),
        ..InferInputTensor::default()
    };
    let output = |(name, _): &(&str, Vec<f32>)| InferRequestedOutputTensor {
        name: (*name).to_owned(),
        ..InferRequestedOutputTensor::default()
    };
    v2::ModelInferRequest {
        model_name: work.model().to_owned(),
        inputs: inputs.iter().map(input).collect(),
        outputs: outputs.iter().map(output).collect(),
        raw_input_contents: raw,
        ..v2::ModelInferRequest::default()
    }
}
