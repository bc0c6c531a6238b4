//! Element types: the interface's numbers and OpenVINO's.

use trtserver_framework::check::Element;
use trtserver_plugin_api::abi::types::dtype;

/// OpenVINO's numbers, which are the same in all releases since 2024.6, and the interface's.
const ROWS: [(i32, u32); 13] = [
    (1, dtype::BOOL),
    (2, dtype::BF16),
    (3, dtype::FP16),
    (4, dtype::FP32),
    (5, dtype::FP64),
    (7, dtype::INT8),
    (8, dtype::INT16),
    (9, dtype::INT32),
    (10, dtype::INT64),
    (16, dtype::UINT8),
    (17, dtype::UINT16),
    (18, dtype::UINT32),
    (19, dtype::UINT64),
];

/// What a model declares as the type of a tensor.
pub fn to_element(ov: i32) -> Element {
    let row = ROWS.iter().find(|(number, _)| *number == ov);
    match (row, ov) {
        (Some((_, dtype)), _) => Element::Known(*dtype),
        (None, 0) => Element::Foreign("a type that is known in a run only".to_owned()),
        (None, 6 | 11..=15 | 20) => Element::Foreign("a number of less than 8 bits".to_owned()),
        (None, 21 | 22 | 25) => Element::Foreign("an 8-bit float".to_owned()),
        (None, 23) => Element::Foreign(
            "strings, which OpenVINO's C interface cannot return; onnxruntime and tensorflow serve models with strings"
                .to_owned(),
        ),
        (None, 24) => Element::Foreign("a 4-bit float".to_owned()),
        (None, _) => Element::Foreign(format!("OpenVINO's element type {ov}")),
    }
}

/// OpenVINO's number for one of the interface's types.
pub fn from_dtype(dtype: u32) -> Option<i32> {
    ROWS.iter().find(|(_, own)| *own == dtype).map(|(number, _)| *number)
}

/// The first number of an input that the library would change: it computes integers of 64 bits in 32.
pub fn find_wide_number(dtype: u32, data: &[u8]) -> Option<String> {
    let numbers = data.chunks_exact(8).map(|bytes| {
        let mut own = [0; 8];
        own.copy_from_slice(bytes);
        own
    });
    match dtype {
        dtype::INT64 => {
            let mut numbers = numbers.map(i64::from_le_bytes);
            numbers.find(|number| i32::try_from(*number).is_err()).map(|number| number.to_string())
        }
        dtype::UINT64 => {
            let mut numbers = numbers.map(u64::from_le_bytes);
            numbers.find(|number| i32::try_from(*number).is_err()).map(|number| number.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
