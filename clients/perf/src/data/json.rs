//! `--input-data FILE.json`: steps, or data streams of steps, each with a value for every input.

use super::{Item, TensorData, check_fit, count_elements, input_shape, values};
use crate::model::{MeasuredModel, ModelTensor, element_size};
use base64::Engine;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

type Shapes = BTreeMap<String, Vec<i64>>;

/// Appends the data of a file: `data` is a list of steps, which join the first stream, or a list of
/// streams.
pub fn read_json(
    model: &MeasuredModel,
    shapes: &Shapes,
    file: &Path,
    streams: &mut Vec<Vec<Item>>,
) -> Result<(), String> {
    let wrap = |problem: String| format!("{}: {problem}", file.display());
    let text = fs::read(file)
        .map_err(|e| wrap(format!("failed to open file for reading input data: {e}")))?;
    let json: Value = serde_json::from_slice(&text).map_err(|e| {
        wrap(format!("failed to parse the specified json file for reading inputs: {e}"))
    })?;
    parse_json(model, shapes, &json, streams).map_err(wrap)
}

pub fn parse_json(
    model: &MeasuredModel,
    shapes: &Shapes,
    json: &Value,
    streams: &mut Vec<Vec<Item>>,
) -> Result<(), String> {
    let data = json.get("data").ok_or("The json file doesn't contain data field")?;
    let data = data.as_array().ok_or("the field `data` must be a list")?;
    let count = match json.get("count") {
        None => data.len(),
        Some(count) => match count.as_u64() {
            None => return Err("The count field in the json should be of type int".to_owned()),
            Some(0) => data.len(),
            Some(count) => data.len().min(count as usize),
        },
    };
    if count == 0 {
        return Err("the field `data` is empty".to_owned());
    }
    for (index, entry) in data[..count].iter().enumerate() {
        match entry {
            Value::Array(steps) if steps.is_empty() => {
                return Err(format!("data stream {index} has no steps"));
            }
            Value::Array(steps) => {
                let stream = streams.len();
                let items = steps.iter().enumerate();
                let items =
                    items.map(|(step, value)| read_item(model, shapes, value, (stream, step)));
                streams.push(items.collect::<Result<_, _>>()?);
            }
            // Steps without streams.
            value => {
                if streams.is_empty() {
                    streams.push(Vec::new());
                }
                let step = streams[0].len();
                streams[0].push(read_item(model, shapes, value, (0, step))?);
            }
        }
    }
    Ok(())
}

fn read_item(
    model: &MeasuredModel,
    shapes: &Shapes,
    step: &Value,
    (stream, index): (usize, usize),
) -> Result<Item, String> {
    let place = format!(" ( Location stream id: {stream}, step id: {index})");
    let tensors = model.inputs.iter().map(|input| {
        let value =
            step.get(&input.name).ok_or_else(|| format!("missing input {}{place}", input.name))?;
        read_tensor(input, shapes, value).map_err(|problem| problem + &place)
    });
    tensors.collect()
}

fn read_tensor(input: &ModelTensor, shapes: &Shapes, value: &Value) -> Result<TensorData, String> {
    let given = match value.get("shape") {
        None => None,
        Some(list) => {
            let dims = list.as_array().map(|dims| dims.iter().map(Value::as_i64).collect());
            let dims: Vec<i64> = dims.flatten().ok_or_else(|| {
                format!("input '{}': `shape` must be a list of integers", input.name)
            })?;
            check_fit(input, &dims)?;
            Some(dims)
        }
    };
    let shape = given.map_or_else(|| input_shape(input, shapes), Ok)?;
    let count = count_elements(input, &shape)?;
    if let Some(encoded) = value.get("b64") {
        let text = encoded.as_str().ok_or("the value of b64 field should be of type string")?;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|e| format!("input '{}': invalid base64: {e}", input.name))?;
        if let Some(size) = element_size(&input.datatype)
            && bytes.len() != size * count
        {
            return Err(format!(
                "mismatch in the data provided. Expected: {} bytes, Got: {} bytes",
                size * count,
                bytes.len()
            ));
        }
        return Ok(TensorData { shape, bytes });
    }
    let list = value.get("content").unwrap_or(value);
    if !list.is_array() {
        return Err(
            "The input values are not supported. Expected an array or b64 string".to_owned()
        );
    }
    let mut flat = Vec::new();
    flatten_values(list, &mut flat);
    if flat.len() != count {
        return Err(format!(
            "mismatch in the number of elements of provided. Expected: {count}, Got: {}",
            flat.len()
        ));
    }
    let mut bytes = Vec::new();
    for value in flat {
        values::push_json(value, &input.datatype, &mut bytes)
            .map_err(|problem| format!("input '{}': {problem}", input.name))?;
    }
    Ok(TensorData { shape, bytes })
}

fn flatten_values<'v>(value: &'v Value, out: &mut Vec<&'v Value>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| flatten_values(value, out)),
        value => out.push(value),
    }
}
