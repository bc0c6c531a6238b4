//! Element types, and the Rust types that represent them.

use crate::abi::types::dtype;
use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Dtype {
    /// Also for unknown numbers.
    Invalid = dtype::INVALID,
    /// One byte: 0 or 1.
    Bool = dtype::BOOL,
    /// 8 bits, unsigned.
    Uint8 = dtype::UINT8,
    /// 16 bits, unsigned.
    Uint16 = dtype::UINT16,
    /// 32 bits, unsigned.
    Uint32 = dtype::UINT32,
    /// 64 bits, unsigned.
    Uint64 = dtype::UINT64,
    /// 8 bits, signed.
    Int8 = dtype::INT8,
    /// 16 bits, signed.
    Int16 = dtype::INT16,
    /// 32 bits, signed.
    Int32 = dtype::INT32,
    /// 64 bits, signed.
    Int64 = dtype::INT64,
    /// IEEE 754, 16 bits.
    Fp16 = dtype::FP16,
    /// IEEE 754, 32 bits.
    Fp32 = dtype::FP32,
    /// IEEE 754, 64 bits.
    Fp64 = dtype::FP64,
    /// Each element is a little-endian u32 byte count and that many bytes.
    String = dtype::STRING,
    /// The upper half of an FP32.
    Bf16 = dtype::BF16,
}

impl Dtype {
    /// The type of a number of [`crate::abi::types::dtype`]; unknown numbers are `Invalid`.
    pub fn from_abi(number: u32) -> Dtype {
        match number {
            dtype::BOOL => Dtype::Bool,
            dtype::UINT8 => Dtype::Uint8,
            dtype::UINT16 => Dtype::Uint16,
            dtype::UINT32 => Dtype::Uint32,
            dtype::UINT64 => Dtype::Uint64,
            dtype::INT8 => Dtype::Int8,
            dtype::INT16 => Dtype::Int16,
            dtype::INT32 => Dtype::Int32,
            dtype::INT64 => Dtype::Int64,
            dtype::FP16 => Dtype::Fp16,
            dtype::FP32 => Dtype::Fp32,
            dtype::FP64 => Dtype::Fp64,
            dtype::STRING => Dtype::String,
            dtype::BF16 => Dtype::Bf16,
            _ => Dtype::Invalid,
        }
    }

    /// Its number in [`crate::abi::types::dtype`].
    pub fn to_abi(self) -> u32 {
        self as u32
    }

    /// Bytes of one element; `None` when elements differ in size.
    pub fn size(self) -> Option<usize> {
        match self {
            Dtype::Invalid | Dtype::String => None,
            Dtype::Bool | Dtype::Uint8 | Dtype::Int8 => Some(1),
            Dtype::Uint16 | Dtype::Int16 | Dtype::Fp16 | Dtype::Bf16 => Some(2),
            Dtype::Uint32 | Dtype::Int32 | Dtype::Fp32 => Some(4),
            Dtype::Uint64 | Dtype::Int64 | Dtype::Fp64 => Some(8),
        }
    }

    /// Name without prefix, as `TYPE_<name>` in a model configuration.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::Invalid => "INVALID",
            Dtype::Bool => "BOOL",
            Dtype::Uint8 => "UINT8",
            Dtype::Uint16 => "UINT16",
            Dtype::Uint32 => "UINT32",
            Dtype::Uint64 => "UINT64",
            Dtype::Int8 => "INT8",
            Dtype::Int16 => "INT16",
            Dtype::Int32 => "INT32",
            Dtype::Int64 => "INT64",
            Dtype::Fp16 => "FP16",
            Dtype::Fp32 => "FP32",
            Dtype::Fp64 => "FP64",
            Dtype::String => "STRING",
            Dtype::Bf16 => "BF16",
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// Rust types whose slices can represent a tensor: every bit pattern is a value.
/// `u8` also reads BOOL, and `u16` the bits of FP16 and BF16.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// Type of an output with these elements.
    const DTYPE: Dtype;
    /// Whether tensors of `dtype` can be read as this type.
    fn reads(dtype: Dtype) -> bool {
        dtype == Self::DTYPE
    }
}

macro_rules! elements {
    ($($rust:ty, $dtype:ident $(| $other:ident)*;)*) => { $(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: Dtype = Dtype::$dtype;
            fn reads(dtype: Dtype) -> bool {
                matches!(dtype, Dtype::$dtype $(| Dtype::$other)*)
            }
        }
    )* };
}

elements! {
    u8, Uint8 | Bool;
    u16, Uint16 | Fp16 | Bf16;
    u32, Uint32;
    u64, Uint64;
    i8, Int8;
    i16, Int16;
    i32, Int32;
    i64, Int64;
    f32, Fp32;
    f64, Fp64;
}

/// Elements of a shape; `None` if a dimension is negative or the product does not fit.
pub fn elements(shape: &[i64]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?))
}
