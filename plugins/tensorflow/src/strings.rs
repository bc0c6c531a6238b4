//! STRING tensors: from length-prefixed bytes to TensorFlow's strings and back.
//!
//! TensorFlow's string has 24 bytes in one of four forms, given by the lowest two bits of its first
//! byte: small (the contents follow), large (an allocation), offset, and view (a pointer to memory
//! of another owner). Inputs of more than 22 bytes are views of the request, so that no contents
//! are copied; they are not NUL-terminated, see `state.rs`. The layout is the same in all releases
//! since 2.4.

use crate::runtime::TensorFlowRuntime;
use crate::tensor::{Borrow, OwnedTensor};
use std::ffi::c_void;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::InputBlocks;
use trtserver_framework::strings::{HEAD, check_elements, split_elements};

/// Bytes of one string.
pub const SIZE: usize = 24;
const SMALL: u8 = 0;
const LARGE: u8 = 1;
const OFFSET: u8 = 2;
const VIEW: u8 = 3;
const STRING: i32 = 7;

/// A tensor of strings in block `nth` that refer to length-prefixed bytes. `name` is for messages.
///
/// # Safety
/// The bytes and the block stay valid and unchanged while `borrow` has other uses.
pub unsafe fn decode_strings(
    runtime: &'static TensorFlowRuntime,
    name: &str,
    shape: &[i64],
    bytes: &[u8],
    (blocks, nth): (&mut InputBlocks, usize),
    borrow: &Borrow,
) -> Result<(OwnedTensor, usize, usize), PluginFault> {
    let count = check_elements(name, shape, bytes)?;
    let block = blocks.block(nth, count * SIZE);
    for (at, element) in split_elements(bytes).flatten().enumerate() {
        let mut string = [0; SIZE];
        if element.len() < SIZE - 1 {
            string[0] = (element.len() as u8) << 2 | SMALL;
            string[1..=element.len()].copy_from_slice(element);
        } else {
            let size = (element.len() as u64) << 2 | u64::from(VIEW);
            string[..8].copy_from_slice(&size.to_le_bytes());
            let address = element.as_ptr().expose_provenance() as u64;
            string[8..16].copy_from_slice(&address.to_le_bytes());
        }
        // SAFETY: the block has `count` times 24 bytes.
        unsafe { block.add(at * SIZE).cast::<[u8; SIZE]>().write(string) }
    }
    // SAFETY: the caller's promise.
    let tensor = unsafe { OwnedTensor::over(runtime, STRING, shape, block, count * SIZE, borrow)? };
    Ok((tensor, block.addr(), count * SIZE))
}

/// A tensor of copies of the contents, which TensorFlow may keep.
pub fn decode_copies(
    runtime: &'static TensorFlowRuntime,
    name: &str,
    shape: &[i64],
    bytes: &[u8],
) -> Result<OwnedTensor, PluginFault> {
    let count = check_elements(name, shape, bytes)?;
    let mut strings = Box::new(StringBlock { runtime, all: vec![[0; 3]; count] });
    for (string, element) in strings.all.iter_mut().zip(split_elements(bytes).flatten()) {
        // SAFETY: 24 zero bytes are an empty string.
        unsafe {
            let string = string.as_mut_ptr().cast();
            (runtime.api.string_copy)(string, element.as_ptr().cast(), element.len());
        }
    }
    let data = strings.all.as_mut_ptr().cast();
    let owner = Box::into_raw(strings).cast();
    // SAFETY: the owner keeps the strings until `free_strings`.
    unsafe { OwnedTensor::new(runtime, STRING, shape, data, count * SIZE, free_strings, owner) }
}

struct StringBlock {
    runtime: &'static TensorFlowRuntime,
    all: Vec<[u64; 3]>,
}

unsafe extern "C" fn free_strings(_: *mut c_void, _: usize, owner: *mut c_void) {
    // SAFETY: the box of `decode_copies`, whose only release this is.
    let mut strings = unsafe { Box::from_raw(owner.cast::<StringBlock>()) };
    let free = strings.runtime.api.string_dealloc;
    for string in &mut strings.all {
        // SAFETY: a valid string, freed once.
        unsafe { free(string.as_mut_ptr().cast()) }
    }
}

/// Bytes that [`encode_strings`] will write for a tensor of `count` strings.
///
/// # Safety
/// The conditions of [`string_contents`].
pub unsafe fn encoded_size(data: *const u8, count: usize) -> usize {
    // SAFETY: the caller's promise.
    (0..count).map(|at| HEAD + unsafe { string_contents(data, at) }.len()).sum()
}

/// Writes the strings with their lengths into `to`, which has [`encoded_size`] bytes.
///
/// # Safety
/// The conditions of [`string_contents`].
pub unsafe fn encode_strings(data: *const u8, count: usize, mut to: &mut [u8]) {
    for at in 0..count {
        // SAFETY: the caller's promise.
        let string = unsafe { string_contents(data, at) };
        let (head, rest) = to.split_at_mut(HEAD);
        let (body, rest) = rest.split_at_mut(string.len());
        // Strings above 4 GiB cannot be expressed in this format, but a tensor with one would not
        // fit a message.
        head.copy_from_slice(&u32::try_from(string.len()).unwrap_or(u32::MAX).to_le_bytes());
        body.copy_from_slice(string);
        to = rest;
    }
}

/// Contents of the string at a position.
///
/// # Safety
/// `data` are valid strings of TensorFlow, more than `at`, unchanged while the result is used.
unsafe fn string_contents<'a>(data: *const u8, at: usize) -> &'a [u8] {
    // SAFETY: the caller's promise; the forms are those of
    // `tensorflow/tsl/platform/ctstring_internal.h`.
    unsafe {
        let string = data.add(at * SIZE);
        let first = *string;
        if first & 3 == SMALL {
            return std::slice::from_raw_parts(string.add(1), usize::from(first >> 2));
        }
        let size = (string.cast::<u64>().read_unaligned() >> 2) as usize;
        let body = match first & 3 {
            OFFSET => {
                // Size and distance from the string itself, 32 bits each.
                let [size, distance] = string.cast::<[u32; 2]>().read_unaligned();
                let body = string.add(distance as usize);
                return std::slice::from_raw_parts(body, (size >> 2) as usize);
            }
            // Size, capacity, address.
            LARGE => string.add(16),
            // Size, address, owner.
            _ => string.add(8),
        };
        let body = body.cast::<*const u8>().read_unaligned();
        if size == 0 { &[] } else { std::slice::from_raw_parts(body, size) }
    }
}

#[cfg(test)]
#[path = "strings_tests.rs"]
mod tests;
