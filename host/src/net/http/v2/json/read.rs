//! Reading JSON text. Arrays and objects stay unread until somebody walks over them: a tensor is never
//! expanded into a tree, and nothing is kept of what nobody asks for. A whole text is checked for its
//! syntax once.

mod text; // strings

use crate::error::{Error, Result};
use std::borrow::Cow;

/// Arrays and objects inside each other.
const MAX_DEPTH: usize = 100;
/// Members of all objects outside of arrays together: a bound on the parameters that a hostile text can
/// make us remember.
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

/// The text of an object that is well formed.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a>(&'a [u8]);

/// Of an object, the first members of the names that were asked for. What is no object has none.
pub type Picked<'a, const N: usize> = [Option<Value<'a>>; N];

/// Reads a whole text.
///
/// # Errors
/// Malformed text is INTERNAL, as the JSON layer of v2 has it; too deep nesting is the caller's mistake.
pub fn parse(text: &[u8]) -> Result<Value<'_>> {
    whole(text, |reader| reader.value(0))
}

/// Reads a whole text and picks the members `names` of it.
///
/// # Errors
/// As of [`parse`].
pub fn pick<'a, const N: usize>(text: &'a [u8], names: [&str; N]) -> Result<Picked<'a, N>> {
    whole(text, |reader| reader.pick(0, names))
}

fn whole<'a, T>(text: &'a [u8], read: impl FnOnce(&mut Reader<'a>) -> Result<T>) -> Result<T> {
    let mut reader = Reader::new(text);
    if text.starts_with(b"\xef\xbb\xbf") {
        reader.at = 3;
    }
    if reader.peek().is_none() {
        return reader.fault("The document is empty.");
    }
    let value = read(&mut reader)?;
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
        self.each(|reader| reader.value(1))
    }

    /// Of every element, the members `names`.
    pub fn picks<const N: usize>(
        self,
        names: [&str; N],
    ) -> impl Iterator<Item = Result<Picked<'a, N>>> {
        self.each(move |reader| reader.pick(1, names))
    }

    fn each<T>(
        self,
        mut read: impl FnMut(&mut Reader<'a>) -> Result<T>,
    ) -> impl Iterator<Item = Result<T>> {
        let mut reader = Reader::new(&self.0[1..]);
        std::iter::from_fn(move || {
            if reader.peek() == Some(b',') {
                reader.at += 1;
            }
            match reader.peek() {
                None | Some(b']') => None,
                Some(_) => Some(read(&mut reader)),
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
    /// Members in their order.
    pub fn members(self) -> impl Iterator<Item = Result<(Cow<'a, [u8]>, Value<'a>)>> {
        let mut reader = Reader::new(&self.0[1..]);
        std::iter::from_fn(move || {
            if reader.peek() == Some(b',') {
                reader.at += 1;
            }
            (reader.peek() == Some(b'"')).then(|| Ok((reader.key()?, reader.value(1)?)))
        })
    }

    /// The first members of these names.
    pub fn pick<const N: usize>(self, names: [&str; N]) -> Result<Picked<'a, N>> {
        Reader::new(self.0).pick(1, names)
    }

    /// The first member of that name.
    pub fn get(self, name: &str) -> Result<Option<Value<'a>>> {
        self.pick([name]).map(|[value]| value)
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
                let start = self.at;
                self.members(depth, |reader, _| reader.counted(depth + 1).map(drop))?;
                Value::Object(Object(&self.text[start..self.at]))
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

    /// The members `names` of the object that comes next; goes past whatever it is.
    fn pick<const N: usize>(&mut self, depth: usize, names: [&str; N]) -> Result<Picked<'a, N>> {
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

    /// The value of a member.
    fn counted(&mut self, depth: usize) -> Result<Value<'a>> {
        self.members += 1;
        if self.members > MAX_MEMBERS {
            return self.fault("Too many object members.");
        }
        self.value(depth)
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

    /// The name of a member, and the colon behind it.
    fn key(&mut self) -> Result<Cow<'a, [u8]>> {
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
