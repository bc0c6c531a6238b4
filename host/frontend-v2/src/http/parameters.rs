//! Request parameters as JSON (docs/protocol/v2.md §2.12).

use super::json::access::{as_signed, as_unsigned, expect_real, wrong_type};
use super::json::{JsonValue, Object};
use crate::RequestParameters;
use crate::parameters::{number_id, text_id};
use trtserver_base::error::{Error, Result};
use trtserver_request::ParameterValue;

/// Reads the members of `parameters`.
pub fn read_parameters(object: Object<'_>) -> Result<RequestParameters> {
    let mut parameters = RequestParameters::default();
    for member in object.members() {
        let (key, value) = member?;
        take_parameter(&mut parameters, &String::from_utf8_lossy(&key), &value)?;
    }
    Ok(parameters)
}

/// Takes one parameter.
pub fn take_parameter(
    parameters: &mut RequestParameters,
    key: &str,
    value: &JsonValue<'_>,
) -> Result<()> {
    let whole = || as_unsigned(value).ok_or_else(|| wrong_type(key, "unsigned-integer"));
    let truth = || match value {
        JsonValue::Bool(b) => Ok(*b),
        _ => Err(wrong_type(key, "boolean")),
    };
    match key {
        "sequence_id" => {
            parameters.sequence.id = match value {
                JsonValue::String(text) => text_id(String::from_utf8_lossy(text).into_owned())?,
                value => number_id(as_unsigned(value).ok_or_else(|| wrong_type(key, "string"))?),
            };
        }
        "sequence_start" => parameters.sequence.start = truth()?,
        "sequence_end" => parameters.sequence.end = truth()?,
        "priority" => parameters.priority = whole()?,
        "timeout" => parameters.timeout_us = whole()?,
        "binary_data_output" => parameters.binary_output = truth()?,
        _ if key.starts_with("triton_") => {
            return Err(Error::invalid(
                "parameter keys starting with 'triton_' are reserved for Triton usage and should not be \
                 specified.",
            ));
        }
        _ => parameters.custom.push((key.to_owned(), custom(key, value)?)),
    }
    Ok(())
}

fn custom(key: &str, value: &JsonValue<'_>) -> Result<ParameterValue> {
    Ok(match value {
        JsonValue::String(text) => {
            ParameterValue::String(String::from_utf8_lossy(text).into_owned())
        }
        JsonValue::Bool(b) => ParameterValue::Bool(*b),
        JsonValue::Number(_) => match as_signed(value) {
            Some(n) => ParameterValue::Int(n),
            None => ParameterValue::Double(expect_real(key, value)?),
        },
        _ => {
            return Err(Error::invalid(format!(
                "parameter '{key}' has invalid type. It should be either 'int', 'bool', or 'string'."
            )));
        }
    })
}
