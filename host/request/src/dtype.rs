//! Tensor data types: v2 and configuration names, numbers, element sizes.

use trtserver_proto::v2::DataType as Proto;

/// The discriminants are the numbers of `DataType` in the model configuration and in the plugin
/// interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum DType {
    Bool = 1,
    Uint8 = 2,
    Uint16 = 3,
    Uint32 = 4,
    Uint64 = 5,
    Int8 = 6,
    Int16 = 7,
    Int32 = 8,
    Int64 = 9,
    Fp16 = 10,
    Fp32 = 11,
    Fp64 = 12,
    /// Each element is a little-endian u32 byte count followed by that many bytes.
    String = 13,
    Bf16 = 14,
}

/// All types with their v2 and configuration names and element sizes in bytes (0 = variable).
const TABLE: [(DType, &str, &str, usize); 14] = [
    (DType::Bool, "BOOL", "TYPE_BOOL", 1),
    (DType::Uint8, "UINT8", "TYPE_UINT8", 1),
    (DType::Uint16, "UINT16", "TYPE_UINT16", 2),
    (DType::Uint32, "UINT32", "TYPE_UINT32", 4),
    (DType::Uint64, "UINT64", "TYPE_UINT64", 8),
    (DType::Int8, "INT8", "TYPE_INT8", 1),
    (DType::Int16, "INT16", "TYPE_INT16", 2),
    (DType::Int32, "INT32", "TYPE_INT32", 4),
    (DType::Int64, "INT64", "TYPE_INT64", 8),
    (DType::Fp16, "FP16", "TYPE_FP16", 2),
    (DType::Fp32, "FP32", "TYPE_FP32", 4),
    (DType::Fp64, "FP64", "TYPE_FP64", 8),
    (DType::String, "BYTES", "TYPE_STRING", 0),
    (DType::Bf16, "BF16", "TYPE_BF16", 2),
];

impl DType {
    /// From the number used in configurations and in the plugin interface.
    pub fn from_number(number: u32) -> Option<Self> {
        TABLE.get(number.checked_sub(1)? as usize).map(|row| row.0)
    }

    pub fn from_proto(proto: Proto) -> Option<Self> {
        Self::from_number(proto as u32)
    }

    /// From the v2 wire name, e.g. `FP32`.
    pub fn from_v2_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    pub fn number(self) -> u32 {
        self as u32
    }

    /// `FP32`, `BYTES`, …
    pub fn v2_name(self) -> &'static str {
        self.row().1
    }

    /// `TYPE_FP32`, `TYPE_STRING`, …
    pub fn config_name(self) -> &'static str {
        self.row().2
    }

    /// Bytes of one element; `None` for strings.
    pub fn size(self) -> Option<usize> {
        match self.row().3 {
            0 => None,
            n => Some(n),
        }
    }

    fn row(self) -> &'static (DType, &'static str, &'static str, usize) {
        &TABLE[self as usize - 1]
    }
}

#[cfg(test)]
#[path = "dtype_tests.rs"]
mod tests;
