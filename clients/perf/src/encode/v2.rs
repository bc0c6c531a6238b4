//! v2 requests: JSON and binary tensors, or `ModelInferRequest`.

use super::http::{escape_name, http_request};
use super::{
    BatchTensors, EncodeTarget, EncodedMessage, ID_BYTES, ID_DIGITS, RegionSlice, SequenceField,
    TensorPayload, grpc_message, varint,
};
use crate::model::{MeasuredModel, ModelTensor};
use prost::Message as _;
use serde_json::{Map, Value, json};
use trtserver_proto::v2::infer_parameter::ParameterChoice;
use trtserver_proto::v2::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use trtserver_proto::v2::{InferParameter, ModelInferRequest};

/// With the batch dimension, if the model has one.
fn batch_shape(
    model: &MeasuredModel,
    payload: &TensorPayload,
    target: &EncodeTarget<'_>,
) -> Vec<i64> {
    let batch = (model.max_batch_size > 0).then_some(target.batch as i64);
    batch.into_iter().chain(payload.shape.iter().copied()).collect()
}

fn shared_memory(region: &RegionSlice) -> Map<String, Value> {
    let mut parameters = Map::new();
    parameters.insert("shared_memory_region".to_owned(), json!(region.name));
    parameters.insert("shared_memory_byte_size".to_owned(), json!(region.byte_size));
    parameters.insert("shared_memory_offset".to_owned(), json!(region.offset));
    parameters
}

pub fn encode_http(
    model: &MeasuredModel,
    tensors: &BatchTensors,
    target: &EncodeTarget<'_>,
) -> EncodedMessage {
    let (mut json, mut fields) = ("{".to_owned(), Vec::new());
    if target.sequences {
        json += "\"parameters\":{\"sequence_id\":";
        fields.push((json.len(), SequenceField::IdText));
        json += &" ".repeat(ID_DIGITS);
        json += ",\"sequence_start\":";
        fields.push((json.len(), SequenceField::StartText));
        json += "false,\"sequence_end\":";
        fields.push((json.len(), SequenceField::EndText));
        json += "false},";
    }
    let input = |(input, payload): (&ModelTensor, &TensorPayload)| {
        let parameters = match &payload.region {
            Some(region) => shared_memory(region),
            None => Map::from_iter([("binary_data_size".to_owned(), json!(payload.bytes.len()))]),
        };
        json!({
            "name": input.name,
            "shape": batch_shape(model, payload, target),
            "datatype": input.datatype,
            "parameters": parameters,
        })
    };
    let output = |(index, output): (usize, &ModelTensor)| {
        let parameters = match tensors.outputs.get(index) {
            Some(region) => shared_memory(region),
            None => Map::from_iter([("binary_data".to_owned(), json!(true))]),
        };
        json!({ "name": output.name, "parameters": parameters })
    };
    let inputs: Vec<Value> = model.inputs.iter().zip(&tensors.inputs).map(input).collect();
    let outputs: Vec<Value> = model.outputs.iter().enumerate().map(output).collect();
    json += &format!("\"inputs\":{},\"outputs\":{}}}", json!(inputs), json!(outputs));
    let header = format!("Inference-Header-Content-Length: {}\r\n", json.len());
    let version = match model.version.as_str() {
        "" => String::new(),
        version => format!("/versions/{version}"),
    };
    let path = format!("/v2/models/{}{version}/infer", escape_name(&model.name));
    http_request(target, &path, (&header, Vec::new()), (&json, fields), tensors)
}

fn parameter(value: &Value) -> InferParameter {
    let choice = match value {
        Value::String(text) => ParameterChoice::StringParam(text.clone()),
        Value::Bool(flag) => ParameterChoice::BoolParam(*flag),
        number => ParameterChoice::Int64Param(number.as_i64().unwrap_or_default()),
    };
    InferParameter { parameter_choice: Some(choice) }
}

pub fn encode_grpc(
    model: &MeasuredModel,
    tensors: &BatchTensors,
    target: &EncodeTarget<'_>,
) -> EncodedMessage {
    let parameters = |region: Option<&RegionSlice>| {
        let all = region.map(shared_memory).unwrap_or_default();
        all.iter().map(|(name, value)| (name.clone(), parameter(value))).collect()
    };
    let input = |(input, payload): (&ModelTensor, &TensorPayload)| InferInputTensor {
        name: input.name.clone(),
        datatype: input.datatype.clone(),
        shape: batch_shape(model, payload, target),
        parameters: parameters(payload.region.as_ref()),
        contents: None,
    };
    let output = |(index, output): (usize, &ModelTensor)| InferRequestedOutputTensor {
        name: output.name.clone(),
        parameters: parameters(tensors.outputs.get(index)),
    };
    let mut request = ModelInferRequest {
        model_name: model.name.clone(),
        model_version: model.version.clone(),
        inputs: model.inputs.iter().zip(&tensors.inputs).map(input).collect(),
        outputs: model.outputs.iter().enumerate().map(output).collect(),
        ..Default::default()
    };
    if model.decoupled {
        // The end of the responses must be known.
        let name = "triton_enable_empty_final_response".to_owned();
        request.parameters.insert(name, parameter(&Value::Bool(true)));
    }
    let mut head = request.encode_to_vec();
    let mut fields = Vec::new();
    if target.sequences {
        // `int64_param` and `bool_param`.
        let (int64, boolean) = (2 << 3, 1 << 3);
        for (name, tag, field, length) in [
            ("sequence_id", int64, SequenceField::IdVarint, ID_BYTES),
            ("sequence_start", boolean, SequenceField::StartByte, 1),
            ("sequence_end", boolean, SequenceField::EndByte, 1),
        ] {
            // An entry of the map `parameters`: key 1, value 2.
            let mut entry = vec![1 << 3 | 2];
            varint(name.len() as u64, &mut entry);
            entry.extend_from_slice(name.as_bytes());
            entry.extend([2 << 3 | 2, length as u8 + 1, tag]);
            let at = entry.len();
            entry.extend(std::iter::repeat_n(0, length));
            head.push(4 << 3 | 2);
            varint(entry.len() as u64, &mut head);
            fields.push((head.len() + at, field));
            head.extend(entry);
        }
    }
    grpc_message(&head, fields, 7, tensors)
}
