//! STRING tensors: from length-prefixed bytes to the library's strings and back.
//!
//! Lengths are kept in both directions, so strings may contain NUL. Strings are the only tensor
//! data that is always copied.

use crate::runtime::ort;
use crate::value::OnnxValue;
use ort_sys::ONNXTensorElementDataType as Element;
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::outlet::{OutputOutlet, OutputTensor};
use trtserver_framework::strings::{HEAD, check_elements, split_elements};

/// Creates the library's string tensor from length-prefixed bytes. `name` is for messages.
pub fn decode_strings(
    runtime: &'static crate::runtime::OnnxRuntime,
    name: &str,
    shape: &[i64],
    bytes: &[u8],
) -> Result<OnnxValue, PluginFault> {
    check_elements(name, shape, bytes)?;
    let value = OnnxValue::new(runtime, Element::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, shape)?;
    for (index, element) in split_elements(bytes).flatten().enumerate() {
        let mut to = ptr::null_mut();
        // SAFETY: the index is below the tensor's element count; the returned buffer has exactly
        // the requested length.
        unsafe {
            ort!(
                runtime,
                GetResizedStringTensorElementBuffer(
                    value.as_ptr(),
                    index,
                    element.len(),
                    &raw mut to
                )
            )?;
            ptr::copy_nonoverlapping(element.as_ptr(), to.cast(), element.len());
        }
    }
    Ok(value)
}

/// Passes the strings of an output to the host.
pub fn pass_strings(
    value: &OnnxValue,
    count: usize,
    output: OutputTensor<'_>,
    outlet: &mut impl OutputOutlet,
    offsets: &mut Vec<usize>,
) -> Result<(), PluginFault> {
    let bytes = encoded_size(value, count)?;
    let (to, n) = outlet.block(output, bytes)?;
    if to.is_null() || n < bytes {
        return Ok(()); // not requested
    }
    // SAFETY: the host's block, exclusive until the response is sent.
    let to = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
    encode_strings(value, count, to, offsets)
}

/// Bytes that [`encode_strings`] will write for a tensor of `count` strings.
pub fn encoded_size(value: &OnnxValue, count: usize) -> Result<usize, PluginFault> {
    let mut content = 0;
    // SAFETY: the value is alive; the out pointer is ours.
    unsafe {
        ort!(value.runtime(), GetStringTensorDataLength(value.as_ptr(), &raw mut content))?;
    }
    Ok(content + HEAD * count)
}

/// Writes the strings with their lengths into `to`, which has [`encoded_size`] bytes. `offsets` is
/// scratch space.
pub fn encode_strings(
    value: &OnnxValue,
    count: usize,
    to: &mut [u8],
    offsets: &mut Vec<usize>,
) -> Result<(), PluginFault> {
    if count == 0 {
        return Ok(());
    }
    offsets.clear();
    offsets.resize(count, 0);
    // The library writes all contents to the end of the buffer; `spread` then moves each towards
    // the front, behind its length. An element never moves backwards, so it overwrites no later
    // one.
    let heads = HEAD * count;
    let content = to.len() - heads;
    // SAFETY: the buffers hold the contents and one offset per element.
    unsafe {
        ort!(
            value.runtime(),
            GetStringTensorContent(
                value.as_ptr(),
                to[heads..].as_mut_ptr().cast(),
                content,
                offsets.as_mut_ptr(),
                count
            )
        )?;
    }
    string_pointers(to, offsets, content);
    Ok(())
}

/// The second half of [`encode_strings`].
fn string_pointers(to: &mut [u8], offsets: &[usize], content: usize) {
    let heads = HEAD * offsets.len();
    for (i, &from) in offsets.iter().enumerate() {
        let end = offsets.get(i + 1).copied().unwrap_or(content);
        let length = end - from;
        let at = from + HEAD * i;
        // Strings above 4 GiB cannot be expressed in this format, but a tensor with one would not
        // fit a message.
        let head = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
        to.copy_within(heads + from..heads + end, at + HEAD);
        to[at..at + HEAD].copy_from_slice(&head);
    }
}

#[cfg(test)]
#[path = "strings_tests.rs"]
mod tests;
