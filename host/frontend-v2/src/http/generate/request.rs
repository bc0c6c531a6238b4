//! The request mapping of `generate`: a member named like an input becomes that tensor, every other
//! one a request parameter.

use crate::UncheckedRequest;
use crate::http::infer_request::too_large_json;
use crate::http::json::inputs::{JsonMember, read_members};
use crate::http::json::{JsonTensors, JsonValue, access, data};
use crate::http::parameters;
use bytes::Bytes;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_request::{DType, InputTensor, ModelSignature, Shape, TensorSpec};

/// The member whose members are taken as if they were members of the request.
const NESTED: &str = "parameters";

/// Reads a request; `limit` holds for its text and for its tensors together.
///
/// # Errors
/// As the JSON layer and `/infer`; besides, a tensor whose values do not fill its declared shape.
pub fn read_generate_request(
    signature: &ModelSignature,
    body: &[u8],
    limit: u64,
) -> Result<UncheckedRequest> {
    if body.len() as u64 > limit {
        return Err(too_large_json(body.len() as u64, limit));
    }
    let mut tensors = JsonTensors::new(signature, limit);
    let Some(members) = read_members(body, &mut tensors)? else {
        return Err(Error::internal(
            "failed to read the generate request: attempt to get members for non-object",
        ));
    };
    let request = UncheckedRequest::default();
    let mut mapping = Mapping { signature, limit, bytes: 0, tensors, request };
    mapping.members(members.into_iter().map(Ok), true)?;
    Ok(mapping.request)
}

struct Mapping<'a, 's> {
    signature: &'s ModelSignature,
    limit: u64,
    /// Bytes of all tensors so far.
    bytes: u64,
    tensors: JsonTensors<'a, 's>,
    request: UncheckedRequest,
}

impl Mapping<'_, '_> {
    fn members<'m>(
        &mut self,
        members: impl Iterator<Item = Result<JsonMember<'m>>>,
        top: bool,
    ) -> Result<()> {
        for member in members {
            let (key, value) = member?;
            let key = String::from_utf8_lossy(&key);
            match (&*key, self.signature.input(&key)) {
                (NESTED, Some(_)) if top => {
                    return Err(Error::invalid(format!(
                        "Keyword '{NESTED}' for nested schema also given as input tensor name"
                    )));
                }
                (NESTED, None) if top => {
                    let JsonValue::Object(nested) = value else {
                        return Err(Error::internal(format!(
                            "Expected JSON object for keyword: '{NESTED}'"
                        )));
                    };
                    self.members(nested.members(), false)?;
                }
                (_, Some(index)) => self.input(index, &value)?,
                (key, None) => {
                    if key == "id" && top {
                        self.request.id = access::expect_text("id", &value)?.into_owned();
                    }
                    self.parameter(key, &value)?;
                }
            }
        }
        Ok(())
    }

    fn parameter(&mut self, key: &str, value: &JsonValue<'_>) -> Result<()> {
        parameters::take_parameter(&mut self.request.parameters, key, value)?;
        if self.request.parameters.binary_output {
            return Err(Error::invalid(
                "parameter 'binary_data_output' is not supported by generate, whose outputs are JSON",
            ));
        }
        Ok(())
    }

    fn input(&mut self, index: usize, value: &JsonValue<'_>) -> Result<()> {
        match value {
            JsonValue::Array(array) => {
                let read = self.tensors.elements(*array);
                let count = read.unwrap_or_else(|| array.elements().count());
                let data = self.tensors.take(*array, self.signature.inputs[index].dtype, count);
                self.tensor(index, count, *array, data)
            }
            scalar => self.tensor(index, 1, scalar, None),
        }
    }

    /// `read`: the tensor, if the first walk converted it.
    fn tensor(
        &mut self,
        index: usize,
        count: usize,
        values: impl data::Values,
        read: Option<Bytes>,
    ) -> Result<()> {
        let spec = &self.signature.inputs[index];
        let shape = shape(self.signature, spec, count)?;
        let bytes = byte_size(spec.dtype, count, &values)?;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit {
            return Err(Error::invalid(format!(
                "request size of {} bytes with input '{}' of size {bytes} bytes exceeds the maximum allowed \
                 input size of {}. Use --http-max-input-size to increase the limit.",
                self.bytes, spec.name, self.limit
            )));
        }
        let tag = self.signature.owner.tag(LedgerHolder::Input);
        let data = match read {
            Some(data) => data,
            None => data::decode_data(values, spec.dtype, count, &spec.name, self.limit, tag)?,
        };
        self.request.inputs.push(InputTensor {
            index,
            dtype: spec.dtype,
            shape,
            data: data.into(),
        });
        Ok(())
    }
}

/// Bytes of a tensor.
fn byte_size(dtype: DType, count: usize, values: &impl data::Values) -> Result<u64> {
    if let Some(size) = dtype.size() {
        return Ok((count as u64).saturating_mul(size as u64));
    }
    let mut bytes = 0;
    values.each(|value| {
        if let JsonValue::String(text) = value {
            bytes += 4 + text.len() as u64;
        }
        Ok(())
    })?;
    Ok(bytes)
}

/// The shape of `count` values: the innermost variable dimension takes what the fixed ones leave,
/// the others are 1.
fn shape(signature: &ModelSignature, spec: &TensorSpec, count: usize) -> Result<Shape> {
    let mut shape = signature.full_dims(spec);
    let fixed = shape.iter().filter(|d| **d >= 0).try_fold(1i64, |n, d| n.checked_mul(*d));
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let rest = match fixed {
        Some(0) if count == 0 => Some(1),
        Some(fixed @ 1..) if count % fixed == 0 => Some(count / fixed),
        _ => None,
    };
    let mut variable = shape.iter_mut().rev().filter(|d| **d < 0);
    let fits = match (rest, variable.next()) {
        (Some(rest), Some(innermost)) => {
            *innermost = rest;
            true
        }
        (rest, None) => rest == Some(1),
        (None, Some(_)) => false,
    };
    variable.for_each(|d| *d = 1);
    match fits {
        true => Ok(shape),
        false => Err(Error::invalid(format!(
            "The schema can not convert input '{}' to tensor with proper shape",
            spec.name
        ))),
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
