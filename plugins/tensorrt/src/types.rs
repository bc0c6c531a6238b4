//! Element types of TensorRT and those of the interface.

use trtserver_framework::check::Element;
use trtserver_plugin_api::abi::types::dtype;

/// `DataType::kINT32` and `kINT64`: shape tensors have one of them.
pub const INT32: i32 = 3;
pub const INT64: i32 = 8;
const FP8: i32 = 6;

/// The type of a tensor for clients, from TensorRT's `DataType`. FP8 has no name in the protocols:
/// its bytes are UINT8.
pub fn to_element(kind: i32) -> Element {
    Element::Known(match kind {
        0 => dtype::FP32,
        1 => dtype::FP16,
        2 => dtype::INT8,
        INT32 => dtype::INT32,
        4 => dtype::BOOL,
        5 | FP8 => dtype::UINT8,
        7 => dtype::BF16,
        INT64 => dtype::INT64,
        9 => return Element::Foreign("INT4".to_owned()),
        10 => return Element::Foreign("FP4".to_owned()),
        11 => return Element::Foreign("E8M0".to_owned()),
        other => return Element::Foreign(format!("type {other} of TensorRT")),
    })
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
