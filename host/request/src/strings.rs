//! Serialized string tensors (BYTES): each element is a little-endian u32 length, then its bytes.

/// Why a string tensor is malformed. Each protocol generation has its own message for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringFault {
    /// Fewer than four bytes where a length is expected, before all elements were read.
    NoLength { available: usize },
    /// The element's bytes are truncated.
    Short { length: usize, available: usize },
    /// The data ends before all elements were read.
    TooFew { found: usize },
    /// At least one further element follows.
    TooMany { found: usize },
}

/// Checks that `data` holds `expected` elements, and returns the offset of their end. One to three
/// stray bytes after them are ignored, as in base (docs/protocol/v1.md §5.4).
pub fn check_strings(data: &[u8], expected: usize) -> Result<usize, StringFault> {
    let mut rest = data;
    let mut found = 0;
    while found < expected {
        let Some((head, tail)) = rest.split_first_chunk::<4>() else {
            return Err(match rest.len() {
                0 => StringFault::TooFew { found },
                available => StringFault::NoLength { available },
            });
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length > tail.len() {
            return Err(StringFault::Short { length, available: tail.len() });
        }
        rest = &tail[length..];
        found += 1;
    }
    match rest.len() {
        stray @ 0..4 => Ok(data.len() - stray),
        _ => Err(StringFault::TooMany { found: found + 1 }),
    }
}

/// The elements of a tensor. Stops at the first malformed one; a tensor that passed [`check`] has
/// none.
pub fn string_elements(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (head, tail) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*head) as usize;
        let element = tail.get(..length)?;
        rest = &tail[length..];
        Some(element)
    })
}

/// Appends one serialized element, which must be shorter than 4 GiB.
pub fn push_string(out: &mut Vec<u8>, element: &[u8]) {
    out.extend_from_slice(&(element.len() as u32).to_le_bytes());
    out.extend_from_slice(element);
}

#[cfg(test)]
#[path = "strings_tests.rs"]
mod tests;
