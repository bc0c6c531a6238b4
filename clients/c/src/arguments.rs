//! Conversion of C arguments: strings, arrays, structures and pointers to results. NULL where a
//! value is needed is an error.

use crate::failure::{ClientFailure, Outcome};
use bytes::Bytes;
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::time::Duration;
use trtserver_client::Borrow;

/// A string that must be there.
///
/// # Safety
/// `text` is NULL or a string that ends with NUL.
pub unsafe fn read_text<'a>(text: *const c_char, what: &str) -> Outcome<&'a str> {
    // SAFETY: the contract of this function.
    unsafe { optional_text(text, what) }?
        .ok_or_else(|| ClientFailure::argument(format!("{what} is NULL")))
}

/// A string that may be NULL.
///
/// # Safety
/// The conditions of [`read_text`].
pub unsafe fn optional_text<'a>(text: *const c_char, what: &str) -> Outcome<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the contract of this function.
    let text = unsafe { CStr::from_ptr(text) };
    let utf8 =
        text.to_str().map_err(|_| ClientFailure::argument(format!("{what} is not UTF-8")))?;
    Ok(Some(utf8))
}

/// An array.
///
/// # Safety
/// `items` is NULL or points to `count` elements.
pub unsafe fn read_array<'a, T>(items: *const T, count: usize, what: &str) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if items.is_null() {
        return Err(ClientFailure::argument(format!("{what} is NULL, expected {count} elements")));
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(ClientFailure::argument(format!(
            "{what} has {count} elements, more than memory"
        )));
    }
    // SAFETY: the contract of this function.
    Ok(unsafe { std::slice::from_raw_parts(items, count) })
}

/// Where a function writes its result.
///
/// # Safety
/// `place` is NULL or points to a writable `T`.
pub unsafe fn result_place<'a, T>(place: *mut T, what: &str) -> Outcome<&'a mut MaybeUninit<T>> {
    if place.is_null() {
        return Err(ClientFailure::argument(format!("the pointer to the result `{what}` is NULL")));
    }
    // SAFETY: the contract of this function; nothing is read from it.
    Ok(unsafe { &mut *place.cast() })
}

/// A structure that begins with its size. What the caller's version of it does not have is zero.
///
/// # Safety
/// `pointer` is NULL or points to the structure; `T` is `repr(C)`, begins with
/// `struct_size: usize`, and may be all zero.
pub unsafe fn read_struct<T: Copy>(pointer: *const T, what: &str) -> Outcome<T> {
    if pointer.is_null() {
        return Err(ClientFailure::argument(format!("{what} is NULL")));
    }
    // SAFETY: the contract of this function.
    let size = unsafe { pointer.cast::<usize>().read_unaligned() };
    let known = size_of::<T>();
    if size < size_of::<usize>() || size > 1 << 16 {
        return Err(ClientFailure::argument(format!(
            "struct_size of {what} is {size}, expected {known}"
        )));
    }
    // SAFETY: the structure has `size` bytes.
    let beyond = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) };
    if beyond.iter().skip(known).any(|byte| *byte != 0) {
        return Err(ClientFailure::argument(format!(
            "{what} has fields that this version of the library does not know"
        )));
    }
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: both have this many bytes, and every `T` is valid: it was zero, and the caller's
    // fields are of their types.
    unsafe {
        std::ptr::copy_nonoverlapping(
            pointer.cast::<u8>(),
            copy.as_mut_ptr().cast::<u8>(),
            size.min(known),
        );
        Ok(copy.assume_init())
    }
}

/// How tensor data is taken.
#[derive(Clone, Copy)]
pub enum Take<'a> {
    Copy,
    /// Without a copy; the memory is used until the borrow is released.
    Borrow(&'a Borrow),
}

/// Tensor data.
///
/// # Safety
/// `data` points to `size` bytes, or is NULL and `size` 0. For a borrow they stay valid and
/// unchanged until it is released.
pub unsafe fn tensor_data(
    data: *const u8,
    size: usize,
    take: Take<'_>,
    what: &str,
) -> Outcome<Bytes> {
    // SAFETY: the contract of this function.
    let slice = unsafe { read_array(data, size, what) }?;
    Ok(match take {
        Take::Copy => Bytes::copy_from_slice(slice),
        // SAFETY: the contract of this function.
        Take::Borrow(borrow) => unsafe { borrow.bytes(slice.as_ptr(), slice.len()) },
    })
}

/// The deadline of a call: `Some(None)` means no deadline, `None` means the deadline of the
/// settings.
pub fn read_deadline(deadline_us: u64) -> Option<Option<Duration>> {
    match deadline_us {
        0 => None,
        u64::MAX => Some(None),
        limit => Some(Some(Duration::from_micros(limit))),
    }
}
