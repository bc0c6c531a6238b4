//! An encoded request for each frontend, and how its response is checked.

use bytes::Bytes;
use prost::Message;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use trtserver_proto::{v1, v2};
use trtserver_tests::{Running, SharedObject, http1};

pub const MODEL: &str = "identity";

pub struct Request {
    /// Path of the gRPC method; none for HTTP.
    pub path: Option<&'static str>,
    /// HTTP: head and body. gRPC: the length-prefixed message.
    pub bytes: Bytes,
    expect: Expect,
    /// Holds the tensors: the first half of it the input, the second the output.
    shared: Option<SharedObject>,
}

enum Expect {
    /// The output is in shared memory.
    Shared(Bytes),
    /// The body contains these bytes.
    Holds(Bytes),
    /// The body is JSON whose first output holds these numbers.
    Numbers(Vec<f32>),
}

impl Request {
    /// The request of a row, such as `v2-http 64`: the frontend and the bytes of the tensor.
    pub fn from_row(row: &str) -> Self {
        let (front, bytes) = row.split_once(' ').unwrap_or_else(|| panic!("{row}: no size"));
        let bytes = tensor_bytes(bytes);
        // Few significant bits, so that JSON is short.
        let values: Vec<f32> = (0..bytes / 4).map(|i| (i % 1021) as f32 * 0.5).collect();
        let raw: Bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let shape = [values.len() as i64];
        let holds = Expect::Holds(raw.clone());
        match front {
            "v1-http" => {
                let header = format!(
                    "batch_size: 1 input {{ name: \"INPUT0\" dims: {} }} output {{ name: \"OUTPUT0\" }}",
                    values.len()
                );
                let path = format!("/api/infer/{MODEL}?format=binary");
                http(&path, &[("NV-InferRequest", &header)], &raw, holds)
            }
            "v2-http" => {
                let json = body(&shape, None).to_string();
                let length = json.len().to_string();
                let body = [json.as_bytes(), &raw].concat();
                http(&v2_path(), &[("Inference-Header-Content-Length", &length)], &body, holds)
            }
            "v2-json" => {
                let json = body(&shape, Some(&values)).to_string();
                http(&v2_path(), &[], json.as_bytes(), Expect::Numbers(values))
            }
            "v1-grpc" => {
                grpc("/nvidia.inferenceserver.GRPCService/Infer", &v1_message(&shape, raw), holds)
            }
            "v2-grpc" => {
                grpc("/inference.GRPCInferenceService/ModelInfer", &v2_message(&shape, raw), holds)
            }
            "shm-http" | "shm-grpc" => shared(front, &shape, raw),
            _ => panic!("{row}: no such front end"),
        }
    }

    /// Registers the shared memory that the request uses.
    pub fn register(&self, server: &Running) {
        if let Some(object) = &self.shared {
            object.register(server);
        }
    }

    /// # Panics
    /// If the body is not that of a correct response.
    pub fn check(&self, body: &[u8]) {
        let right = match &self.expect {
            // The tensor is at the start or at the end, whatever the protocol.
            Expect::Holds(raw) => body.ends_with(raw) || body.starts_with(raw),
            Expect::Numbers(numbers) => numbers_of(body).is_some_and(|got| got == *numbers),
            Expect::Shared(raw) => self.shared.as_ref().is_some_and(|object| {
                let output = object.read(raw.len() as u64, raw.len());
                // So that the next request has to write it.
                object.write(raw.len() as u64, &[0xff; 4096]);
                output == *raw
            }),
        };
        let shown = &body[..body.len().min(300)];
        assert!(right, "wrong response: {}", String::from_utf8_lossy(shown).escape_debug());
    }
}

/// `64` or `4M`.
pub fn tensor_bytes(text: &str) -> usize {
    let (digits, factor) = text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20));
    digits.parse::<usize>().unwrap_or_else(|e| panic!("{text}: {e}")) * factor
}

fn v2_path() -> String {
    format!("/v2/models/{MODEL}/infer")
}

/// A v2 request with both tensors in shared memory.
fn shared(front: &str, shape: &[i64], raw: Bytes) -> Request {
    let bytes = raw.len() as u64;
    let object = SharedObject::new(2 * bytes);
    object.write(0, &raw);
    let request = if front == "shm-http" {
        let input = json!({
            "name": "INPUT0", "shape": shape, "datatype": "FP32", "parameters": object.parameters(0, bytes),
        });
        let output = json!({ "name": "OUTPUT0", "parameters": object.parameters(bytes, bytes) });
        let json = json!({ "inputs": [input], "outputs": [output] }).to_string();
        http(&v2_path(), &[], json.as_bytes(), Expect::Shared(raw))
    } else {
        let mut message = v2_message(shape, Bytes::new());
        message.raw_input_contents.clear();
        message.inputs[0].parameters = grpc_parameters(&object, 0, bytes);
        message.outputs[0].parameters = grpc_parameters(&object, bytes, bytes);
        grpc("/inference.GRPCInferenceService/ModelInfer", &message, Expect::Shared(raw))
    };
    Request { shared: Some(object), ..request }
}

fn grpc_parameters(
    object: &SharedObject,
    offset: u64,
    bytes: u64,
) -> BTreeMap<String, v2::InferParameter> {
    use v2::infer_parameter::ParameterChoice::{Int64Param, StringParam};
    let parameters = [
        ("shared_memory_region", StringParam(object.name.clone())),
        ("shared_memory_offset", Int64Param(offset as i64)),
        ("shared_memory_byte_size", Int64Param(bytes as i64)),
    ];
    let parameter = |(key, choice): (&str, _)| {
        (key.to_owned(), v2::InferParameter { parameter_choice: Some(choice) })
    };
    parameters.map(parameter).into()
}

fn http(path: &str, headers: &[(&str, &str)], body: &[u8], expect: Expect) -> Request {
    let bytes = http1::request("POST", path, headers, body).into();
    Request { path: None, bytes, expect, shared: None }
}

fn grpc(path: &'static str, message: &impl Message, expect: Expect) -> Request {
    let bytes = trtserver_tests::http2::message(&message.encode_to_vec()).into();
    Request { path: Some(path), bytes, expect, shared: None }
}

/// With the values, or with a reference to the binary section.
fn body(shape: &[i64], values: Option<&[f32]>) -> Value {
    let mut input = json!({ "name": "INPUT0", "shape": shape, "datatype": "FP32" });
    match values {
        Some(values) => input["data"] = json!(values),
        None => {
            let bytes = shape.iter().product::<i64>() * 4;
            input["parameters"] = json!({ "binary_data_size": bytes });
        }
    }
    let output = json!({ "name": "OUTPUT0", "parameters": { "binary_data": values.is_none() } });
    json!({ "inputs": [input], "outputs": [output] })
}

fn v1_message(shape: &[i64], raw: Bytes) -> v1::InferRequest {
    use v1::infer_request_header::{Input, Output};
    let (input, output) = ("INPUT0".to_owned(), "OUTPUT0".to_owned());
    let header = v1::InferRequestHeader {
        batch_size: 1,
        input: vec![Input { name: input, dims: shape.to_vec(), ..Input::default() }],
        output: vec![Output { name: output, ..Output::default() }],
        ..v1::InferRequestHeader::default()
    };
    v1::InferRequest {
        model_name: MODEL.to_owned(),
        model_version: -1,
        meta_data: Some(header),
        raw_input: vec![raw],
    }
}

fn v2_message(shape: &[i64], raw: Bytes) -> v2::ModelInferRequest {
    use v2::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
    let input = InferInputTensor {
        name: "INPUT0".to_owned(),
        datatype: "FP32".to_owned(),
        shape: shape.to_vec(),
        ..InferInputTensor::default()
    };
    let output = InferRequestedOutputTensor {
        name: "OUTPUT0".to_owned(),
        ..InferRequestedOutputTensor::default()
    };
    v2::ModelInferRequest {
        model_name: MODEL.to_owned(),
        inputs: vec![input],
        outputs: vec![output],
        raw_input_contents: vec![raw],
        ..v2::ModelInferRequest::default()
    }
}

fn numbers_of(body: &[u8]) -> Option<Vec<f32>> {
    let response: Value = serde_json::from_slice(body).ok()?;
    let data = response.pointer("/outputs/0/data")?.as_array()?;
    data.iter().map(|n| n.as_f64().map(|n| n as f32)).collect()
}
