//! Checks the size of input data against the request header (docs/protocol/v1.md §3.6), and the
//! framing of strings.

use super::regions::not_usable_in_v1;
use super::request::{PlannedInput, RequestPlan};
use bytes::Bytes;
use smallvec::SmallVec;
use trtserver_base::error::{Error, Result};
use trtserver_request::shared_memory::RegionRegistry;
use trtserver_request::strings;
use trtserver_request::strings::StringFault;
use trtserver_request::{InputTensor, ModelSignature, TensorData};
use trtserver_wire::shared_memory::RegionSlice;

/// The data of each input, in the order of the plan.
pub type InputParts = SmallVec<[TensorData; 4]>;

/// The error for a body of `got` bytes, which is shorter or longer than `plan.bytes()`. TRTIS
/// skipped both checks for an empty body, which then failed later with a less clear error.
pub fn wrong_body(signature: &ModelSignature, plan: &RequestPlan, got: usize) -> Error {
    let m = &signature.model;
    let mut end = 0;
    for input in plan.sent() {
        end += input.bytes;
        if end > got {
            let name = &signature.inputs[input.index].name;
            let missing = input.bytes.min(end - got);
            return Error::invalid(format!(
                "unexpected size for input '{name}', missing expecting {missing} bytes for model '{m}'"
            ));
        }
    }
    Error::invalid(format!("unexpected additional input data for model '{m}'"))
}

/// Splits an HTTP body, which holds the inputs one after another, except those in `regions`.
pub fn split_body(
    signature: &ModelSignature,
    plan: &RequestPlan,
    body: &Bytes,
    regions: &RegionRegistry,
) -> Result<InputParts> {
    if body.len() != plan.bytes() {
        return Err(wrong_body(signature, plan, body.len()));
    }
    let mut at = 0;
    let part = |i: &PlannedInput| match &i.shared {
        None => {
            at += i.bytes;
            Ok(body.slice(at - i.bytes..at).into())
        }
        Some(slice) => shared(signature, i, slice, regions, "shared-memory size"),
    };
    plan.inputs.iter().map(part).collect()
}

/// The tensor of an input in shared memory. `size` is what the message for a wrong size calls it.
fn shared(
    signature: &ModelSignature,
    input: &PlannedInput,
    slice: &RegionSlice,
    regions: &RegionRegistry,
    size: &str,
) -> Result<TensorData> {
    let data = slice.input(regions).map_err(|e| not_usable_in_v1(&slice.region, e))?;
    if data.len() == input.bytes {
        Ok(data)
    } else {
        Err(wrong_size(signature, input, size, data.len()))
    }
}

/// The error for an input whose data has another size than its shape requires.
fn wrong_size(signature: &ModelSignature, input: &PlannedInput, size: &str, got: usize) -> Error {
    let (name, m) = (&signature.inputs[input.index].name, &signature.model);
    let expected = input.bytes;
    Error::invalid(format!(
        "unexpected {size} {got} for input '{name}', expecting {expected} for model '{m}'"
    ))
}

/// Checks number and sizes of the `raw_input` entries of a gRPC request. An input in one of the
/// `regions` has no entry.
pub fn entry_sizes(
    signature: &ModelSignature,
    plan: &RequestPlan,
    entries: Vec<Bytes>,
    regions: &RegionRegistry,
) -> Result<InputParts> {
    let m = &signature.model;
    let (expected, got) = (plan.sent().count(), entries.len());
    if expected != got {
        return Err(Error::invalid(format!(
            "expected tensor data for {expected} inputs but got {got} sets of data for model '{m}'"
        )));
    }
    let mut entries = entries.into_iter();
    let part = |input: &PlannedInput| match &input.shared {
        None => {
            let entry = entries.next().unwrap_or_default();
            match entry.len() == input.bytes {
                true => Ok(entry.into()),
                false => Err(wrong_size(signature, input, "size", entry.len())),
            }
        }
        Some(slice) => shared(signature, input, slice, regions, "size"),
    };
    plan.inputs.iter().map(part).collect()
}

/// Input tensors in the order of the configuration.
///
/// # Errors
/// There is no memory to align one.
pub fn read_tensors(
    signature: &ModelSignature,
    plan: RequestPlan,
    parts: InputParts,
) -> Result<SmallVec<[InputTensor; 2]>> {
    let pairs = plan.inputs.into_iter().zip(parts);
    let mut tensors: SmallVec<[InputTensor; 2]> = pairs
        .map(|(i, data)| InputTensor {
            index: i.index,
            dtype: signature.inputs[i.index].dtype,
            shape: i.shape,
            data,
        })
        .collect();
    tensors.sort_by_key(|t| t.index);
    tensors.iter_mut().try_for_each(InputTensor::align)?;
    Ok(tensors)
}

/// Checks the framing of string tensors (docs/protocol/v1.md §5.4). Stray bytes after the last
/// string are ignored in v1, so they are truncated: backends never see them.
pub fn check_strings(signature: &ModelSignature, inputs: &mut [InputTensor]) -> Result<()> {
    for input in inputs.iter_mut().filter(|i| i.dtype.size().is_none()) {
        input.unshare()?;
        let Some(data) = input.data.cpu() else { continue };
        let name = &signature.inputs[input.index].name;
        let expected = trtserver_request::tensor::element_count(&input.shape).unwrap_or(0);
        let end = strings::check_strings(data, expected).map_err(|fault| match fault {
            StringFault::TooMany { found } => Error::invalid(format!(
                "unexpected number of string elements {found} for inference input '{name}', expecting {expected}"
            )),
            StringFault::Short { length, available } => Error::invalid(format!(
                "incomplete string data for inference input '{name}', expecting string of length {length} but \
                 only {available} bytes available"
            )),
            // One to three bytes instead of a length are stray bytes, so there are too few strings.
            StringFault::TooFew { .. } | StringFault::NoLength { .. } => Error::internal(format!(
                "expected {expected} strings for inference input '{name}', got {}",
                strings::string_elements(data).count()
            )),
        })?;
        if end < data.len() {
            input.data = data.slice(..end).into();
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "input_data_tests.rs"]
mod tests;
