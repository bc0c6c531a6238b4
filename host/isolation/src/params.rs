//! Parameters of requests and responses as messages, the same in both directions.

use super::messages::{Param, param};
use trtserver_request::Parameter;

pub fn encode((key, value): (String, Parameter)) -> Param {
    let value = match value {
        Parameter::String(text) => param::Value::String(text),
        Parameter::Int(number) => param::Value::Int(number),
        Parameter::Bool(yes) => param::Value::Bool(yes),
        Parameter::Double(number) => param::Value::Double(number),
    };
    Param { key, value: Some(value) }
}

/// `None` = the message has no value.
pub fn decode(param: Param) -> Option<(String, Parameter)> {
    let value = match param.value? {
        param::Value::String(text) => Parameter::String(text),
        param::Value::Int(number) => Parameter::Int(number),
        param::Value::Bool(yes) => Parameter::Bool(yes),
        param::Value::Double(number) => Parameter::Double(number),
    };
    Some((param.key, value))
}
