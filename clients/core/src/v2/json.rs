//! The JSON of v2 inference over HTTP, with binary tensors behind it.

use super::request::{Data, InferRequest, Input, Parameter, SequenceId, SharedMemory};
use super::response::{InferResponse, Output};
use super::values;
use crate::error::{Error, Result};
use crate::transport::body::Segments;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A request body and the length of its JSON, if binary tensors follow it.
pub(super) fn json_request(request: &InferRequest) -> Result<(Segments, Option<usize>)> {
    let mut head = Map::new();
    if !request.id.is_empty() {
        head.insert("id".into(), request.id.as_str().into());
    }
    let parameters = json_parameters(request);
    if !parameters.is_empty() {
        head.insert("parameters".into(), parameters.into());
    }
    let inputs: Result<Vec<_>> =
        request.inputs.iter().map(|i| json_input(i, &request.model)).collect();
    head.insert("inputs".into(), Value::Array(inputs?));
    if !request.outputs.is_empty() {
        let outputs = request.outputs.iter().map(|output| {
            let mut parameters = Map::new();
            match &output.shared_memory {
                Some(memory) => put_shared_memory(&mut parameters, memory),
                None => {
                    parameters.insert("binary_data".into(), (!output.json).into());
                }
            }
            if output.classes > 0 {
                parameters.insert("classification".into(), output.classes.into());
            }
            json!({"name": output.name, "parameters": parameters})
        });
        head.insert("outputs".into(), outputs.collect());
    }
    let head = Value::Object(head).to_string();
    let binary = |input: &&Input| !input.json && matches!(input.data, Data::Raw(_));
    let length = request.inputs.iter().any(|i| binary(&i)).then_some(head.len());
    let mut body = Segments::from(head.into_bytes());
    for input in request.inputs.iter().filter(binary) {
        input.raw().iter().for_each(|slice| body.put_shared(slice));
    }
    Ok((body, length))
}

fn json_parameters(request: &InferRequest) -> Map<String, Value> {
    let mut all = Map::new();
    if let Some(sequence) = &request.sequence {
        let id: Value = match &sequence.id {
            SequenceId::Number(number) => (*number).into(),
            SequenceId::Text(text) => text.as_str().into(),
        };
        all.insert("sequence_id".into(), id);
        all.insert("sequence_start".into(), sequence.start.into());
        all.insert("sequence_end".into(), sequence.end.into());
    }
    if request.priority > 0 {
        all.insert("priority".into(), request.priority.into());
    }
    if request.timeout_us > 0 {
        all.insert("timeout".into(), request.timeout_us.into());
    }
    if request.outputs.is_empty() && !request.json_outputs {
        all.insert("binary_data_output".into(), true.into());
    }
    for (name, value) in &request.parameters {
        let value = match value {
            Parameter::Bool(value) => (*value).into(),
            Parameter::Int(value) => (*value).into(),
            Parameter::Uint(value) => (*value).into(),
            Parameter::Double(value) => (*value).into(),
            Parameter::String(value) => value.as_str().into(),
        };
        all.insert(name.clone(), value);
    }
    all
}

fn json_input(input: &Input, model: &str) -> Result<Value> {
    let mut value = json!({
        "name": input.name, "shape": input.shape, "datatype": input.datatype,
    });
    match &input.data {
        Data::Raw(slices) if input.json => {
            let joined = slices.concat();
            let data = values::to_json(&input.datatype, &joined).map_err(|e| {
                e.map_message(|text| format!("input '{}' for model '{model}': {text}", input.name))
            })?;
            value["data"] = data;
        }
        Data::Raw(_) => value["parameters"] = json!({"binary_data_size": input.raw_len()}),
        Data::SharedMemory(memory) => {
            let mut parameters = Map::new();
            put_shared_memory(&mut parameters, memory);
            value["parameters"] = parameters.into();
        }
    }
    Ok(value)
}

fn put_shared_memory(parameters: &mut Map<String, Value>, memory: &SharedMemory) {
    parameters.insert("shared_memory_region".into(), memory.region.as_str().into());
    parameters.insert("shared_memory_byte_size".into(), memory.byte_size.into());
    if memory.offset > 0 {
        parameters.insert("shared_memory_offset".into(), memory.offset.into());
    }
}

#[derive(Deserialize)]
struct JsonHead<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    model_name: Cow<'a, str>,
    #[serde(default)]
    model_version: Value,
    #[serde(default)]
    parameters: Map<String, Value>,
    #[serde(borrow)]
    outputs: Vec<OutputHead<'a>>,
}

#[derive(Deserialize)]
struct OutputHead<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    datatype: Cow<'a, str>,
    shape: Vec<i64>,
    #[serde(default)]
    parameters: Map<String, Value>,
    data: Option<Value>,
}

/// A response body, whose JSON has this length if binary tensors follow it.
pub(super) fn json_response(body: &Bytes, json_length: Option<usize>) -> Result<InferResponse> {
    let length = json_length.unwrap_or(body.len());
    if length > body.len() {
        return Err(Error::protocol(format!(
            "the JSON of the response has {length} bytes by its header, but the whole response only {}",
            body.len()
        )));
    }
    let head: JsonHead = serde_json::from_slice(&body[..length])
        .map_err(|e| Error::protocol(format!("the response is not an inference response: {e}")))?;
    let mut rest = body.slice(length..);
    let mut outputs = Vec::with_capacity(head.outputs.len());
    for output in head.outputs {
        let data = match (output.parameters.get("binary_data_size"), output.data) {
            (Some(size), _) => binary(&output.name, size, &mut rest)?,
            (None, Some(data)) => values::from_json(&output.datatype, &data)
                .map_err(|e| e.map_message(|text| format!("output '{}': {text}", output.name)))?,
            (None, None) => Bytes::new(),
        };
        outputs.push(Output {
            name: output.name.into_owned(),
            datatype: output.datatype.into_owned(),
            shape: output.shape,
            data,
            in_shared_memory: false,
        });
    }
    if !rest.is_empty() {
        return Err(Error::protocol(format!(
            "the response has {} bytes behind its last output",
            rest.len()
        )));
    }
    let version = match head.model_version {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let parameters = head.parameters.into_iter();
    Ok(InferResponse {
        model: head.model_name.into_owned(),
        version,
        id: head.id.into_owned(),
        parameters: parameters.filter_map(|(name, p)| Some((name, json_parameter(p)?))).collect(),
        outputs,
        is_final: true,
    })
}

fn binary(name: &str, size: &Value, rest: &mut Bytes) -> Result<Bytes> {
    let size = size.as_u64().and_then(|size| usize::try_from(size).ok()).ok_or_else(|| {
        Error::protocol(format!("output '{name}': `{size}` is not a binary_data_size"))
    })?;
    if size > rest.len() {
        return Err(Error::protocol(format!(
            "output '{name}' has {size} bytes by its binary_data_size, the response has {} left",
            rest.len()
        )));
    }
    Ok(rest.split_to(size))
}

fn json_parameter(value: Value) -> Option<Parameter> {
    Some(match value {
        Value::Bool(value) => Parameter::Bool(value),
        Value::String(value) => Parameter::String(value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Parameter::Int(value),
            (None, Some(value)) => Parameter::Uint(value),
            (None, None) => Parameter::Double(number.as_f64()?),
        },
        _ => return None,
    })
}
