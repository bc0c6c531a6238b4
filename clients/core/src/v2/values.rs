//! Tensors as JSON values, for servers without the binary extension.

use crate::error::{Error, Result};
use crate::tensor::{decode_strings, element_size, encode_strings};
use bytes::Bytes;
use serde_json::Value;

/// A flat array of the elements.
pub(super) fn to_json(datatype: &str, bytes: &[u8]) -> Result<Value> {
    fn all<const N: usize, V: Into<Value>>(bytes: &[u8], of: impl Fn([u8; N]) -> V) -> Vec<Value> {
        bytes.as_chunks().0.iter().map(|chunk| of(*chunk).into()).collect()
    }
    let size = element_size(datatype).unwrap_or(1);
    if !bytes.len().is_multiple_of(size) {
        return Err(Error::invalid(format!(
            "{} bytes are not a whole number of {datatype} elements",
            bytes.len()
        )));
    }
    let elements = match datatype {
        "BOOL" => all(bytes, |[byte]: [u8; 1]| byte != 0),
        "INT8" => all(bytes, i8::from_le_bytes),
        "INT16" => all(bytes, i16::from_le_bytes),
        "INT32" => all(bytes, i32::from_le_bytes),
        "INT64" => all(bytes, i64::from_le_bytes),
        "UINT8" => all(bytes, u8::from_le_bytes),
        "UINT16" => all(bytes, u16::from_le_bytes),
        "UINT32" => all(bytes, u32::from_le_bytes),
        "UINT64" => all(bytes, u64::from_le_bytes),
        "FP32" => all(bytes, f32::from_le_bytes),
        "FP64" => all(bytes, f64::from_le_bytes),
        "BYTES" => {
            let strings = decode_strings(bytes)?.into_iter().map(|string| {
                std::str::from_utf8(string)
                    .map(Value::from)
                    .map_err(|_| Error::invalid("JSON cannot hold strings that are not UTF-8"))
            });
            strings.collect::<Result<_>>()?
        }
        _ => return Err(Error::invalid(format!("JSON cannot hold the datatype {datatype}"))),
    };
    if elements.iter().any(Value::is_null) {
        return Err(Error::invalid("JSON cannot hold NaN and infinite numbers"));
    }
    Ok(Value::Array(elements))
}

/// The elements of an array, which may be nested.
pub(super) fn from_json(datatype: &str, data: &Value) -> Result<Bytes> {
    let mut elements = Vec::new();
    flatten_values(data, &mut elements);
    let wrong = |value: &Value| Error::protocol(format!("`{value}` is not a {datatype} element"));
    if datatype == "BYTES" {
        let strings = elements.into_iter().map(|v| v.as_str().ok_or_else(|| wrong(v)));
        return Ok(encode_strings(strings.collect::<Result<Vec<_>>>()?));
    }
    let size = element_size(datatype)
        .ok_or_else(|| Error::protocol(format!("the datatype `{datatype}` is unknown")))?;
    let mut bytes = Vec::with_capacity(elements.len() * size);
    for value in elements {
        put_value(&mut bytes, datatype, value).ok_or_else(|| wrong(value))?;
    }
    Ok(bytes.into())
}

fn flatten_values<'a>(value: &'a Value, to: &mut Vec<&'a Value>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| flatten_values(value, to)),
        value => to.push(value),
    }
}

/// Appends an element; `None` if the value has another type, or is out of range.
fn put_value(bytes: &mut Vec<u8>, datatype: &str, value: &Value) -> Option<()> {
    let signed = value.as_i64();
    let unsigned = value.as_u64();
    match datatype {
        "BOOL" => bytes.push(u8::from(value.as_bool()?)),
        "INT8" => bytes.extend(i8::try_from(signed?).ok()?.to_le_bytes()),
        "INT16" => bytes.extend(i16::try_from(signed?).ok()?.to_le_bytes()),
        "INT32" => bytes.extend(i32::try_from(signed?).ok()?.to_le_bytes()),
        "INT64" => bytes.extend(signed?.to_le_bytes()),
        "UINT8" => bytes.extend(u8::try_from(unsigned?).ok()?.to_le_bytes()),
        "UINT16" => bytes.extend(u16::try_from(unsigned?).ok()?.to_le_bytes()),
        "UINT32" => bytes.extend(u32::try_from(unsigned?).ok()?.to_le_bytes()),
        "UINT64" => bytes.extend(unsigned?.to_le_bytes()),
        "FP32" => bytes.extend((value.as_f64()? as f32).to_le_bytes()),
        "FP64" => bytes.extend(value.as_f64()?.to_le_bytes()),
        _ => return None,
    }
    Some(())
}
