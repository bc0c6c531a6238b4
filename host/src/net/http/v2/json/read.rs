//! Reading JSON text. Arrays stay unread until somebody walks over them, so that a tensor is never
//! expanded into a tree; a whole text is checked for its syntax once.

mod text; // strings

use crate::error::{Error, Result};
use std::borrow::Cow;

/// Arrays and objects inside each other.
const MAX_DEPTH: usize = 100;
/// Members of all objects together: a bound on what a hostile text can make us remember.
const MAX_MEMBERS: usize = 1 << 16;

/// A JSON value; `'a` is the text.
#[derive(Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    /// The token as written, `NaN` and `-Infinity` included.
    Number(&'a [u8]),
    String(Cow<'a, [u8]>),
    Array(Array<'a>),
    Object(Object<'a>),
}

/// The text of an array that is well formed.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a>(&'a [u8]);

/// Members in their order.
#[derive(Debug, Default)]
pub struct Object<'a>(pub Vec<(Cow<'a, [u8]>, Value<'a>)>);

/// Reads a whole text.
///
/// # Errors
/// Malformed text is INTERNAL, as the JSON layer of v2 has it; too deep nesting is the caller's mistake.
pub fn parse(text: &[u8]) -> Result<Value<'_>> {
    let mut reader = Reader::new(text);
    if text.starts_with(b"\xef\xbb\xbf") {
        reader.at = 3;
    }
    if reader.peek().is_none() {
        return reader.fault("The document is empty.");
    }
    let value = reader.value(0)?;
    match reader.peek() {
        // Callers in C send the terminator of their string now and then.
        None | Some(0) => Ok(value),
        Some(_) => reader.fault("The document root must not be followed by other values."),
    }
}

impl<'a> Array<'a> {
    /// The text between, and with, the brackets.
    pub fn text(self) -> &'a [u8] {
        self.0
    }

    pub fn elements(self) -> impl Iterator<Item = Result<Value<'a>>> {
        let mut reader = Reader::new(&self.0[1..]);
        std::iter::from_fn(move || {
            if reader.peek() == Some(b',') {
                reader.at += 1;
            }
            match reader.peek() {
                None | Some(b']') => None,
                Some(_) => Some(reader.value(1)),
            }
        })
    }

    /// Calls `each` with every value that is no array, however deep it lies.
    pub fn flat(self, mut each: impl FnMut(Value<'a>) -> Result<()>) -> Result<()> {
        let mut reader = Reader::new(self.0);
        while let Some(byte) = reader.peek() {
            match byte {
                b'[' | b']' | b',' => reader.at += 1,
                _ => each(reader.value(1)?)?,
            }
        }
        Ok(())
    }
}

impl<'a> Object<'a> {
    /// The first member of that name.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.0.iter().find(|(key, _)| key.as_ref() == name.as_bytes()).map(|(_, value)| value)
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    members: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, members: 0 }
    }

    #[cold]
    fn fault<T>(&self, reason: &str) -> Result<T> {
        Err(Error::internal(format!(
            "failed to parse the request JSON buffer: {reason} at {}",
            self.at
        )))
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    fn value(&mut self, depth: usize) -> Result<Value<'a>> {
        Ok(match self.peek() {
            Some(b'{') => {
                let mut members = Vec::new();
                self.members(depth, |reader, key| {
                    reader.members += 1;
                    if reader.members > MAX_MEMBERS {
                        return reader.fault("Too many object members.");
                    }
                    members.push((key, reader.value(depth + 1)?));
                    Ok(())
                })?;
                Value::Object(Object(members))
            }
            Some(b'[') => {
                let start = self.at;
                self.skip(depth)?;
                Value::Array(Array(&self.text[start..self.at]))
            }
            Some(b'"') => Value::String(self.string()?),
            Some(b't') => self.word("true").map(|()| Value::Bool(true))?,
            Some(b'f') => self.word("false").map(|()| Value::Bool(false))?,
            Some(b'n') => self.word("null").map(|()| Value::Null)?,
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => Value::Number(self.number()?),
            _ => return self.fault("Invalid value."),
        })
    }

    /// Checks a value and goes past it.
    fn skip(&mut self, depth: usize) -> Result<()> {
        match self.peek() {
            Some(b'{') => self.members(depth, |reader, _| reader.skip(depth + 1)),
            Some(b'[') => {
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

    /// An object; `each` reads the value behind every key.
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
            if self.peek() != Some(b'"') {
                return self.fault("Missing a name for object member.");
            }
            let key = self.string()?;
            if self.peek() != Some(b':') {
                return self.fault("Missing a colon after a name of object member.");
            }
            self.at += 1;
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

    fn word(&mut self, word: &str) -> Result<()> {
        let pairs = self.text[self.at..].iter().zip(word.as_bytes());
        let same = pairs.take_while(|(got, want)| got == want).count();
        self.at += same;
        if same == word.len() { Ok(()) } else { self.fault("Invalid value.") }
    }

    fn number(&mut self) -> Result<&'a [u8]> {
        let start = self.at;
        self.at += usize::from(self.text[self.at] == b'-');
        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.at += self.digits(),
            Some(b'N') => {
                self.word("NaN")?;
                return Ok(&self.text[start..self.at]);
            }
            Some(b'I') => {
                self.word("Inf")?;
                if self.text.get(self.at) == Some(&b'i') {
                    self.word("inity")?;
                }
                return Ok(&self.text[start..self.at]);
            }
            _ => return self.fault("Invalid value."),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            match self.digits() {
                0 => return self.fault("Miss fraction part in number."),
                count => self.at += count,
            }
        }
        let mut exponent = 0;
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            exponent = self.digits();
            if exponent == 0 {
                return self.fault("Miss exponent in number.");
            }
            self.at += exponent;
        }
        let token = &self.text[start..self.at];
        // Only these can be out of range.
        if (exponent > 2 || token.len() > 300) && !is_finite(token) {
            self.at = start;
            return self.fault("Number too big to be stored in double.");
        }
        Ok(token)
    }

    /// How many digits come next.
    fn digits(&self) -> usize {
        self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count()
    }
}

fn is_finite(token: &[u8]) -> bool {
    std::str::from_utf8(token).ok().and_then(|t| t.parse::<f64>().ok()).is_some_and(f64::is_finite)
}
