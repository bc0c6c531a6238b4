//! Reads an inference request: JSON with or without binary sections, or the raw bytes of a single
//! tensor.

use super::json::access::{as_unsigned, expect_array, expect_member, expect_text, wrong_type};
use super::json::inputs::pick_with_inputs;
use super::json::{JsonArray, JsonTensors, JsonValue, PickedMembers};
use super::{input, parameters, repeated_head, shared_memory};
use crate::{RequestRegions, UncheckedRequest};
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::check;
use trtserver_request::check::IdPrefix;
use trtserver_request::{InputTensor, ModelSignature};
use trtserver_wire::shared_memory::RegionSlice;

/// What the response needs of the request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseSpec {
    /// Ids of usual length are not allocated.
    pub id: SmallVec<[u8; 32]>,
    pub outputs: SmallVec<[OutputSpec; 2]>,
    /// Outputs that are not listed are sent as binary sections.
    pub binary: bool,
}

/// An output that the request lists.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSpec {
    /// Position in the model configuration's output list.
    pub index: usize,
    pub binary: bool,
    /// Number of classes; 0 = the tensor itself.
    pub classes: u32,
}

/// Reads a request whose first `header` bytes are JSON, followed by binary sections.
pub fn read_infer_request(
    signature: &Arc<ModelSignature>,
    body: &Bytes,
    header: usize,
    limit: u64,
    regions: RequestRegions<'_>,
) -> Result<(UncheckedRequest, ResponseSpec)> {
    if header as u64 > limit {
        return Err(too_large_json(header as u64, limit));
    }
    if let Some(request) = repeated_head::find_repeated(signature, body, header) {
        return Ok(request);
    }
    let request = read_new_head(signature, body, header, limit, regions)?;
    repeated_head::keep_head(signature, body, header, &request);
    Ok(request)
}

fn read_new_head(
    signature: &ModelSignature,
    body: &Bytes,
    header: usize,
    limit: u64,
    regions: RequestRegions<'_>,
) -> Result<(UncheckedRequest, ResponseSpec)> {
    let mut tensors = JsonTensors::new(signature, limit);
    let names = ["inputs", "id", "parameters", "outputs"];
    let ([inputs, id, parameters, outputs], read) =
        pick_with_inputs(&body[..header], names, &mut tensors)?;
    let mut unchecked = UncheckedRequest::default();
    if let Some(id) = id {
        unchecked.id = expect_text("id", &id)?.into_owned();
    }
    if let Some(value) = parameters {
        let JsonValue::Object(object) = value else {
            return Err(Error::internal(
                "failed to get request params.: attempt to get members for non-object",
            ));
        };
        unchecked.parameters = parameters::read_parameters(object)?;
    }
    let mut sections = body.slice(header..);
    let inputs = expect_array("inputs", expect_member(&inputs, "inputs")?)?;
    for members in read.each(inputs) {
        let members = members?;
        let input = input::read_input(&members, &mut sections, signature)?;
        let Some(index) = signature.input(&input.name) else {
            return Err(check::unknown_input(
                signature,
                &unchecked.id,
                &input.name,
                &self::names(inputs),
            ));
        };
        let tensor = input.tensor(index, signature, &mut tensors, limit, regions)?;
        unchecked.inputs.push(tensor);
    }
    if !sections.is_empty() {
        return Err(Error::invalid(format!(
            "unexpected additional input data for model '{}'",
            signature.model
        )));
    }
    let mut spec = ResponseSpec {
        id: SmallVec::from_slice(unchecked.id.as_bytes()),
        binary: unchecked.parameters.binary_output,
        ..Default::default()
    };
    if let Some(outputs) = outputs {
        for members in expect_array("outputs", &outputs)?.picks(["name", "parameters"]) {
            let [name, parameters] = members?;
            let name = expect_text("name", expect_member(&name, "name")?)?;
            let (binary, classes, slice) = output_form(parameters)?;
            let destination = slice.map(|slice| regions.output(&slice)).transpose()?;
            match unchecked.request_output(signature, &name, classes, destination)? {
                Some(index) => spec.outputs.push(OutputSpec { index, binary, classes }),
                None => {
                    let mut others = spec.outputs.iter();
                    let same = |o: &OutputSpec| *signature.outputs[o.index].name == *name;
                    if others.any(|o| same(o) && o.binary != binary) {
                        return Err(unchecked.requested_twice(&name));
                    }
                }
            }
        }
    }
    Ok((unchecked, spec))
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

/// The names of all inputs, for an error message.
fn names(inputs: JsonArray<'_>) -> Vec<String> {
    let names = inputs.picks(["name"]).filter_map(Result::ok).map(|[name]| {
        let text = name.as_ref().and_then(|name| expect_text("name", name).ok());
        text.unwrap_or_default().into_owned()
    });
    names.collect()
}

/// Whether an output is requested as a binary section, as how many classes, and in which shared
/// memory.
fn output_form(parameters: Option<JsonValue<'_>>) -> Result<(bool, u32, Option<RegionSlice>)> {
    let Some(JsonValue::Object(parameters)) = parameters else { return Ok((false, 0, None)) };
    let names = ["binary_data", "classification", shared_memory::REGION];
    let [binary, classes, region]: PickedMembers<'_, 3> = parameters.pick(names)?;
    let binary = match binary {
        None => false,
        Some(JsonValue::Bool(binary)) => binary,
        Some(_) => return Err(wrong_type("binary_data", "boolean")),
    };
    let classes = match classes {
        None => 0,
        Some(value) => as_unsigned(&value).ok_or_else(|| {
            Error::internal(
                "Unable to set 'classification': attempt to access JSON non-unsigned-integer as \
                 unsigned-integer",
            )
        })?,
    };
    let classes = u32::try_from(classes).unwrap_or(u32::MAX);
    if let Some(region) = region {
        let other = match (classes > 0, binary) {
            (true, _) => "classification",
            (_, true) => "binary_data",
            _ => {
                return Ok((
                    false,
                    0,
                    Some(shared_memory::parse_region_slice(parameters, &region)?),
                ));
            }
        };
        return Err(Error::invalid(format!(
            "Output can't set both 'shared_memory_region' and '{other}'"
        )));
    }
    Ok((binary, classes, None))
}

/// Reads a body that is the raw tensor of the model's only input (docs/protocol/v2.md §2.7).
pub fn read_raw_request(
    signature: &ModelSignature,
    body: Bytes,
) -> Result<(UncheckedRequest, ResponseSpec)> {
    let none = IdPrefix::new("");
    let [input] = signature.inputs.as_slice() else {
        let n = signature.inputs.len();
        return Err(Error::invalid(format!(
            "{none}Raw request must only have 1 input (found 1) to be deduced but got {n} inputs in '{}' \
             model configuration",
            signature.model
        )));
    };
    if input.dims.iter().filter(|d| **d < 0).count() > 1 {
        return Err(Error::invalid(format!(
            "{none}The shape of the raw input '{}' can not be deduced because there are more than one \
             variable-sized dimension",
            input.name
        )));
    }
    let fixed: i64 = input.dims.iter().filter(|d| **d >= 0).product();
    let (variable, data) = match input.dtype.size() {
        Some(size) => {
            let elements = body.len() / size;
            ((elements as i64).checked_div(fixed).unwrap_or(0), body)
        }
        None if input.dims.iter().all(|d| *d == 1) => {
            let length = (body.len() as u32).to_le_bytes();
            let copy = AlignedBuf::try_copy(
                None,
                &[&length, &body],
                signature.owner.tag(LedgerHolder::Input),
            );
            (1, copy.map_err(|e| e.refuse("a raw input"))?.into_bytes())
        }
        None => {
            return Err(Error::invalid(format!(
                "{none}For BYTE datatype raw input '{}', the model must have input shape [1]",
                input.name
            )));
        }
    };
    let batch = (signature.batching() && !input.shape_tensor).then_some(1);
    let dims = input.dims.iter().map(|&d| if d < 0 { variable } else { d });
    let shape = batch.into_iter().chain(dims).collect();
    let mut unchecked = UncheckedRequest::default();
    unchecked.inputs.push(InputTensor { index: 0, dtype: input.dtype, shape, data: data.into() });
    Ok((unchecked, ResponseSpec { binary: true, ..Default::default() }))
}

#[cfg(test)]
#[path = "infer_request_tests.rs"]
mod tests;
