//! Reads JSON lazily: the syntax of a text is checked once, values are read when they are used (`lazy.rs`). A tensor is never
//! expanded into a tree.
//!
//! The first walk keeps the spans of `data` arrays, so that reading the members of an input does not scan its tensor a
//! second time.

mod number; // number tokens
mod text; // strings

use super::value::{Array, Object, Picked, Value};
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Nesting of arrays and objects.
const MAX_DEPTH: usize = 100;
/// Members of all objects outside of arrays: bounds the memory that the parameters of a hostile text take.
const MAX_MEMBERS: usize = 1 << 16;
/// Depth of `data`: in an object, in the array `inputs`, in the root object.
const SPAN_DEPTH: usize = 3;
/// Spans of shorter arrays are not kept; those arrays are scanned a second time.
const MIN_SPAN: usize = 32;
/// Spans kept of one text. Arrays of further inputs are scanned a second time.
const MAX_SPANS: usize = 8;

/// The long arrays that the first walk over a text found.
#[derive(Default)]
pub struct Spans<'a>(SmallVec<[&'a [u8]; 4]>);

impl<'a> Spans<'a> {
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The span of the array that `text` starts with.
    fn of(&self, text: &[u8]) -> Option<&'a [u8]> {
        self.0.iter().copied().find(|span| std::ptr::eq(span.as_ptr(), text.as_ptr()))
    }
}

/// Reads a whole text.
///
/// # Errors
/// INTERNAL for malformed text, as in the JSON layer of v2; INVALID_ARG for nesting that is too deep.
pub fn parse(text: &[u8]) -> Result<Value<'_>> {
    whole(text, |reader| reader.value(0))
}

/// Reads a whole text and picks its members `names`. The spans are for [`Array::picks`].
///
/// # Errors
/// As of [`parse`].
pub fn pick<'a, const N: usize>(
    text: &'a [u8],
    names: [&str; N],
) -> Result<(Picked<'a, N>, Spans<'a>)> {
    whole(text, |reader| Ok((reader.pick(0, names)?, std::mem::take(&mut reader.found))))
}

fn whole<'a, T>(text: &'a [u8], read: impl FnOnce(&mut Reader<'a, '_>) -> Result<T>) -> Result<T> {
    let mut reader = Reader::new(text);
    if text.starts_with(b"\xef\xbb\xbf") {
        reader.at = 3;
    }
    if reader.peek().is_none() {
        return reader.fault("The document is empty.");
    }
    let value = read(&mut reader)?;
    match reader.peek() {
        // Some clients in C send the terminator of their string.
        None | Some(0) => Ok(value),
        Some(_) => reader.fault("The document root must not be followed by other values."),
    }
}

/// A position in a text, and the spans found up to there.
pub struct Reader<'a, 's> {
    text: &'a [u8],
    pub at: usize,
    members: usize,
    /// Spans of an earlier walk over the same text.
    pub known: Option<&'s Spans<'a>>,
    /// Spans that this walk found.
    found: Spans<'a>,
}

impl<'a> Reader<'a, '_> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, members: 0, known: None, found: Spans::default() }
    }

    #[cold]
    fn fault<T>(&self, reason: &str) -> Result<T> {
        Err(Error::internal(format!(
            "failed to parse the request JSON buffer: {reason} at {}",
            self.at
        )))
    }

    /// The next byte that is not white space.
    pub fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    pub fn value(&mut self, depth: usize) -> Result<Value<'a>> {
        Ok(match self.peek() {
            Some(b'{') => {
                let start = self.at;
                self.members(depth, |reader, _| reader.counted(depth + 1).map(drop))?;
                Value::Object(Object(&self.text[start..self.at]))
            }
            Some(b'[') => {
                let start = self.at;
                if let Some(span) = self.known.and_then(|known| known.of(&self.text[start..])) {
                    self.at += span.len();
                    return Ok(Value::Array(Array(span)));
                }
                self.skip(depth)?;
                Value::Array(Array(&self.text[start..self.at]))
            }
            Some(b'"') => Value::String(self.string()?),
            Some(b't') => self.literal("true").map(|()| Value::Bool(true))?,
            Some(b'f') => self.literal("false").map(|()| Value::Bool(false))?,
            Some(b'n') => self.literal("null").map(|()| Value::Null)?,
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => Value::Number(self.number()?),
            _ => return self.fault("Invalid value."),
        })
    }

    /// Reads the next value and picks its members `names`.
    pub fn pick<const N: usize>(
        &mut self,
        depth: usize,
        names: [&str; N],
    ) -> Result<Picked<'a, N>> {
        let mut picked = [const { None }; N];
        if self.peek() != Some(b'{') {
            return self.value(depth).map(|_| picked);
        }
        self.members(depth, |reader, key| {
            let value = reader.counted(depth + 1)?;
            if let Some(i) = names.iter().position(|name| name.as_bytes() == key.as_ref()) {
                picked[i].get_or_insert(value);
            }
            Ok(())
        })?;
        Ok(picked)
    }

    /// Reads the value of a member that counts against [`MAX_MEMBERS`].
    fn counted(&mut self, depth: usize) -> Result<Value<'a>> {
        self.members += 1;
        if self.members > MAX_MEMBERS {
            return self.fault("Too many object members.");
        }
        self.value(depth)
    }

    /// Checks a value and skips it.
    fn skip(&mut self, depth: usize) -> Result<()> {
        match self.peek() {
            Some(b'{') => self.members(depth, |reader, _| reader.skip(depth + 1)),
            Some(b'[') => {
                let start = self.at;
                self.enter(depth)?;
                if self.peek() == Some(b']') {
                    self.at += 1;
                    return Ok(());
                }
                loop {
                    self.skip(depth + 1)?;
                    match self.peek() {
                        Some(b',') => self.at += 1,
                        Some(b']') => break,
                        _ => {
                            return self.fault("Missing a comma or ']' after an array element.");
                        }
                    }
                }
                self.at += 1;
                if depth == SPAN_DEPTH
                    && self.at - start >= MIN_SPAN
                    && self.found.0.len() < MAX_SPANS
                {
                    self.found.0.push(&self.text[start..self.at]);
                }
                Ok(())
            }
            _ => self.value(depth).map(|_| ()),
        }
    }

    fn enter(&mut self, depth: usize) -> Result<()> {
        if depth >= MAX_DEPTH {
            return Err(Error::invalid(format!(
                "JSON nesting depth exceeds maximum allowed limit ({MAX_DEPTH})"
            )));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads an object; `each` reads the value of every key.
    fn members(
        &mut self,
        depth: usize,
        mut each: impl FnMut(&mut Self, Cow<'a, [u8]>) -> Result<()>,
    ) -> Result<()> {
        self.enter(depth)?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.key()?;
            each(self, key)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.fault("Missing a comma or '}' after an object member."),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Reads the name of a member and its colon.
    pub fn key(&mut self) -> Result<Cow<'a, [u8]>> {
        if self.peek() != Some(b'"') {
            return self.fault("Missing a name for object member.");
        }
        let key = self.string()?;
        if self.peek() != Some(b':') {
            return self.fault("Missing a colon after a name of object member.");
        }
        self.at += 1;
        Ok(key)
    }

    fn literal(&mut self, literal: &str) -> Result<()> {
        let pairs = self.text[self.at..].iter().zip(literal.as_bytes());
        let same = pairs.take_while(|(got, want)| got == want).count();
        self.at += same;
        if same == literal.len() { Ok(()) } else { self.fault("Invalid value.") }
    }
}
