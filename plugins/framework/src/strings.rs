//! Elements of STRING tensors: each is a little-endian u32 byte count and that many bytes.

use crate::fault::PluginFault;
use crate::types;

/// Bytes of the count before each element.
pub const HEAD: usize = 4;

/// Cuts length-prefixed data into its elements.
pub struct Elements<'a> {
    rest: &'a [u8],
}

pub fn split_elements(bytes: &[u8]) -> Elements<'_> {
    Elements { rest: bytes }
}

impl<'a> Iterator for Elements<'a> {
    /// The error has the announced length and the number of bytes left.
    type Item = Result<&'a [u8], (usize, usize)>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            return None;
        }
        let Some((head, tail)) = rest.split_first_chunk::<HEAD>() else {
            return Some(Err((HEAD, rest.len())));
        };
        let length = u32::from_le_bytes(*head) as usize;
        match tail.split_at_checked(length) {
            Some((element, tail)) => {
                self.rest = tail;
                Some(Ok(element))
            }
            None => Some(Err((length, tail.len()))),
        }
    }
}

/// Number of elements; `None` if one is truncated.
pub fn count_elements(mut elements: Elements<'_>) -> Option<usize> {
    elements.try_fold(0, |n, element| element.is_ok().then_some(n + 1))
}

/// Checks the elements of input `name` before anything is allocated for them, and returns their
/// number.
///
/// # Errors
/// An element is truncated, or their number is not that of the shape.
pub fn check_elements(name: &str, shape: &[i64], bytes: &[u8]) -> Result<usize, PluginFault> {
    let expected = types::element_count(shape)
        .ok_or_else(|| PluginFault::invalid(format!("shape of input '{name}' is too large")))?;
    let mut count = 0;
    for element in split_elements(bytes) {
        element.map_err(|(announced, left)| {
            PluginFault::invalid(format!(
                "incomplete string data for inference input '{name}', expecting {announced} bytes \
                 but only {left} are left"
            ))
        })?;
        count += 1;
    }
    if count != expected {
        return Err(PluginFault::invalid(format!(
            "unexpected number of string elements {count} for inference input '{name}', \
             expecting {expected}"
        )));
    }
    Ok(count)
}

#[cfg(test)]
#[path = "strings_tests.rs"]
mod tests;
