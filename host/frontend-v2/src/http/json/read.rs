//! Reads JSON lazily: the syntax of a text is checked once, values are read when they are used
//! (`lazy.rs`). A tensor is never expanded into a tree.

mod number;
mod text;

pub use text::ordinary_bytes;

use super::value::{JsonArray, JsonValue, Object, PickedMembers};
use std::borrow::Cow;
use trtserver_base::error::{Error, Result};

/// Nesting of arrays and objects.
pub const MAX_DEPTH: usize = 100;
/// Members of all objects outside of arrays: bounds the memory that the parameters of a hostile
/// text take.
const MAX_MEMBERS: usize = 1 << 16;

/// Reads a whole text.
///
/// # Errors
/// INTERNAL for malformed text, as in the JSON layer of v2; INVALID_ARG for nesting that is too
/// deep.
pub fn parse_json(text: &[u8]) -> Result<JsonValue<'_>> {
    read_whole(text, |reader| reader.value(0))
}

/// Reads a whole text and picks its members `names`.
///
/// # Errors
/// The errors of [`parse_json`].
pub fn pick_members<'a, const N: usize>(
    text: &'a [u8],
    names: [&str; N],
) -> Result<PickedMembers<'a, N>> {
    read_whole(text, |reader| reader.pick(0, names))
}

/// Reads a whole text, whose root `read` reads.
pub fn read_whole<'a, T>(
    text: &'a [u8],
    read: impl FnOnce(&mut JsonReader<'a>) -> Result<T>,
) -> Result<T> {
    let mut reader = JsonReader::new(text);
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

/// A position in a text.
pub struct JsonReader<'a> {
    text: &'a [u8],
    pub at: usize,
    members: usize,
}

impl<'a> JsonReader<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, members: 0 }
    }

    /// The text from the position on.
    pub fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
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

    pub fn value(&mut self, depth: usize) -> Result<JsonValue<'a>> {
        Ok(match self.peek() {
            Some(b'{') => {
                let start = self.at;
                self.members(depth, |reader, _| reader.counted(depth + 1).map(drop))?;
                JsonValue::Object(Object(&self.text[start..self.at]))
            }
            Some(b'[') => JsonValue::Array(self.array(depth, |reader| reader.skip(depth + 1))?),
            Some(b'"') => JsonValue::String(self.string()?),
            Some(b't') => self.literal("true").map(|()| JsonValue::Bool(true))?,
            Some(b'f') => self.literal("false").map(|()| JsonValue::Bool(false))?,
            Some(b'n') => self.literal("null").map(|()| JsonValue::Null)?,
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => JsonValue::Number(self.number()?),
            _ => return self.fault("Invalid value."),
        })
    }

    /// Reads the next value and picks its members `names`.
    pub fn pick<const N: usize>(
        &mut self,
        depth: usize,
        names: [&str; N],
    ) -> Result<PickedMembers<'a, N>> {
        self.pick_by(depth, names, |reader, _, _| reader.counted(depth + 1))
    }

    /// Reads the next value and picks its members `names`, whose values `read` reads. It gets the
    /// number of the name (`None` for members that are not picked), and what was picked before.
    pub fn pick_by<const N: usize>(
        &mut self,
        depth: usize,
        names: [&str; N],
        mut read: impl FnMut(&mut Self, Option<usize>, &PickedMembers<'a, N>) -> Result<JsonValue<'a>>,
    ) -> Result<PickedMembers<'a, N>> {
        let mut picked = [const { None }; N];
        if self.peek() != Some(b'{') {
            return self.value(depth).map(|_| picked);
        }
        self.members(depth, |reader, key| {
            let name = names.iter().position(|name| name.as_bytes() == key.as_ref());
            let name = name.filter(|name| picked[*name].is_none());
            let value = read(reader, name, &picked)?;
            if let Some(name) = name {
                picked[name] = Some(value);
            }
            Ok(())
        })?;
        Ok(picked)
    }

    /// Reads the value of a member that counts against [`MAX_MEMBERS`].
    pub fn counted(&mut self, depth: usize) -> Result<JsonValue<'a>> {
        self.members += 1;
        if self.members > MAX_MEMBERS {
            return self.fault("Too many object members.");
        }
        self.value(depth)
    }

    /// Checks a value and skips it.
    pub fn skip(&mut self, depth: usize) -> Result<()> {
        match self.peek() {
            Some(b'{') => self.members(depth, |reader, _| reader.skip(depth + 1)),
            Some(b'[') => self.array(depth, |reader| reader.skip(depth + 1)).map(drop),
            _ => self.value(depth).map(drop),
        }
    }

    /// Reads an array from its bracket on; `each` reads its elements.
    pub fn array(
        &mut self,
        depth: usize,
        mut each: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<JsonArray<'a>> {
        let start = self.at;
        self.enter(depth)?;
        if self.peek() != Some(b']') {
            loop {
                each(self)?;
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break,
                    _ => return self.fault("Missing a comma or ']' after an array element."),
                }
            }
        }
        self.at += 1;
        Ok(JsonArray(&self.text[start..self.at]))
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

    /// Reads an object from its brace on; `each` reads the value of every key.
    pub fn members(
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
