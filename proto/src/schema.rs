//! What the proto files say, as tables made at build time: looking a field up costs no start-up
//! work, no lock and no allocation, which matters because v1 requests carry text.

/// A message type.
pub struct MessageSchema {
    /// Without the package: `ModelSequenceBatching.Control`.
    pub name: &'static str,
    /// Made up by the compiler for one entry of a map: `key` is 1, `value` is 2.
    pub map_entry: bool,
    /// By number; at most 64.
    pub fields: &'static [FieldSchema],
}

/// A field of a message.
pub struct FieldSchema {
    pub name: &'static str,
    pub number: u32,
    pub kind: FieldKind,
    /// Lists and maps.
    pub repeated: bool,
    pub oneof: Option<&'static str>,
}

/// The kinds our files use; the build refuses any other.
#[derive(Clone, Copy)]
pub enum FieldKind {
    Double,
    Float,
    Int64,
    UInt64,
    Int32,
    UInt32,
    Bool,
    String,
    Bytes,
    Message(&'static MessageSchema),
    Enum(&'static Enum),
}

/// An enum type, with its values in the order of the file.
pub struct Enum {
    pub name: &'static str,
    pub values: &'static [(&'static str, i32)],
}

/// A generated top-level message, which knows its own schema.
pub trait Described: prost::Message + Default {
    fn schema() -> &'static MessageSchema;
}

impl MessageSchema {
    /// The field of that name, and its place in `fields`.
    pub fn field(&self, name: &str) -> Option<(usize, &'static FieldSchema)> {
        self.fields.iter().enumerate().find(|(_, f)| f.name == name)
    }
}

impl FieldSchema {
    /// The entry type, if this is a map.
    pub fn map(&self) -> Option<&'static MessageSchema> {
        match self.kind {
            FieldKind::Message(entry) if entry.map_entry => Some(entry),
            _ => None,
        }
    }
}

impl Enum {
    pub fn number(&self, name: &str) -> Option<i32> {
        self.values.iter().find(|v| v.0 == name).map(|v| v.1)
    }

    pub fn value_name(&self, number: i32) -> Option<&'static str> {
        self.values.iter().find(|v| v.1 == number).map(|v| v.0)
    }
}

// Not every enum is the type of a field; some only name the bits of one.
#[allow(dead_code)]
mod tables {
    use super::{Described, Enum, FieldKind, FieldSchema, MessageSchema};
    include!(concat!(env!("OUT_DIR"), "/schema.rs"));
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
