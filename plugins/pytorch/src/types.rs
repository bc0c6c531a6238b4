//! Torch's element types and the interface's.

use crate::symbols::TorchTable;
use trtserver_framework::check::Element;
use trtserver_plugin_api::abi::types::dtype;

/// Numbers of torch's types, and the interface's.
pub struct DtypeNumbers(Vec<(i32, u32)>);

impl DtypeNumbers {
    pub fn read(api: &TorchTable) -> Self {
        let functions = [
            (api.float16, dtype::FP16),
            (api.bfloat16, dtype::BF16),
            (api.float32, dtype::FP32),
            (api.float64, dtype::FP64),
            (api.uint8, dtype::UINT8),
            (api.uint16, dtype::UINT16),
            (api.uint32, dtype::UINT32),
            (api.uint64, dtype::UINT64),
            (api.int8, dtype::INT8),
            (api.int16, dtype::INT16),
            (api.int32, dtype::INT32),
            (api.int64, dtype::INT64),
            (api.bool8, dtype::BOOL),
        ];
        // SAFETY: functions without arguments.
        Self(functions.map(|(number, own)| (unsafe { number() }, own)).to_vec())
    }

    /// The interface's types, and torch's numbers. There are none for strings.
    pub fn list(&self) -> Vec<(u32, i32)> {
        self.0.iter().map(|(number, own)| (*own, *number)).collect()
    }

    /// Torch's number of a type.
    pub fn number(&self, own: u32) -> Option<i32> {
        self.0.iter().find(|(_, known)| *known == own).map(|(number, _)| *number)
    }

    /// The interface's type; `None` for complex numbers, quantised and eight-bit floats.
    pub fn dtype(&self, number: i32) -> Option<u32> {
        self.0.iter().find(|(known, _)| *known == number).map(|(_, own)| *own)
    }
}

/// The type that generated code calls `at::kFloat`, given as `kFloat`.
pub fn named_element(name: &str) -> Element {
    Element::Known(match name {
        "kHalf" => dtype::FP16,
        "kBFloat16" => dtype::BF16,
        "kFloat" => dtype::FP32,
        "kDouble" => dtype::FP64,
        "kByte" => dtype::UINT8,
        "kUInt16" => dtype::UINT16,
        "kUInt32" => dtype::UINT32,
        "kUInt64" => dtype::UINT64,
        "kChar" => dtype::INT8,
        "kShort" => dtype::INT16,
        "kInt" => dtype::INT32,
        "kLong" => dtype::INT64,
        "kBool" => dtype::BOOL,
        other => return Element::Foreign(other.trim_start_matches('k').to_owned()),
    })
}
