//! Makes the `:authority` of gRPC clients on Unix sockets acceptable.
//!
//! gRPC's C core, with which its Python and C++ clients are made, sends the percent-encoded path of
//! the socket, such as `run%2Fgrpc.sock`. No URI may have such an authority, so h2 resets the
//! stream. It sends the header as a plain literal; here each `%` of the value becomes `-` before h2
//! reads the bytes, which changes no length. The server has no use for the value.

const PREFACE: usize = 24;
const FRAME_HEAD: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
/// The name as a literal of HPACK, after its length.
const NAME: &[u8] = b"\x0a:authority";

/// Follows the frames of one connection.
pub struct UnixAuthority {
    /// Bytes that are not looked at: the preface, payloads of other frames.
    skip: usize,
    /// Bytes left of a header block.
    block: usize,
    head: [u8; FRAME_HEAD],
    head_len: usize,
    field: HeaderField,
}

/// Where the reader is in the header `:authority`.
#[derive(Clone, Copy)]
enum HeaderField {
    /// Bytes of the name that were read.
    Name(usize),
    /// The first byte of the value's length is next.
    Length,
    /// Further bytes of the length.
    LongLength { value: usize, shift: u32 },
    /// Bytes left of the value.
    Value(usize),
}

impl Default for UnixAuthority {
    fn default() -> Self {
        let (head, head_len, field) = ([0; FRAME_HEAD], 0, HeaderField::Name(0));
        Self { skip: PREFACE, block: 0, head, head_len, field }
    }
}

impl UnixAuthority {
    /// Changes the bytes that were read next.
    pub fn rewrite(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let wanted = match (self.skip, self.block) {
                (0, 0) => FRAME_HEAD - self.head_len,
                (0, block) => block,
                (skip, _) => skip,
            };
            let count = wanted.min(bytes.len());
            let (part, rest) = std::mem::take(&mut bytes).split_at_mut(count);
            bytes = rest;
            if self.skip > 0 {
                self.skip -= count;
            } else if self.block > 0 {
                self.block -= count;
                part.iter_mut().for_each(|byte| self.field = self.field.next(byte));
            } else {
                self.head[self.head_len..][..count].copy_from_slice(part);
                self.head_len += count;
                if self.head_len == FRAME_HEAD {
                    self.begin_frame();
                }
            }
        }
    }

    fn begin_frame(&mut self) {
        self.head_len = 0;
        let [a, b, c, kind, ..] = self.head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        match kind {
            HEADERS => (self.block, self.field) = (length, HeaderField::Name(0)),
            CONTINUATION => self.block = length,
            _ => self.skip = length,
        }
    }
}

impl HeaderField {
    fn next(self, byte: &mut u8) -> Self {
        match self {
            Self::Name(read) if *byte == NAME[read] => match read + 1 {
                all if all == NAME.len() => Self::Length,
                read => Self::Name(read),
            },
            Self::Name(_) => Self::Name(usize::from(*byte == NAME[0])),
            Self::Length => match *byte {
                // A Huffman code, which these clients do not use.
                0x80.. => Self::Name(0),
                0x7f => Self::LongLength { value: 0x7f, shift: 0 },
                length => Self::value(usize::from(length)),
            },
            Self::LongLength { shift: 21.., .. } => Self::Name(0),
            Self::LongLength { value, shift } => {
                let value = value + (usize::from(*byte & 0x7f) << shift);
                match *byte {
                    0x80.. => Self::LongLength { value, shift: shift + 7 },
                    _ => Self::value(value),
                }
            }
            Self::Value(left) => {
                if *byte == b'%' {
                    *byte = b'-';
                }
                Self::value(left - 1)
            }
        }
    }

    fn value(left: usize) -> Self {
        if left == 0 { Self::Name(0) } else { Self::Value(left) }
    }
}

#[cfg(test)]
#[path = "unix_authority_tests.rs"]
mod tests;
