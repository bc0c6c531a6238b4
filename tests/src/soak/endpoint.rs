//! Encodes a request and checks its response on each endpoint.

use super::request::SoakRequest;
use crate::http1::request;
use bytes::Bytes;
use trtserver_proto::v2::infer_parameter::ParameterChoice;
use trtserver_proto::v2::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use trtserver_proto::{v1, v2};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    V1Http,
    V2Http,
    V1Grpc,
    V2Grpc,
    V1Stream,
    V2Stream,
}

impl Endpoint {
    pub fn path(self) -> &'static str {
        match self {
            Endpoint::V1Grpc => "/nvidia.inferenceserver.GRPCService/Infer",
            Endpoint::V1Stream => "/nvidia.inferenceserver.GRPCService/StreamInfer",
            Endpoint::V2Grpc => "/inference.GRPCInferenceService/ModelInfer",
            Endpoint::V2Stream => "/inference.GRPCInferenceService/ModelStreamInfer",
            Endpoint::V1Http | Endpoint::V2Http => "",
        }
    }

    pub fn is_http(self) -> bool {
        matches!(self, Endpoint::V1Http | Endpoint::V2Http)
    }

    pub fn is_v1(self) -> bool {
        matches!(self, Endpoint::V1Http | Endpoint::V1Grpc | Endpoint::V1Stream)
    }

    /// The whole HTTP request.
    pub fn http(self, q: &SoakRequest) -> Vec<u8> {
        let data: Vec<u8> = q.inputs.iter().flat_map(|input| input.bytes.iter().copied()).collect();
        if self == Endpoint::V1Http {
            let path = format!("/api/infer/{}?format=binary", q.model);
            return request("POST", &path, &[("NV-InferRequest", &v1_text(q))], &data);
        }
        let json = v2_json(q);
        let head = [("Inference-Header-Content-Length", json.len().to_string())];
        let head = head.each_ref().map(|(name, value)| (*name, value.as_str()));
        let body = [json.as_bytes(), &data].concat();
        request("POST", &format!("/v2/models/{}/infer", q.model), &head, &body)
    }

    /// Outputs are raw bytes in request order: in front of the header in v1, behind the JSON in v2.
    pub fn check_http(self, q: &SoakRequest, body: &[u8]) -> Result<(), String> {
        let length: usize = q.outputs.iter().map(|(_, bytes)| bytes.len()).sum();
        let place = if self == Endpoint::V1Http {
            body.get(..length)
        } else {
            body.len().checked_sub(length).and_then(|at| body.get(at..))
        };
        let mut rest = place.ok_or_else(|| format!("only {} bytes", body.len()))?;
        for (name, bytes) in &q.outputs {
            let (one, others) = rest.split_at(bytes.len());
            q.check(name, one)?;
            rest = others;
        }
        Ok(())
    }
}

pub fn v1_request(q: &SoakRequest) -> v1::InferRequest {
    use v1::infer_request_header::{Input, Output};
    let input = |input: &super::request::Tensor| Input {
        name: input.name.to_owned(),
        dims: vec![input.length as i64],
        ..Input::default()
    };
    let output =
        |(name, _): &(&str, Bytes)| Output { name: (*name).to_owned(), ..Output::default() };
    v1::InferRequest {
        model_name: q.model.to_owned(),
        model_version: -1,
        meta_data: Some(v1::InferRequestHeader {
            batch_size: q.rows as u32,
            input: q.inputs.iter().map(input).collect(),
            output: q.outputs.iter().map(output).collect(),
            correlation_id: q.sequence,
            flags: u32::from(q.start) | u32::from(q.end) << 1,
            priority: q.priority,
            ..v1::InferRequestHeader::default()
        }),
        raw_input: q.inputs.iter().map(|input| input.bytes.clone()).collect(),
    }
}

pub fn check_v1(q: &SoakRequest, response: &v1::InferResponse) -> Result<(), String> {
    let status = response.request_status.as_ref();
    if status.is_none_or(|status| status.code() != v1::RequestStatusCode::Success) {
        return Err(format!("{}: {status:?}", q.model));
    }
    let outputs = response.meta_data.as_ref().map(|m| m.output.as_slice()).unwrap_or_default();
    check(q, outputs.iter().map(|output| output.name.as_str()), &response.raw_output)
}

pub fn v2_request(q: &SoakRequest) -> v2::ModelInferRequest {
    let input = |input: &super::request::Tensor| InferInputTensor {
        name: input.name.to_owned(),
        datatype: input.datatype.to_owned(),
        shape: vec![q.rows as i64, input.length as i64],
        ..InferInputTensor::default()
    };
    let output = |(name, _): &(&str, Bytes)| InferRequestedOutputTensor {
        name: (*name).to_owned(),
        ..InferRequestedOutputTensor::default()
    };
    let mut request = v2::ModelInferRequest {
        model_name: q.model.to_owned(),
        inputs: q.inputs.iter().map(input).collect(),
        outputs: q.outputs.iter().map(output).collect(),
        raw_input_contents: q.inputs.iter().map(|input| input.bytes.clone()).collect(),
        ..v2::ModelInferRequest::default()
    };
    let mut parameter = |key: &str, choice| {
        let value = v2::InferParameter { parameter_choice: Some(choice) };
        request.parameters.insert(key.to_owned(), value);
    };
    if q.sequence != 0 {
        parameter("sequence_id", ParameterChoice::Int64Param(q.sequence as i64));
        parameter("sequence_start", ParameterChoice::BoolParam(q.start));
        parameter("sequence_end", ParameterChoice::BoolParam(q.end));
    }
    if q.priority != 0 {
        parameter("priority", ParameterChoice::Uint64Param(q.priority.into()));
    }
    request
}

pub fn check_v2(q: &SoakRequest, response: &v2::ModelInferResponse) -> Result<(), String> {
    let names = response.outputs.iter().map(|output| output.name.as_str());
    check(q, names, &response.raw_output_contents)
}

fn check<'a>(
    q: &SoakRequest,
    names: impl ExactSizeIterator<Item = &'a str>,
    raw: &[Bytes],
) -> Result<(), String> {
    if names.len() != q.outputs.len() || raw.len() != q.outputs.len() {
        return Err(format!(
            "{} outputs of {}, {} of them with data",
            names.len(),
            q.model,
            raw.len()
        ));
    }
    names.zip(raw).try_for_each(|(name, bytes)| q.check(name, bytes))
}

fn v1_text(q: &SoakRequest) -> String {
    let mut text = format!("batch_size: {}", q.rows);
    if q.sequence != 0 {
        let flags = u32::from(q.start) | u32::from(q.end) << 1;
        text += &format!(" correlation_id: {} flags: {flags}", q.sequence);
    }
    if q.priority != 0 {
        text += &format!(" priority: {}", q.priority);
    }
    for input in &q.inputs {
        text += &format!(" input {{ name: \"{}\" dims: {} }}", input.name, input.length);
    }
    for (name, _) in &q.outputs {
        text += &format!(" output {{ name: \"{name}\" }}");
    }
    text
}

fn v2_json(q: &SoakRequest) -> String {
    let inputs: Vec<_> = q
        .inputs
        .iter()
        .map(|input| {
            serde_json::json!({
                "name": input.name, "datatype": input.datatype, "shape": [q.rows, input.length],
                "parameters": { "binary_data_size": input.bytes.len() },
            })
        })
        .collect();
    let output = |(name, _): &(&str, Bytes)| serde_json::json!({ "name": name, "parameters": { "binary_data": true } });
    let outputs: Vec<_> = q.outputs.iter().map(output).collect();
    let mut json = serde_json::json!({ "inputs": inputs, "outputs": outputs });
    if q.sequence != 0 {
        json["parameters"] = serde_json::json!({
            "sequence_id": q.sequence, "sequence_start": q.start, "sequence_end": q.end,
        });
    }
    if q.priority != 0 {
        json["parameters"] = serde_json::json!({ "priority": q.priority });
    }
    json.to_string()
}
