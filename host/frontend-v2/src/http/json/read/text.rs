//! Strings and their escape sequences.

use super::{JsonReader, Result};
use std::borrow::Cow;
use trtserver_base::budget::out_of_memory;

/// Longest character of an escape sequence, in UTF-8.
const MAX_ESCAPED: usize = 4;

/// How many bytes come before the first one that is special in a string: a quotation mark, a
/// backslash, a control character. Looks at eight bytes at a time.
pub fn ordinary_bytes(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // The highest bit of a byte is set where the byte is zero, or possibly above such a byte.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut at = 0;
    let mut words = text.chunks_exact(8);
    for word in &mut words {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let special = controls
            | zeros(word ^ (ONES * u64::from(b'"')))
            | zeros(word ^ (ONES * u64::from(b'\\')));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let rest = words.remainder();
    at + rest.iter().position(is_special).unwrap_or(rest.len())
}

impl<'a> JsonReader<'a> {
    /// Reads a string from its opening quotation mark on.
    pub fn string(&mut self) -> Result<Cow<'a, [u8]>> {
        self.at += 1;
        let mut start = self.at;
        let mut owned: Option<Vec<u8>> = None;
        loop {
            self.at += ordinary_bytes(&self.text[self.at..]);
            match self.text.get(self.at) {
                Some(b'"') => {
                    let piece = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(piece),
                        Some(mut text) => {
                            if text.try_reserve(piece.len()).is_err() {
                                return Err(out_of_memory("a JSON string", piece.len()));
                            }
                            text.extend_from_slice(piece);
                            Cow::Owned(text)
                        }
                    });
                }
                Some(b'\\') => {
                    let text = owned.get_or_insert_default();
                    let piece = &self.text[start..self.at];
                    if text.try_reserve(piece.len() + MAX_ESCAPED).is_err() {
                        return Err(out_of_memory("a JSON string", text.len() + piece.len()));
                    }
                    text.extend_from_slice(piece);
                    let slash = self.at;
                    self.at += 1;
                    let c = match self.escape() {
                        Ok(c) => c,
                        Err(reason) => {
                            self.at = slash;
                            return self.fault(reason);
                        }
                    };
                    text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    start = self.at;
                }
                Some(1..) => return self.fault("Invalid escape character in string."),
                Some(0) | None => return self.fault("Missing a closing quotation mark in string."),
            }
        }
    }

    /// The character after a backslash, or the reason why it is invalid.
    fn escape(&mut self) -> std::result::Result<char, &'static str> {
        const SURROGATES: &str = "The surrogate pair in string is invalid.";
        const DIGITS: &str = "Incorrect hex digit after \\u escape in string.";
        let byte = self.text.get(self.at).copied();
        self.at += 1;
        Ok(match byte {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let mut code = self.hex().ok_or(DIGITS)?;
                if (0xd800..0xdc00).contains(&code) {
                    if !self.text[self.at..].starts_with(b"\\u") {
                        return Err(SURROGATES);
                    }
                    self.at += 2;
                    let low = self.hex().ok_or(DIGITS)?;
                    if !(0xdc00..0xe000).contains(&low) {
                        return Err(SURROGATES);
                    }
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                }
                char::from_u32(code).ok_or(SURROGATES)?
            }
            _ => return Err("Invalid escape character in string."),
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let code = digits.iter().try_fold(0, |n, b| Some(n * 16 + (*b as char).to_digit(16)?))?;
        self.at += 4;
        Some(code)
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
