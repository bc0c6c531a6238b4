//! Names and sizes of the interface's element types, and shapes in messages.

use trtserver_plugin_api::author::Dtype;

/// Bytes of one element; 0 for strings and unknown types.
pub fn type_size(dtype: u32) -> usize {
    Dtype::from_abi(dtype).size().unwrap_or(0)
}

/// As a configuration spells it.
pub fn type_name(dtype: u32) -> String {
    format!("TYPE_{}", Dtype::from_abi(dtype))
}

/// `[-1,16]`, the way messages print a shape.
pub fn shape_text(dims: &[i64]) -> String {
    let parts: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("[{}]", parts.join(","))
}

/// Number of elements; `None` with a negative dimension or beyond 2^63.
pub fn element_count(dims: &[i64]) -> Option<usize> {
    dims.iter().try_fold(1usize, |product, &dim| {
        product.checked_mul(usize::try_from(dim).ok()?).filter(|&n| n <= i64::MAX as usize)
    })
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
