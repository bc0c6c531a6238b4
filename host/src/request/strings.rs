//! The byte form of string tensors: u32 little-endian length, then the bytes, one after another.

/// What is wrong with a string tensor. Each protocol generation has its own words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringFault {
    /// Fewer than four bytes where a length is due, before all elements were seen.
    NoLength { available: usize },
    /// The element's bytes are cut short.
    Short { length: usize, available: usize },
    /// All bytes used up, elements still missing.
    TooFew { found: usize },
    /// More bytes than the elements need; at least one further element begins.
    TooMany { found: usize },
}

/// Walks over `data`, which should hold `expected` elements, and says where they end. One to three stray bytes
/// behind them are ignored, as the old server did (contract/v1 §5.4).
pub fn check(data: &[u8], expected: usize) -> Result<usize, StringFault> {
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

/// The elements of a tensor that passed [`check`]; stops at the first malformed one.
pub fn elements(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (head, tail) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*head) as usize;
        let element = tail.get(..length)?;
        rest = &tail[length..];
        Some(element)
    })
}

/// Appends one element in byte form.
///
/// Elements of 4 GiB and more cannot be expressed; the caller bounds its messages far below that.
pub fn push(out: &mut Vec<u8>, element: &[u8]) {
    out.extend_from_slice(&(element.len() as u32).to_le_bytes());
    out.extend_from_slice(element);
}

#[cfg(test)]
#[path = "strings_tests.rs"]
mod tests;
