//! Element types: TensorFlow's `DataType` numbers, the interface's numbers, and names for messages.

use trtserver_framework::types::type_name;
use trtserver_plugin_api::abi::types::dtype;

/// `DT_INVALID`: the file does not say.
pub const UNKNOWN: i32 = 0;

/// Types that both sides can express, in the order of the interface's numbers, from 1.
const ROWS: [(u32, i32); 14] = [
    (dtype::BOOL, 10),
    (dtype::UINT8, 4),
    (dtype::UINT16, 17),
    (dtype::UINT32, 22),
    (dtype::UINT64, 23),
    (dtype::INT8, 6),
    (dtype::INT16, 5),
    (dtype::INT32, 3),
    (dtype::INT64, 9),
    (dtype::FP16, 19),
    (dtype::FP32, 1),
    (dtype::FP64, 2),
    (dtype::STRING, 7),
    (dtype::BF16, 14),
];

/// TensorFlow's type for one of the interface's.
pub fn to_element(dtype: u32) -> Option<i32> {
    ROWS.iter().find(|row| row.0 == dtype).map(|row| row.1)
}

/// The interface's type for one of TensorFlow's; `INVALID` for types that the interface lacks.
pub fn to_dtype(element: i32) -> u32 {
    ROWS.iter().find(|row| row.1 == element).map_or(dtype::INVALID, |row| row.0)
}

/// Name of a TensorFlow type for messages; also for types that the plugin interface lacks.
pub fn element_name(element: i32) -> String {
    let name = match element {
        8 => "complex64",
        18 => "complex128",
        11 => "qint8 (quantised)",
        12 => "quint8 (quantised)",
        13 => "qint32 (quantised)",
        15 => "qint16 (quantised)",
        16 => "quint16 (quantised)",
        20 => "resource",
        21 => "variant",
        24..=28 => "an 8-bit float",
        29 | 30 => "a 4-bit integer",
        31 | 32 => "a 2-bit integer",
        33 => "a 4-bit float",
        // Reference types, of TF1 variables.
        101..=200 => return format!("a reference to {}", element_name(element - 100)),
        other if to_dtype(other) != dtype::INVALID => return type_name(to_dtype(other)),
        other => return format!("TensorFlow type {other}"),
    };
    name.to_owned()
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
