//! Copies, copies between devices, and conversions of the element type.

use super::Outputs;
use crate::netdef::DataType;
use crate::onnx::Attribute;
use crate::translate::graph::GraphBuilder;
use crate::translate::operator::Operator;
use crate::translate::tensor::element;

/// The first output is the first input. Further outputs, such as the mask of Dropout, are not
/// computed.
pub fn translate_identity(_: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    Ok(vec![op.input(0)?])
}

pub fn translate_cast(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let to = op.argument("to").ok_or("it has no argument 'to'")?;
    let name = to.s.as_deref().map(|bytes| String::from_utf8_lossy(bytes).to_uppercase());
    let number =
        name.and_then(|name| DataType::from_str_name(&name)).map(|kind| kind as i64).or(to.i);
    let element = number.and_then(to_cast_element).ok_or_else(|| match number {
        Some(number) => format!("its argument 'to' is {number}, which is not a type of numbers"),
        None => "its argument 'to' is not a type".to_owned(),
    })?;
    let to = Attribute::int("to", element.into());
    Ok(vec![graph.same("Cast", &[op.input(0)?], vec![to])])
}

/// FloatToHalf and HalfToFloat.
pub fn translate_convert(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let element = if op.kind() == "FloatToHalf" { element::FLOAT16 } else { element::FLOAT };
    let to = Attribute::int("to", element.into());
    Ok(vec![graph.same("Cast", &[op.input(0)?], vec![to])])
}

/// ONNX's number for one of Caffe2's; `None` for what is not a type of numbers.
pub fn to_cast_element(number: i64) -> Option<i32> {
    Some(match DataType::try_from(i32::try_from(number).ok()?).ok()? {
        DataType::Float => element::FLOAT,
        DataType::Int32 => element::INT32,
        DataType::Bool => element::BOOL,
        DataType::Uint8 | DataType::Byte => element::UINT8,
        DataType::Int8 => element::INT8,
        DataType::Uint16 => element::UINT16,
        DataType::Int16 => element::INT16,
        DataType::Int64 => element::INT64,
        DataType::Float16 => element::FLOAT16,
        DataType::Double => element::DOUBLE,
        DataType::String | DataType::Undefined => return None,
    })
}
