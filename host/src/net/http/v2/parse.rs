//! An inference request: JSON with or without tensors behind it, or the bytes of one tensor alone.

use super::json::data::{self, wrong_type};
use super::json::{self, Array, Object, Value};
use super::parameters;
use crate::error::{Error, Result};
use crate::net::v2::{Draft, SHARED_MEMORY_DISABLED};
use crate::request::buffer::AlignedBuf;
use crate::request::check::{self, IdPrefix};
use crate::request::tensor::element_count;
use crate::request::{DType, InputTensor, Shape, ShapeText, Signature};
use bytes::Bytes;
use smallvec::SmallVec;

/// What the answer needs of the request.
#[derive(Debug, Default, PartialEq)]
pub struct Asked {
    pub id: String,
    pub outputs: SmallVec<[AskedOutput; 4]>,
    /// Outputs that are not listed go out as bytes.
    pub binary: bool,
}

/// An output that the caller listed.
#[derive(Debug, PartialEq)]
pub struct AskedOutput {
    pub name: String,
    pub binary: bool,
    /// 0 = the tensor itself.
    pub classes: u32,
}

/// Reads a request whose first `header` bytes are JSON; the rest are binary sections.
pub fn request(
    signature: &Signature,
    body: &Bytes,
    header: usize,
    limit: u64,
) -> Result<(Draft, Asked)> {
    if header as u64 > limit {
        return Err(too_large_json(header as u64, limit));
    }
    let top = object(json::parse(&body[..header])?);
    let mut draft = Draft::default();
    if let Some(id) = top.get("id") {
        draft.id = text("id", id)?;
    }
    if let Some(value) = top.get("parameters") {
        let Value::Object(object) = value else {
            return Err(Error::internal(
                "failed to get request params.: attempt to get members for non-object",
            ));
        };
        draft.parameters = parameters::read(object)?;
    }
    let mut sections = body.slice(header..);
    let inputs = array("inputs", member(&top, "inputs")?)?;
    for input in inputs.elements() {
        let input = object(input?);
        let input = self::input(&input, &mut sections, signature)?;
        let Some(index) = signature.input(&input.name) else {
            return Err(check::unknown_input(signature, &draft.id, &input.name, &names(inputs)));
        };
        let tensor = input.tensor(index, signature, limit)?;
        draft.inputs.push(tensor);
    }
    if !sections.is_empty() {
        return Err(Error::invalid(format!(
            "unexpected additional input data for model '{}'",
            signature.model
        )));
    }
    let mut asked = Asked {
        id: draft.id.clone(),
        binary: draft.parameters.binary_output,
        ..Default::default()
    };
    if let Some(outputs) = top.get("outputs") {
        for output in array("outputs", outputs)?.elements() {
            let output = self::output(&object(output?))?;
            draft.want(signature, &output.name, output.classes)?;
            asked.outputs.push(output);
        }
    }
    Ok((draft, asked))
}

pub fn too_large_json(bytes: u64, limit: u64) -> Error {
    Error::invalid(format!(
        "request JSON size of {bytes} bytes exceeds the maximum allowed input size of {limit} bytes. Use \
         --http-max-input-size to increase the limit."
    ))
}

pub fn too_large_raw(bytes: u64, limit: u64) -> Error {
    Error::invalid(format!(
        "Raw input has a byte_size ({bytes} bytes) that exceeds the maximum allowed value of {limit} \
         bytes. Use --http-max-input-size to increase the limit."
    ))
}

/// What is no object has no members; that they are missing is what the caller is told.
fn object(value: Value<'_>) -> Object<'_> {
    match value {
        Value::Object(object) => object,
        _ => Object::default(),
    }
}

/// The names of all inputs.
fn names(inputs: Array<'_>) -> Vec<String> {
    let names = inputs.elements().filter_map(Result::ok).map(|input| {
        let name = object(input);
        name.get("name").and_then(|name| text("name", name).ok()).unwrap_or_default()
    });
    names.collect()
}

fn member<'o, 'a>(object: &'o Object<'a>, key: &str) -> Result<&'o Value<'a>> {
    object.get(key).ok_or_else(|| {
        Error::internal(format!(
            "Unable to parse '{key}': attempt to access non-existing object member '{key}'"
        ))
    })
}

fn text(field: &str, value: &Value<'_>) -> Result<String> {
    match value {
        Value::String(text) => Ok(String::from_utf8_lossy(text).into_owned()),
        _ => Err(wrong_type(field, "string")),
    }
}

fn array<'a>(field: &str, value: &Value<'a>) -> Result<Array<'a>> {
    match value {
        Value::Array(array) => Ok(*array),
        _ => Err(wrong_type(field, "array")),
    }
}

fn unsigned(field: &str, value: &Value<'_>) -> Result<u64> {
    data::unsigned(value).ok_or_else(|| wrong_type(field, "unsigned-integer"))
}

/// An input as it stands in a request.
struct Input<'o, 'a> {
    name: String,
    shape: Shape,
    dtype: DType,
    source: Source<'o, 'a>,
}

enum Source<'o, 'a> {
    Json(&'o Value<'a>),
    Binary(Bytes),
}

fn input<'o, 'a>(
    object: &'o Object<'a>,
    sections: &mut Bytes,
    signature: &Signature,
) -> Result<Input<'o, 'a>> {
    let parameters = match object.get("parameters") {
        Some(Value::Object(parameters)) => parameters,
        _ => &Object::default(),
    };
    let json = object.get("data");
    let binary = parameters.get("binary_data_size");
    let region = parameters.get("shared_memory_region");
    if [json, binary, region].iter().flatten().count() != 1 {
        return Err(one_source(json.is_some(), binary.is_some(), region.is_some()));
    }
    let name = text("name", member(object, "name")?)?;
    let mut shape = Shape::new();
    for d in array("shape", member(object, "shape")?)?.elements() {
        shape.push(i64::try_from(unsigned("shape", &d?)?).unwrap_or(i64::MAX));
    }
    let datatype = text("datatype", member(object, "datatype")?)?;
    let Some(dtype) = DType::from_v2_name(&datatype) else {
        return Err(Error::invalid(format!("invalid datatype for input {name}")));
    };
    let source = if let Some(json) = json {
        Source::Json(json)
    } else if let Some(size) = binary {
        let size = unsigned("binary_data_size", size)?;
        let there = sections.len() as u64;
        if size > there {
            return Err(Error::invalid(format!(
                "unexpected size for input '{name}', expecting {} additional bytes for model '{}'",
                size - there,
                signature.model
            )));
        }
        Source::Binary(sections.split_to(size as usize))
    } else {
        if let Some(region) = region {
            text("shared_memory_region", region)?;
        }
        return Err(Error::unsupported(SHARED_MEMORY_DISABLED));
    };
    Ok(Input { name, shape, dtype, source })
}

impl Input<'_, '_> {
    fn tensor(self, index: usize, signature: &Signature, limit: u64) -> Result<InputTensor> {
        let Self { name, shape, dtype, source } = self;
        let data = match source {
            Source::Binary(data) => data,
            // Nothing is read for no dimensions: where a batch is expected, that is what is wrong.
            Source::Json(_) if shape.is_empty() && signature.batching() => Bytes::new(),
            Source::Json(json) => match elements(&name, &shape, dtype)? {
                0 => Bytes::new(),
                elements => data::decode(array("data", json)?, dtype, elements, &name, limit)?,
            },
        };
        Ok(InputTensor { index, dtype, shape, data })
    }
}

fn one_source(data: bool, binary: bool, region: bool) -> Error {
    let set: Vec<&str> =
        [(data, "'data'"), (binary, "'binary_data_size'"), (region, "'shared_memory_region'")]
            .into_iter()
            .filter_map(|(set, name)| set.then_some(name))
            .collect();
    let found = if set.is_empty() {
        "no field is set".to_owned()
    } else {
        format!("set {}", set.join(" "))
    };
    Error::invalid(format!(
        "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', \
         'shared_memory_region' in 'parameters'. But {found}"
    ))
}

/// How many values `data` should have. A product that makes no sense is found before any is read.
fn elements(name: &str, shape: &[i64], dtype: DType) -> Result<usize> {
    let most = i64::MAX as usize;
    let Some(count) = element_count(shape).filter(|n| *n <= most) else {
        return Err(Error::invalid(format!(
            "invalid shape for input '{name}': shape {} causes total element count to exceed maximum \
             size of {most}",
            ShapeText(shape)
        )));
    };
    let size = dtype.size().unwrap_or(1);
    match count.checked_mul(size).filter(|n| *n <= most) {
        Some(_) => Ok(count),
        None => Err(Error::invalid(format!(
            "byte size overflow for input '{name}': element count ({count}) * data type size ({size}) \
             exceeds maximum allowed size ({most})"
        ))),
    }
}

fn output(object: &Object<'_>) -> Result<AskedOutput> {
    let name = text("name", member(object, "name")?)?;
    let mut output = AskedOutput { name, binary: false, classes: 0 };
    let parameters = match object.get("parameters") {
        Some(Value::Object(parameters)) => parameters,
        _ => return Ok(output),
    };
    if let Some(value) = parameters.get("binary_data") {
        let Value::Bool(binary) = value else { return Err(wrong_type("binary_data", "boolean")) };
        output.binary = *binary;
    }
    if let Some(value) = parameters.get("classification") {
        let classes = data::unsigned(value).ok_or_else(|| {
            Error::internal(
                "Unable to set 'classification': attempt to access JSON non-unsigned-integer as \
                 unsigned-integer",
            )
        })?;
        output.classes = u32::try_from(classes).unwrap_or(u32::MAX);
    }
    if let Some(region) = parameters.get("shared_memory_region") {
        text("shared_memory_region", region)?;
        let other = match (output.classes > 0, output.binary) {
            (true, _) => "classification",
            (_, true) => "binary_data",
            _ => return Err(Error::unsupported(SHARED_MEMORY_DISABLED)),
        };
        return Err(Error::invalid(format!(
            "Output can't set both 'shared_memory_region' and '{other}'"
        )));
    }
    Ok(output)
}

/// A body that is nothing but the tensor of the model's only input (contract/v2 §2.7).
pub fn raw(signature: &Signature, body: Bytes) -> Result<(Draft, Asked)> {
    let none = IdPrefix("");
    let [spec] = signature.inputs.as_slice() else {
        let n = signature.inputs.len();
        return Err(Error::invalid(format!(
            "{none}Raw request must only have 1 input (found 1) to be deduced but got {n} inputs in '{}' \
             model configuration",
            signature.model
        )));
    };
    if spec.dims.iter().filter(|d| **d < 0).count() > 1 {
        return Err(Error::invalid(format!(
            "{none}The shape of the raw input '{}' can not be deduced because there are more than one \
             variable-sized dimension",
            spec.name
        )));
    }
    let fixed: i64 = spec.dims.iter().filter(|d| **d >= 0).product();
    let (variable, data) = match spec.dtype.size() {
        Some(size) => {
            let elements = body.len() / size;
            ((elements as i64).checked_div(fixed).unwrap_or(0), body)
        }
        None if spec.dims.iter().all(|d| *d == 1) => {
            let length = (body.len() as u32).to_le_bytes();
            (1, AlignedBuf::copy_of(&[&length, &body]).into_bytes())
        }
        None => {
            return Err(Error::invalid(format!(
                "{none}For BYTE datatype raw input '{}', the model must have input shape [1]",
                spec.name
            )));
        }
    };
    let batch = (signature.batching() && !spec.shape_tensor).then_some(1);
    let dims = spec.dims.iter().map(|&d| if d < 0 { variable } else { d });
    let shape = batch.into_iter().chain(dims).collect();
    let mut draft = Draft::default();
    draft.inputs.push(InputTensor { index: 0, dtype: spec.dtype, shape, data });
    Ok((draft, Asked { binary: true, ..Default::default() }))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
