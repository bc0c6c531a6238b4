//! Serialized protobuf, field by field. A protobuf library would be most of the plugin's size.

/// A field as it lies in its message.
pub struct Field<'a> {
    pub number: u64,
    pub value: Value<'a>,
    /// Key and value.
    pub raw: &'a [u8],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    Varint(u64),
    Fixed,
    Bytes(&'a [u8]),
}

/// The fields of a message, in order; ends at the first byte that makes no sense.
#[derive(Clone)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let start = self.0;
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            5 => self.take(4).map(|_| Value::Fixed)?,
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            _ => return None,
        };
        Some(Field { number: key >> 3, value, raw: &start[..start.len() - self.0.len()] })
    }
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for at in 0..10 {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// Contents of every field of that number that is a text or a message.
    pub fn all(self, number: u64) -> impl Iterator<Item = &'a [u8]> {
        self.filter_map(move |field| match field.value {
            Value::Bytes(bytes) if field.number == number => Some(bytes),
            _ => None,
        })
    }

    /// The last of them as text; empty if there is none.
    pub fn text(self, number: u64) -> String {
        self.all(number)
            .last()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .unwrap_or_default()
    }

    /// The last number of that field, 0 if there is none.
    pub fn number(self, number: u64) -> u64 {
        let of = |field: Field<'_>| match field.value {
            Value::Varint(value) if field.number == number => Some(value),
            _ => None,
        };
        self.filter_map(of).last().unwrap_or(0)
    }
}

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn put_bytes(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    put_varint(out, number << 3 | 2);
    put_varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

pub fn put_number(out: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(out, number << 3);
    put_varint(out, value);
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
