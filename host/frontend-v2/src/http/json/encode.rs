//! Converts tensor bytes to `data` arrays.

use super::half::{BF16, FP16, HalfFloat};
use super::text::Number;
use super::write;
use trtserver_base::error::{Error, Result};
use trtserver_request::{DType, strings};

/// The most text that [`encode_data`] writes for `bytes` of tensor.
pub fn max_text(dtype: DType, bytes: usize) -> usize {
    let per_byte = match dtype {
        // `\u0000`; the four bytes of a length pay for quotation marks and comma.
        DType::String => 6,
        DType::Bool => 6,
        DType::Int8 => 5,
        DType::Uint8 | DType::Int16 | DType::Fp64 => 4,
        // `-123456790000000000000.0,`
        DType::Fp32 | DType::Fp16 => 7,
        // `-123000000000000000000.0,`
        DType::Bf16 => 13,
        _ => 3,
    };
    bytes.saturating_mul(per_byte).saturating_add(2)
}

/// Writes output `name` as a flat array.
///
/// # Errors
/// Strings that are not UTF-8, which would make the response invalid JSON.
pub fn encode_data(out: &mut Vec<u8>, name: &str, dtype: DType, data: &[u8]) -> Result<()> {
    match dtype {
        DType::Bool => numbers(out, data, |[b]: [u8; 1]| b != 0),
        DType::Uint8 => numbers(out, data, u8::from_le_bytes),
        DType::Uint16 => numbers(out, data, u16::from_le_bytes),
        DType::Uint32 => numbers(out, data, u32::from_le_bytes),
        DType::Uint64 => numbers(out, data, u64::from_le_bytes),
        DType::Int8 => numbers(out, data, i8::from_le_bytes),
        DType::Int16 => numbers(out, data, i16::from_le_bytes),
        DType::Int32 => numbers(out, data, i32::from_le_bytes),
        DType::Int64 => numbers(out, data, i64::from_le_bytes),
        DType::Fp32 => numbers(out, data, f32::from_le_bytes),
        DType::Fp64 => numbers(out, data, f64::from_le_bytes),
        DType::Fp16 => halves(out, &FP16, data),
        DType::Bf16 => halves(out, &BF16, data),
        DType::String => {
            if let Some(at) =
                strings::string_elements(data).position(|e| std::str::from_utf8(e).is_err())
            {
                return Err(Error::invalid(format!(
                    "output '{name}': element {at} is not UTF-8 and cannot be sent via JSON. Please use the \
                     binary data format for output"
                )));
            }
            write::write_array(out, strings::string_elements(data), write::write_string);
        }
    }
    Ok(())
}

fn halves(out: &mut Vec<u8>, format: &HalfFloat, data: &[u8]) {
    let (values, _) = data.as_chunks::<2>();
    write::write_array(out, values, |out, value| format.write(out, u16::from_le_bytes(*value)));
}

/// Writes the numbers in `data`, which `value` converts.
fn numbers<const N: usize, T: Number>(
    out: &mut Vec<u8>,
    data: &[u8],
    value: impl Fn([u8; N]) -> T,
) {
    let (values, _) = data.as_chunks::<N>();
    write::write_array(out, values, |out, bytes| value(*bytes).write(out));
}
