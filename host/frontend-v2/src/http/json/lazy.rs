//! Elements of arrays and members of objects, read when they are used. The syntax was checked when
//! the value was read.

use super::read::JsonReader;
use super::value::{JsonArray, JsonValue, Object, PickedMembers};
use std::borrow::Cow;
use trtserver_base::error::Result;

impl<'a> JsonArray<'a> {
    /// The text with its brackets.
    pub fn text(self) -> &'a [u8] {
        self.0
    }

    pub fn elements(self) -> impl Iterator<Item = Result<JsonValue<'a>>> {
        self.each(1, |reader| reader.value(1))
    }

    /// The members `names` of every element.
    pub fn picks<const N: usize>(
        self,
        names: [&str; N],
    ) -> impl Iterator<Item = Result<PickedMembers<'a, N>>> {
        self.picks_from(1, names)
    }

    /// The members `names` of the elements from the position `at` of its text on.
    pub fn picks_from<const N: usize>(
        self,
        at: usize,
        names: [&str; N],
    ) -> impl Iterator<Item = Result<PickedMembers<'a, N>>> {
        self.each(at, move |reader| reader.pick(1, names))
    }

    fn each<T>(
        self,
        at: usize,
        mut read: impl FnMut(&mut JsonReader<'a>) -> Result<T>,
    ) -> impl Iterator<Item = Result<T>> {
        let mut reader = JsonReader::new(&self.0[at..]);
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

    /// Calls `each` with every value that is not an array, at any depth.
    pub fn flat(self, mut each: impl FnMut(JsonValue<'a>) -> Result<()>) -> Result<()> {
        let mut reader = JsonReader::new(self.0);
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
    pub fn members(self) -> impl Iterator<Item = Result<(Cow<'a, [u8]>, JsonValue<'a>)>> {
        let mut reader = JsonReader::new(&self.0[1..]);
        std::iter::from_fn(move || {
            if reader.peek() == Some(b',') {
                reader.at += 1;
            }
            (reader.peek() == Some(b'"')).then(|| Ok((reader.key()?, reader.value(1)?)))
        })
    }

    /// The first members of these names.
    pub fn pick<const N: usize>(self, names: [&str; N]) -> Result<PickedMembers<'a, N>> {
        JsonReader::new(self.0).pick(1, names)
    }

    /// The first member of that name.
    pub fn get(self, name: &str) -> Result<Option<JsonValue<'a>>> {
        self.pick([name]).map(|[value]| value)
    }
}
