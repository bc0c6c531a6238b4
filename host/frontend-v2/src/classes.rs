//! Classification extension: outputs as top-k strings (docs/protocol/v2.md §2.11).

use smallvec::smallvec;
use std::fmt::Write;
use trtserver_base::error::{Error, Result};
use trtserver_request::tensor::element_count;
use trtserver_request::{DType, ModelSignature, OutputTensor, classes, strings};

/// Most elements per batch item that are ranked.
const MAX_ELEMENTS: usize = 1_000_000;

/// `output` as BYTES: the `k` best elements of each batch item as `value:index[:label]`.
pub fn classify_output(
    signature: &ModelSignature,
    output: &OutputTensor,
    k: u32,
) -> Result<OutputTensor> {
    if !classes::supports_classes(output.dtype) {
        return Err(Error::invalid(format!(
            "class result not available for output due to unsupported type '{}'",
            output.dtype.v2_name()
        )));
    }
    let batching = signature.batching();
    let (batch, item) = match output.shape.as_slice() {
        [rows, item @ ..] if batching => (usize::try_from(*rows).unwrap_or(0), item),
        shape => (1, shape),
    };
    let elements = element_count(item).unwrap_or(usize::MAX);
    if elements > MAX_ELEMENTS {
        return Err(Error::invalid("classification output tensor too large"));
    }
    // The backend may answer for the number of rows: without elements they have no memory that
    // limits it.
    let rows = if elements == 0 { 0 } else { batch };
    let items = classes::find_top_classes(output, rows, k as usize)
        .ok_or_else(|| Error::internal(format!("output '{}' cannot be ranked", output.name)))?;
    let labels =
        signature.output(&output.name).and_then(|i| signature.outputs[i].labels.as_deref());

    let mut data = Vec::new();
    let mut text = String::new();
    for class in items.iter().flatten() {
        text.clear();
        // Writing into a string cannot fail.
        let _ = match class.integer {
            Some(value) => write!(text, "{value}:{}", class.index),
            None if class.value.is_nan() => write!(text, "nan:{}", class.index),
            None => write!(text, "{:.6}:{}", class.value, class.index),
        };
        if let Some(label) = labels.and_then(|l| l.get(class.index)).filter(|l| !l.is_empty()) {
            text.push(':');
            text.push_str(label);
        }
        strings::push_string(&mut data, text.as_bytes());
    }
    let each = elements.min(k as usize) as i64;
    Ok(OutputTensor {
        name: output.name.clone(),
        dtype: DType::String,
        shape: if batching { smallvec![batch as i64, each] } else { smallvec![each] },
        data: data.into(),
    })
}

#[cfg(test)]
#[path = "classes_tests.rs"]
mod tests;
