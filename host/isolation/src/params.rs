//! Parameters of requests and responses as messages, the same in both directions.

use super::messages::{ParamMessage, param};
use trtserver_request::ParameterValue;

pub fn encode_parameter((key, value): (String, ParameterValue)) -> ParamMessage {
    let value = match value {
        ParameterValue::String(text) => param::ParamValue::String(text),
        ParameterValue::Int(number) => param::ParamValue::Int(number),
        ParameterValue::Bool(yes) => param::ParamValue::Bool(yes),
        ParameterValue::Double(number) => param::ParamValue::Double(number),
    };
    ParamMessage { key, value: Some(value) }
}

/// `None` = the message has no value.
pub fn decode_parameter(param: ParamMessage) -> Option<(String, ParameterValue)> {
    let value = match param.value? {
        param::ParamValue::String(text) => ParameterValue::String(text),
        param::ParamValue::Int(number) => ParameterValue::Int(number),
        param::ParamValue::Bool(yes) => ParameterValue::Bool(yes),
        param::ParamValue::Double(number) => ParameterValue::Double(number),
    };
    Some((param.key, value))
}
