//! Reads one input of an inference request: name, shape, datatype, and its bytes in JSON or in a
//! binary section.

use super::json::access::{expect_array, expect_member, expect_text, expect_unsigned};
use super::json::{JsonTensors, JsonValue, PickedMembers, data};
use super::shared_memory;
use crate::RequestRegions;
use bytes::Bytes;
use std::borrow::Cow;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_request::tensor::element_count;
use trtserver_request::{DType, InputTensor, ModelSignature, Shape, ShapeText};
use trtserver_wire::shared_memory::RegionSlice;

/// An input before it is checked against the model.
pub struct RequestInput<'o, 'a> {
    pub name: Cow<'o, str>,
    shape: Shape,
    dtype: DType,
    source: InputSource<'o, 'a>,
}

enum InputSource<'o, 'a> {
    Json(&'o JsonValue<'a>),
    Binary(Bytes),
    Shared(RegionSlice),
}

/// Reads an input, given its [members](super::json::inputs::MEMBERS), and takes its bytes off the
/// binary `sections`.
pub fn read_input<'o, 'a>(
    [name, shape, datatype, json, parameters]: &'o PickedMembers<'a, 5>,
    sections: &mut Bytes,
    signature: &ModelSignature,
) -> Result<RequestInput<'o, 'a>> {
    let parameters = match parameters {
        Some(JsonValue::Object(parameters)) => Some(*parameters),
        _ => None,
    };
    let [binary, region] = match parameters {
        Some(parameters) => parameters.pick(["binary_data_size", shared_memory::REGION])?,
        None => [None, None],
    };
    let set = [json.is_some(), binary.is_some(), region.is_some()];
    if set.iter().filter(|set| **set).count() != 1 {
        return Err(one_source(set));
    }
    let name = expect_text("name", expect_member(name, "name")?)?;
    let dims = expect_array("shape", expect_member(shape, "shape")?)?;
    let mut shape = Shape::new();
    for d in dims.elements() {
        shape.push(i64::try_from(expect_unsigned("shape", &d?)?).unwrap_or(i64::MAX));
    }
    let datatype = expect_text("datatype", expect_member(datatype, "datatype")?)?;
    let Some(dtype) = DType::from_v2_name(&datatype) else {
        return Err(Error::invalid(format!("invalid datatype for input {name}")));
    };
    let source = if let Some(json) = json {
        InputSource::Json(json)
    } else if let Some(size) = binary {
        let size = expect_unsigned("binary_data_size", &size)?;
        let there = sections.len() as u64;
        if size > there {
            return Err(Error::invalid(format!(
                "unexpected size for input '{name}', expecting {} additional bytes for model '{}'",
                size - there,
                signature.model
            )));
        }
        InputSource::Binary(sections.split_to(size as usize))
    } else if let (Some(parameters), Some(region)) = (parameters, region) {
        InputSource::Shared(shared_memory::parse_region_slice(parameters, &region)?)
    } else {
        return Err(one_source(set));
    };
    Ok(RequestInput { name, shape, dtype, source })
}

impl RequestInput<'_, '_> {
    /// The tensor of the declared input number `index`, which `read` may hold.
    pub fn tensor(
        self,
        index: usize,
        signature: &ModelSignature,
        read: &mut JsonTensors<'_, '_>,
        limit: u64,
        regions: RequestRegions<'_>,
    ) -> Result<InputTensor> {
        let Self { name, shape, dtype, source } = self;
        let data = match source {
            InputSource::Binary(data) => data,
            InputSource::Shared(slice) => {
                let data = regions.input(&slice)?;
                return Ok(InputTensor { index, dtype, shape, data });
            }
            // A missing batch dimension is reported by the check of the whole request.
            InputSource::Json(_) if shape.is_empty() && signature.batching() => Bytes::new(),
            InputSource::Json(json) => match elements(&name, &shape, dtype)? {
                0 => Bytes::new(),
                elements => {
                    let array = expect_array("data", json)?;
                    let tag = signature.owner.tag(LedgerHolder::Input);
                    match read.take(array, dtype, elements) {
                        Some(data) => data,
                        None => data::decode_data(array, dtype, elements, &name, limit, tag)?,
                    }
                }
            },
        };
        Ok(InputTensor { index, dtype, shape, data: data.into() })
    }
}

/// `set`: whether there is data, a size of a binary section, a shared memory region.
fn one_source(set: [bool; 3]) -> Error {
    let names = ["'data'", "'binary_data_size'", "'shared_memory_region'"];
    let set: Vec<&str> =
        names.into_iter().zip(set).filter_map(|(name, set)| set.then_some(name)).collect();
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

/// The expected number of values in `data`. Overflow is detected before a value is read.
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
