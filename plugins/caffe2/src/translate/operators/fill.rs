//! Fill operators: constants of the graph, most of them the weights in the initialization net.

use super::Outputs;
use super::copy::to_cast_element;
use super::shape::as_shape;
use crate::netdef::Argument;
use crate::onnx::Attribute;
use crate::translate::graph::GraphBuilder;
use crate::translate::operator::Operator;
use crate::translate::tensor::{ConstantContents, ConstantTensor, element, element_size};

/// A tensor with listed values, of the type that is in the operator's name.
pub fn translate_given(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let values = op.take("values").unwrap_or_default();
    let (element, data) = match op.kind() {
        "GivenTensorFill" => (element::FLOAT, packed_values(&values.floats, |v| v.to_le_bytes())),
        "GivenTensorDoubleFill" => {
            (element::DOUBLE, packed_values(&values.floats, |v| f64::from(v).to_le_bytes()))
        }
        "GivenTensorInt64Fill" => {
            (element::INT64, packed_values(&values.ints, |v| v.to_le_bytes()))
        }
        "GivenTensorIntFill" => {
            (element::INT32, packed_values(&values.ints, |v| (v as i32).to_le_bytes()))
        }
        "GivenTensorInt16Fill" => {
            (element::INT16, packed_values(&values.ints, |v| (v as i16).to_le_bytes()))
        }
        _ => (element::BOOL, packed_values(&values.ints, |v| [u8::from(v != 0)])),
    };
    let n = data.len() / element_size(element);
    let dims = fixed_shape(graph, op, Some(n))?;
    filled_constant(graph, ConstantTensor { element, dims, data: ConstantContents::Bytes(data) }, n)
}

fn packed_values<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| bytes(value)).collect()
}

pub fn translate_strings(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let values = op.take("values").unwrap_or_default().strings;
    let n = values.len();
    let dims = fixed_shape(graph, op, Some(n))?;
    filled_constant(
        graph,
        ConstantTensor { element: element::STRING, dims, data: ConstantContents::Strings(values) },
        n,
    )
}

/// Bytes of one string are the elements.
pub fn byte_string(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let values = op.take("values").unwrap_or_default();
    let bytes = values.strings.into_iter().next().or(values.s).unwrap_or_default();
    let n = bytes.len();
    let dims = fixed_shape(graph, op, Some(n))?;
    filled_constant(
        graph,
        ConstantTensor { element: element::UINT8, dims, data: ConstantContents::Bytes(bytes) },
        n,
    )
}

fn filled_constant(graph: &mut GraphBuilder, tensor: ConstantTensor, n: usize) -> Outputs {
    if tensor.count() == Some(n) {
        return Ok(vec![graph.constant(tensor)]);
    }
    Err(format!("it has {n} values for the shape {:?}", tensor.dims))
}

/// One value everywhere, in the shape of an argument or of the input, or, with `input_as_shape`, in
/// the shape that the input lists. A run decides it if it is not known.
pub fn translate_constant(graph: &mut GraphBuilder, op: &mut Operator<'_>) -> Outputs {
    let value = op.argument("value");
    let default = if value.is_some_and(|value| value.i.is_some()) { 10 } else { 1 };
    // Caffe2 takes the type of the value only if there is no dtype.
    let number = match op.int("dtype")? {
        Some(number) => number,
        None => default,
    };
    let element = to_cast_element(number)
        .ok_or_else(|| format!("its dtype {number} is not a type of numbers"))?;
    let one = one(element, value)?;
    if let Some(&input) = op.inputs.first() {
        let is_shape = op.flag("input_as_shape", false)?;
        let known = match is_shape {
            true => graph.known_constant(input).and_then(ConstantTensor::as_integers),
            false => graph.dims(input).map(<[i64]>::to_vec),
        };
        if known.as_ref().is_none_or(|dims| dims.contains(&-1)) {
            if op.ints("extra_shape").is_some() {
                return Err("extra_shape of a shape that a run decides is not supported".to_owned());
            }
            let shape = match is_shape {
                true => as_shape(graph, input),
                false => graph.node("Shape", &[input], vec![]),
            };
            let value =
                ConstantTensor { element, dims: vec![1], data: ConstantContents::Bytes(one) };
            let value = Attribute::tensor("value", value.into_proto(String::new()));
            let output = graph.node("ConstantOfShape", &[shape], vec![value]);
            let rank =
                usize::try_from(graph.dim(input, 0)).ok().filter(|&rank| rank <= 64 && is_shape);
            return Ok(vec![graph.shaped(output, known.or(rank.map(|rank| vec![-1; rank])))]);
        }
    }
    let dims = fixed_shape(graph, op, None)?;
    Ok(vec![graph.constant(ConstantTensor {
        element,
        dims,
        data: ConstantContents::Repeated(one),
    })])
}

/// The bytes of one element.
fn one(element: i32, value: Option<&Argument>) -> Result<Vec<u8>, String> {
    let integer = value.and_then(|value| value.i);
    let float = value.and_then(|value| value.f);
    let whole = integer.or(float.map(|float| float as i64)).unwrap_or(0);
    let real = float.or(integer.map(|integer| integer as f32)).unwrap_or(0.0);
    Ok(match element {
        element::FLOAT => real.to_le_bytes().to_vec(),
        element::DOUBLE => f64::from(real).to_le_bytes().to_vec(),
        element::INT64 => whole.to_le_bytes().to_vec(),
        element::INT32 => (whole as i32).to_le_bytes().to_vec(),
        element::INT16 | element::UINT16 => (whole as i16).to_le_bytes().to_vec(),
        element::INT8 | element::UINT8 => vec![whole as u8],
        element::BOOL => vec![u8::from(whole != 0)],
        _ => return Err("constants of this type are not supported".to_owned()),
    })
}

/// The argument `shape`, or the shape of the input. `n` is the number of values, which is the shape
/// if nothing else says it.
fn fixed_shape(
    graph: &GraphBuilder,
    op: &Operator<'_>,
    n: Option<usize>,
) -> Result<Vec<i64>, String> {
    let extra = op.ints("extra_shape").unwrap_or_default();
    let shape = match op.inputs.first() {
        None => match (op.argument("shape"), n) {
            (Some(shape), _) => shape.ints.clone(),
            (None, Some(n)) if n != 1 => vec![n as i64],
            (None, _) => Vec::new(),
        },
        Some(_) if op.flag("input_as_shape", false)? => op.constant_ints(graph, 0)?,
        Some(&input) => match graph.dims(input).filter(|dims| !dims.contains(&-1)) {
            Some(dims) => dims.to_vec(),
            None => return Err(format!("its shape is that of {}, which is not known", op.name(0))),
        },
    };
    let shape = [&shape[..], extra].concat();
    match shape.iter().find(|&&dim| dim < 0) {
        Some(wrong) => Err(format!("its shape has a dimension of {wrong}")),
        None => Ok(shape),
    }
}
