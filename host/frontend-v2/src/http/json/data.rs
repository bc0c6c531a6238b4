//! Converts `data` arrays whose syntax was checked to little-endian tensor bytes.

use super::access::{as_signed, as_unsigned, expect_real, wrong_type};
use super::half::{BF16, FP16};
use super::read::MAX_DEPTH;
use super::{JsonArray, JsonValue, numbers};
use bytes::Bytes;
use trtserver_base::budget;
use trtserver_base::budget::{BudgetExhaustion, out_of_memory, request_memory};
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::MemoryTag;
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::{DType, strings};

/// The values of a tensor: an array, or a single value.
pub trait Values {
    /// Length of their text, not counting the brackets of a single value.
    fn text_len(&self) -> usize;

    /// Calls `each` with every value that is not an array, at any depth.
    fn each(&self, each: impl FnMut(&JsonValue<'_>) -> Result<()>) -> Result<()>;

    /// Converts the values at once, if they are numbers that fill `out`.
    fn numbers(&self, _dtype: DType, _out: &mut [u8]) -> bool {
        false
    }
}

impl Values for JsonArray<'_> {
    fn text_len(&self) -> usize {
        self.text().len()
    }

    fn each(&self, mut each: impl FnMut(&JsonValue<'_>) -> Result<()>) -> Result<()> {
        self.flat(|value| each(&value))
    }

    fn numbers(&self, dtype: DType, out: &mut [u8]) -> bool {
        numbers::read_numbers(self.text(), MAX_DEPTH, dtype, out).is_some()
    }
}

impl Values for &JsonValue<'_> {
    fn text_len(&self) -> usize {
        match self {
            JsonValue::String(text) => text.len() + 2,
            JsonValue::Number(token) => token.len(),
            _ => 1,
        }
    }

    fn each(&self, mut each: impl FnMut(&JsonValue<'_>) -> Result<()>) -> Result<()> {
        each(self)
    }
}

/// The `elements` values of `values`, at any nesting, as tensor bytes, which are entered under
/// `tag`.
///
/// # Errors
/// Another number of values, values of another type, or more bytes than `limit`. The number of
/// strings is checked with the whole request, as in Triton.
pub fn decode_data(
    values: impl Values,
    dtype: DType,
    elements: usize,
    input: &str,
    limit: u64,
    tag: MemoryTag,
) -> Result<Bytes> {
    let too_large = |bytes: u64| {
        Error::invalid(format!(
            "JSON input '{input}' has a byte_size ({bytes} bytes) that exceeds the maximum allowed \
             value of {limit} bytes. Use --http-max-input-size to increase the limit."
        ))
    };
    // Triton does not read the array in this case either.
    if elements == 0 {
        return Ok(Bytes::new());
    }
    // Every value takes at least a byte and a comma.
    let capacity = elements.min(values.text_len() / 2 + 1);
    let bytes = if let Some(size) = dtype.size() {
        let bytes = (elements as u64).saturating_mul(size as u64);
        if bytes > limit {
            return Err(too_large(bytes));
        }
        let buf = AlignedBuf::unwritten(capacity * size, tag);
        let mut buf = buf.map_err(|e| e.refuse("a JSON tensor"))?;
        if capacity < elements || !values.numbers(dtype, buf.as_mut()) {
            one_by_one(&values, dtype, elements, buf.as_mut())?;
        }
        buf.into_bytes()
    } else {
        // An empty string takes three bytes of text and four of tensor; escape sequences only
        // shrink.
        let text = values.text_len();
        let capacity = (text + text / 2).min(limit as usize);
        let reservation = request_memory().try_reserve_large(capacity, tag);
        let mut reservation = reservation.map_err(BudgetExhaustion::refuse)?;
        let mut out = Vec::new();
        out.try_reserve_exact(capacity).map_err(|_| out_of_memory("a JSON tensor", capacity))?;
        values.each(|value| {
            let JsonValue::String(text) = value else {
                return Err(Error::internal(
                    "Unable to parse JSON bytes array: attempt to access JSON non-string as string",
                ));
            };
            let bytes = (out.len() + 4 + text.len()) as u64;
            if bytes > limit {
                return Err(too_large(bytes));
            }
            strings::push_string(&mut out, text);
            Ok(())
        })?;
        if reservation.bytes() > 0 {
            out.shrink_to_fit();
            reservation.shrink_to(out.len());
        }
        budget::charge_bytes(out, reservation)
    };
    Ok(bytes)
}

/// Fills the beginning of `out` with exactly `elements` values.
pub(super) fn one_by_one(
    values: &impl Values,
    dtype: DType,
    elements: usize,
    out: &mut [u8],
) -> Result<()> {
    let mut count = 0;
    let mut slots = out.chunks_exact_mut(dtype.size().unwrap_or(1));
    values.each(|value| {
        let Some(slot) = slots.next().filter(|_| count < elements) else {
            return Err(Error::internal(
                "Unable to parse 'data': Shape does not match true shape of 'data' field",
            ));
        };
        count += 1;
        number(dtype, value, slot)
    })?;
    if count < elements { Err(too_few()) } else { Ok(()) }
}

fn too_few() -> Error {
    Error::internal("Failed to parse 'data' field: shape does not match true shape")
}

fn number(dtype: DType, value: &JsonValue<'_>, slot: &mut [u8]) -> Result<()> {
    match dtype {
        DType::Bool => match value {
            JsonValue::Bool(b) => slot[0] = u8::from(*b),
            _ => return Err(wrong_type("data", "boolean")),
        },
        DType::Uint8 | DType::Uint16 | DType::Uint32 | DType::Uint64 => {
            put(slot, as_unsigned(value).ok_or_else(|| wrong_type("data", "unsigned-integer"))?);
        }
        DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64 => {
            let v = as_signed(value).ok_or_else(|| wrong_type("data", "signed-integer"))?;
            put(slot, v as u64);
        }
        DType::Fp32 => slot.copy_from_slice(&(expect_real("data", value)? as f32).to_le_bytes()),
        DType::Fp64 => slot.copy_from_slice(&expect_real("data", value)?.to_le_bytes()),
        DType::Fp16 => {
            slot.copy_from_slice(&FP16.narrow(expect_real("data", value)?).to_le_bytes())
        }
        DType::Bf16 => {
            slot.copy_from_slice(&BF16.narrow(expect_real("data", value)?).to_le_bytes())
        }
        // Handled by `decode`.
        DType::String => return Err(too_few()),
    }
    Ok(())
}

/// The low bytes of `value`; narrow types wrap silently.
fn put(slot: &mut [u8], value: u64) {
    let size = slot.len();
    slot.copy_from_slice(&value.to_le_bytes()[..size]);
}
