//! Request parameters: those for the server, those for the model, and reserved ones.
//!
//! HTTP and gRPC differ in the values' types and in the errors for wrong ones, so each reads its
//! own; both result in [`RequestParameters`].

use std::collections::BTreeMap;
use trtserver_base::error::{Error, Result};
use trtserver_proto::v2::{self, infer_parameter::ParameterChoice};
use trtserver_request::{CorrelationId, ParameterValue, RequestSequence};

/// All parameters of a request.
#[derive(Debug, Default, PartialEq)]
pub struct RequestParameters {
    pub sequence: RequestSequence,
    pub priority: u64,
    pub timeout_us: u64,
    /// Parameters for the model.
    pub custom: Vec<(String, ParameterValue)>,
    /// HTTP: outputs that are not listed are sent as binary sections.
    pub binary_output: bool,
    /// Streams: an empty final response is sent.
    pub empty_final_response: bool,
}

/// Longest string correlation id.
const MAX_ID: usize = 128;

impl RequestParameters {
    /// From a gRPC request.
    pub fn from_grpc(map: BTreeMap<String, v2::InferParameter>) -> Result<Self> {
        let mut parameters = Self::default();
        for (key, value) in map {
            parameters.take(key, value.parameter_choice)?;
        }
        Ok(parameters)
    }

    fn take(&mut self, key: String, value: Option<ParameterChoice>) -> Result<()> {
        use ParameterChoice::*;
        let wrong = |expected: &str| {
            Error::invalid(format!(
                "invalid value type for '{key}' parameter, expected {expected}."
            ))
        };
        match (key.as_str(), value) {
            // A negative number is reinterpreted as unsigned.
            ("sequence_id", Some(Int64Param(n))) => self.sequence.id = number_id(n as u64),
            ("sequence_id", Some(StringParam(text))) => self.sequence.id = text_id(text)?,
            ("sequence_id", _) => return Err(wrong("int64_param or string_param")),
            ("sequence_start", Some(BoolParam(b))) => self.sequence.start = b,
            ("sequence_end", Some(BoolParam(b))) => self.sequence.end = b,
            ("triton_enable_empty_final_response", Some(BoolParam(b))) => {
                self.empty_final_response = b;
            }
            ("sequence_start" | "sequence_end" | "triton_enable_empty_final_response", _) => {
                return Err(wrong("bool_param"));
            }
            ("priority", Some(Uint64Param(n))) => self.priority = n,
            ("priority", Some(Int64Param(n))) => {
                self.priority = u64::try_from(n).map_err(|_| {
                    Error::invalid("invalid value for 'priority', expected value >= 0.")
                })?;
            }
            ("priority", _) => return Err(wrong("int64_param or uint64_param")),
            ("timeout", Some(Int64Param(n))) => self.timeout_us = n as u64,
            ("timeout", _) => return Err(wrong("int64_param")),
            (reserved, _) if reserved.starts_with("triton_") => {
                return Err(Error::invalid(
                    "parameter keys starting with 'triton_' are reserved for Triton usage. Only the \
                     following keys starting with 'triton_' are allowed: \
                     triton_enable_empty_final_response",
                ));
            }
            (_, Some(value)) => {
                let value = match value {
                    BoolParam(b) => ParameterValue::Bool(b),
                    Int64Param(n) => ParameterValue::Int(n),
                    StringParam(s) => ParameterValue::String(s),
                    DoubleParam(d) => ParameterValue::Double(d),
                    Uint64Param(_) => {
                        return Err(wrong("int64_param, bool_param, or string_param"));
                    }
                };
                self.custom.push((key, value));
            }
            (_, None) => return Err(wrong("int64_param, bool_param, or string_param")),
        }
        Ok(())
    }
}

/// 0 means no sequence.
pub fn number_id(number: u64) -> CorrelationId {
    if number == 0 { CorrelationId::None } else { CorrelationId::Number(number) }
}

/// An empty text means no sequence.
pub fn text_id(text: String) -> Result<CorrelationId> {
    match text.len() {
        0 => Ok(CorrelationId::None),
        1..=MAX_ID => Ok(CorrelationId::Text(text)),
        _ => Err(Error::unsupported(format!(
            "string correlation ID cannot be longer than {MAX_ID} characters"
        ))),
    }
}

/// A parameter on the gRPC wire.
pub fn to_grpc(value: &ParameterValue) -> v2::InferParameter {
    let choice = match value {
        ParameterValue::Bool(b) => ParameterChoice::BoolParam(*b),
        ParameterValue::Int(n) => ParameterChoice::Int64Param(*n),
        ParameterValue::String(s) => ParameterChoice::StringParam(s.clone()),
        ParameterValue::Double(d) => ParameterChoice::DoubleParam(*d),
    };
    v2::InferParameter { parameter_choice: Some(choice) }
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
