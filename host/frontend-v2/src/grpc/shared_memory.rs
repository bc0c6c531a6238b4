//! The parameters of a tensor that lies in client shared memory (docs/protocol/v2.md §1.4).

use std::collections::BTreeMap;
use trtserver_base::error::{Error, Result};
use trtserver_proto::v2::{InferParameter, infer_parameter::ParameterChoice};
use trtserver_wire::shared_memory::RegionSlice;

pub const REGION: &str = "shared_memory_region";
const OFFSET: &str = "shared_memory_offset";
const BYTE_SIZE: &str = "shared_memory_byte_size";

/// The shared memory of tensor `name`; `None` if its parameters name none.
///
/// # Errors
/// A parameter has a wrong type, or one that it needs is missing.
pub fn parse_region_slice(
    name: &str,
    parameters: &BTreeMap<String, InferParameter>,
) -> Result<Option<RegionSlice>> {
    if parameters.is_empty() {
        return Ok(None);
    }
    let get = |key: &str| parameters.get(key).map(|p| &p.parameter_choice);
    let region = match get(REGION) {
        None => None,
        Some(Some(ParameterChoice::StringParam(region))) => Some(region),
        Some(_) => return Err(wrong_type(name, REGION, "string_param")),
    };
    // Triton reinterprets a negative number as unsigned: it is beyond every region.
    let number = |key: &str| match get(key) {
        None => Ok(None),
        Some(_) if region.is_none() => Err(Error::invalid(format!(
            "'{key}' can not be specified without '{REGION}' parameter for tensor '{name}'"
        ))),
        Some(Some(ParameterChoice::Int64Param(number))) => Ok(Some(*number as u64)),
        Some(_) => Err(wrong_type(name, key, "int64_param")),
    };
    let (offset, byte_size) = (number(OFFSET)?.unwrap_or(0), number(BYTE_SIZE)?);
    match (region, byte_size) {
        (None, _) => Ok(None),
        (Some(region), Some(byte_size)) => {
            Ok(Some(RegionSlice { region: region.clone(), offset, byte_size }))
        }
        (Some(_), None) => Err(Error::invalid(format!(
            "'{BYTE_SIZE}' must be specified along with '{REGION}' parameter for tensor '{name}'"
        ))),
    }
}

fn wrong_type(name: &str, key: &str, expected: &str) -> Error {
    Error::invalid(format!(
        "invalid value type for '{key}' parameter for tensor '{name}', expected {expected}."
    ))
}

#[cfg(test)]
#[path = "shared_memory_tests.rs"]
mod tests;
