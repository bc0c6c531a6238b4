//! Element types: the interface's numbers and ONNX Runtime's.

use ort_sys::ONNXTensorElementDataType as Element;
use trtserver_framework::types::type_name;
use trtserver_plugin_api::abi::types::dtype;

/// One row per type that both sides can express.
struct TypeRow {
    dtype: u32,
    element: Element,
}

const fn row(dtype: u32, element: Element) -> TypeRow {
    TypeRow { dtype, element }
}

/// In the order of the interface's numbers, from 1.
static ROWS: [TypeRow; 14] = [
    row(dtype::BOOL, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL),
    row(dtype::UINT8, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8),
    row(dtype::UINT16, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16),
    row(dtype::UINT32, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32),
    row(dtype::UINT64, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64),
    row(dtype::INT8, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8),
    row(dtype::INT16, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16),
    row(dtype::INT32, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32),
    row(dtype::INT64, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64),
    row(dtype::FP16, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16),
    row(dtype::FP32, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT),
    row(dtype::FP64, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE),
    row(dtype::STRING, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING),
    row(dtype::BF16, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16),
];

fn find_row(dtype: u32) -> Option<&'static TypeRow> {
    ROWS.get((dtype as usize).wrapping_sub(1))
}

/// ONNX Runtime's type for one of the interface's.
pub fn to_element(dtype: u32) -> Option<Element> {
    find_row(dtype).map(|row| row.element)
}

/// The interface's type for one of ONNX Runtime's; `INVALID` for types that the interface lacks.
pub fn to_dtype(element: i32) -> u32 {
    ROWS.iter().find(|row| row.element as i32 == element).map_or(dtype::INVALID, |row| row.dtype)
}

/// What is not a dense tensor, by ONNX Runtime's number.
pub fn not_dense(kind: i32) -> &'static str {
    match kind {
        2 => "a sequence",
        3 => "a map",
        5 => "a sparse tensor",
        6 => "an optional value",
        _ => "a value that is not a tensor",
    }
}

/// Name of an ONNX type for messages; also for types that the plugin interface lacks.
pub fn element_name(element: i32) -> String {
    let dtype = to_dtype(element);
    if dtype != dtype::INVALID {
        return type_name(dtype);
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

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
