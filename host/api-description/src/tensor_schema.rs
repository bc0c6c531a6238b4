//! Schemas of the tensors of a signature.

use crate::model_document::TensorFacts;
use serde_json::{Value, json};

/// The schema of one element in JSON.
pub fn element(datatype: &str) -> Value {
    let whole = |minimum: i128, maximum: i128| {
        // Numbers of JSON beyond 64 bits would be written as floating point.
        let (least, most) = (i64::try_from(minimum), u64::try_from(maximum));
        match (least, most) {
            (Ok(least), Ok(most)) => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            _ => json!({ "type": "integer" }),
        }
    };
    match datatype {
        "BOOL" => json!({ "type": "boolean" }),
        "UINT8" => whole(0, u8::MAX.into()),
        "UINT16" => whole(0, u16::MAX.into()),
        "UINT32" => whole(0, u32::MAX.into()),
        "UINT64" => whole(0, u64::MAX.into()),
        "INT8" => whole(i8::MIN.into(), i8::MAX.into()),
        "INT16" => whole(i16::MIN.into(), i16::MAX.into()),
        "INT32" => whole(i32::MIN.into(), i32::MAX.into()),
        "INT64" => whole(i64::MIN.into(), i64::MAX.into()),
        "BYTES" => json!({ "type": "string" }),
        _ => json!({ "type": "number" }),
    }
}

/// The dimensions, each a fixed number or any.
fn shape(dims: &[i64]) -> Value {
    let dims: Vec<Value> = dims
        .iter()
        .map(|&dim| match dim {
            0.. => json!({ "const": dim }),
            _ => json!({ "type": "integer", "minimum": 0 }),
        })
        .collect();
    let length = dims.len();
    let mut schema = json!({ "type": "array", "minItems": length, "maxItems": length });
    // An empty list of schemas is not valid.
    if length > 0 {
        schema["prefixItems"] = dims.into();
    }
    schema
}

/// The elements, flat in row-major order or nested as the shape is.
fn data(datatype: &str, dims: usize) -> Value {
    let element = element(datatype);
    let nested = (1..dims.max(1)).fold(element.clone(), |items, _| list(items));
    match dims {
        0 | 1 => list(element),
        _ => json!({ "anyOf": [list(element), list(nested)] }),
    }
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// A tensor in a request for `infer`. Without `data` it is binary or in shared memory, as its
/// parameters say.
pub fn input(tensor: &TensorFacts<'_>) -> Value {
    let mut schema = output(tensor);
    schema["required"] = json!(["name", "datatype", "shape"]);
    schema["anyOf"] = json!([{ "required": ["data"] }, { "required": ["parameters"] }]);
    schema
}

/// A tensor in a response of `infer`.
pub fn output(tensor: &TensorFacts<'_>) -> Value {
    json!({
        "type": "object",
        "title": tensor.name,
        "properties": {
            "name": { "const": tensor.name },
            "datatype": { "const": tensor.datatype },
            "shape": shape(tensor.shape),
            "parameters": { "$ref": "#/components/schemas/TensorParameters" },
            "data": data(tensor.datatype, tensor.shape.len()),
        },
        "required": ["name", "datatype", "shape"],
    })
}

/// A tensor of `generate`: its elements, or the only one.
pub fn member(tensor: &TensorFacts<'_>) -> Value {
    let element = element(tensor.datatype);
    json!({ "anyOf": [element.clone(), list(element)] })
}
