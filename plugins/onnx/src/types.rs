//! Element types: the interface's numbers, ONNX Runtime's numbers, the configuration's names, sizes.

use ort_sys::ONNXTensorElementDataType as Element;
use trtserver_plugin_api::abi::types::dtype;

/// One row per type that both sides can express.
struct Row {
    dtype: u32,
    element: Element,
    name: &'static str,
    /// Bytes of one element; 0 = no fixed size.
    size: usize,
}

const fn row(dtype: u32, element: Element, name: &'static str, size: usize) -> Row {
    Row { dtype, element, name, size }
}

/// In the order of the interface's numbers, from 1.
static ROWS: [Row; 14] = [
    row(dtype::BOOL, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, "TYPE_BOOL", 1),
    row(dtype::UINT8, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, "TYPE_UINT8", 1),
    row(dtype::UINT16, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, "TYPE_UINT16", 2),
    row(dtype::UINT32, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, "TYPE_UINT32", 4),
    row(dtype::UINT64, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, "TYPE_UINT64", 8),
    row(dtype::INT8, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, "TYPE_INT8", 1),
    row(dtype::INT16, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, "TYPE_INT16", 2),
    row(dtype::INT32, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, "TYPE_INT32", 4),
    row(dtype::INT64, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, "TYPE_INT64", 8),
    row(dtype::FP16, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, "TYPE_FP16", 2),
    row(dtype::FP32, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, "TYPE_FP32", 4),
    row(dtype::FP64, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, "TYPE_FP64", 8),
    row(dtype::STRING, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, "TYPE_STRING", 0),
    row(dtype::BF16, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, "TYPE_BF16", 2),
];

fn of(dtype: u32) -> Option<&'static Row> {
    ROWS.get((dtype as usize).wrapping_sub(1))
}

/// ONNX Runtime's type for one of the interface's.
pub fn element(dtype: u32) -> Option<Element> {
    of(dtype).map(|row| row.element)
}

/// The interface's type for one of ONNX Runtime's; `INVALID` for types that the interface lacks.
pub fn dtype_of(element: i32) -> u32 {
    ROWS.iter().find(|row| row.element as i32 == element).map_or(dtype::INVALID, |row| row.dtype)
}

/// Bytes of one element; 0 for strings and unknown types.
pub fn size(dtype: u32) -> usize {
    of(dtype).map_or(0, |row| row.size)
}

/// As a configuration spells it.
pub fn name(dtype: u32) -> &'static str {
    of(dtype).map_or("TYPE_INVALID", |row| row.name)
}

/// Name of an ONNX type, including those that the interface lacks, for messages.
pub fn element_name(element: i32) -> String {
    let dtype = dtype_of(element);
    if dtype != dtype::INVALID {
        return name(dtype).to_owned();
    }
    match element {
        14 => "complex64".to_owned(),
        15 => "complex128".to_owned(),
        17..=20 | 26 => "an 8-bit float".to_owned(),
        21 | 22 | 24 | 25 => "an integer below 8 bits".to_owned(),
        23 => "a 4-bit float".to_owned(),
        other => format!("ONNX element type {other}"),
    }
}

/// `[-1,16]`, the way messages print a shape.
pub fn shape_text(dims: &[i64]) -> String {
    let parts: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("[{}]", parts.join(","))
}

/// Number of elements; `None` with a negative dimension or beyond 2^63.
pub fn elements(dims: &[i64]) -> Option<usize> {
    dims.iter().try_fold(1usize, |product, &dim| {
        product.checked_mul(usize::try_from(dim).ok()?).filter(|&n| n <= i64::MAX as usize)
    })
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
