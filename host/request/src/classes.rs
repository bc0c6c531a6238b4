//! Classification: the top k elements of each batch item.

use super::dtype::DType;
use super::tensor::OutputTensor;

/// One class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopClass {
    /// Within the batch item.
    pub index: usize,
    pub value: f64,
    /// The exact value of an integer type (v2 prints it without decimals).
    pub integer: Option<i128>,
}

/// True for types that can be ranked: integers, FP32 and FP64 (docs/protocol/v1.md §5.5, v2 §2.11).
pub fn supports_classes(dtype: DType) -> bool {
    !matches!(dtype, DType::Bool | DType::Fp16 | DType::Bf16 | DType::String)
}

/// The `min(k, elements)` largest elements of each of `batch` items, in descending order, ties by
/// index. `None` if the type cannot be ranked, or the CPU cannot access the tensor.
pub fn find_top_classes(
    output: &OutputTensor,
    batch: usize,
    k: usize,
) -> Option<Vec<Vec<TopClass>>> {
    if !supports_classes(output.dtype) {
        return None;
    }
    let size = output.dtype.size()?;
    let data = output.data.readable()?;
    let elements = data.len() / size;
    let per_item = elements / batch.max(1);
    let items = (0..batch)
        .map(|item| {
            let bytes = &data[item * per_item * size..(item + 1) * per_item * size];
            rank_classes(output.dtype, bytes, size, k)
        })
        .collect();
    Some(items)
}

fn rank_classes(dtype: DType, bytes: &[u8], size: usize, k: usize) -> Vec<TopClass> {
    let mut classes: Vec<TopClass> = bytes
        .chunks_exact(size)
        .enumerate()
        .map(|(index, element)| {
            let (value, integer) = read_number(dtype, element);
            TopClass { index, value, integer }
        })
        .collect();
    // NaN sorts last, so it never displaces a score.
    let order = |a: &TopClass, b: &TopClass| {
        let by_value = match (a.integer, b.integer) {
            (Some(x), Some(y)) => y.cmp(&x),
            _ => b
                .value
                .partial_cmp(&a.value)
                .unwrap_or_else(|| a.value.is_nan().cmp(&b.value.is_nan())),
        };
        by_value.then(a.index.cmp(&b.index))
    };
    if k < classes.len() {
        if k > 0 {
            classes.select_nth_unstable_by(k - 1, order);
        }
        classes.truncate(k);
        // Otherwise every batch item keeps the memory of all its elements until the response is
        // built.
        classes.shrink_to_fit();
    }
    classes.sort_unstable_by(order);
    classes
}

fn read_number(dtype: DType, e: &[u8]) -> (f64, Option<i128>) {
    macro_rules! int {
        ($t:ty) => {
            <$t>::from_le_bytes(e.try_into().unwrap_or_default()) as i128
        };
    }
    let integer = match dtype {
        DType::Uint8 => int!(u8),
        DType::Uint16 => int!(u16),
        DType::Uint32 => int!(u32),
        DType::Uint64 => int!(u64),
        DType::Int8 => int!(i8),
        DType::Int16 => int!(i16),
        DType::Int32 => int!(i32),
        DType::Int64 => int!(i64),
        DType::Fp32 => return (f32::from_le_bytes(e.try_into().unwrap_or_default()) as f64, None),
        _ => return (f64::from_le_bytes(e.try_into().unwrap_or_default()), None),
    };
    (integer as f64, Some(integer))
}

#[cfg(test)]
#[path = "classes_tests.rs"]
mod tests;
