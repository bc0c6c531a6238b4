//! JSON values. Arrays and objects keep their text; `lazy.rs` reads what is in it.

use std::borrow::Cow;

/// A JSON value; `'a` is the text.
#[derive(Debug)]
pub enum JsonValue<'a> {
    Null,
    Bool(bool),
    /// The token as written, `NaN` and `-Infinity` included.
    Number(&'a [u8]),
    String(Cow<'a, [u8]>),
    Array(JsonArray<'a>),
    Object(Object<'a>),
}

/// The text of a well-formed array.
#[derive(Clone, Copy, Debug)]
pub struct JsonArray<'a>(pub(super) &'a [u8]);

impl JsonArray<'_> {
    /// The same array of the same text.
    pub(super) fn is(self, other: JsonArray<'_>) -> bool {
        std::ptr::eq(self.0.as_ptr(), other.0.as_ptr())
    }
}

/// The text of a well-formed object.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a>(pub(super) &'a [u8]);

/// The first member of each requested name. A value that is not an object has none.
pub type PickedMembers<'a, const N: usize> = [Option<JsonValue<'a>>; N];
