//! HPACK: the headers of our calls, and what the server's say.
//!
//! We set SETTINGS_HEADER_TABLE_SIZE to 0, so that each header block of the server can be read by
//! itself, and equal blocks mean equal headers: a block that was seen before is recognised by its
//! bytes. Our own headers are the same in each call; the second call on a connection names them by
//! their index in the server's table, as real clients do.

use loona_hpack::Decoder;

/// Indexes of the static table.
const METHOD_POST: u8 = 0x83;
const SCHEME_HTTP: u8 = 0x86;
const SCHEME_HTTPS: u8 = 0x87;
const FIRST_DYNAMIC: u64 = 62;
/// "Dynamic table size update" to 0.
const NO_TABLE: u8 = 0x20;
/// Size updates to 0 and to [`DEFAULT_TABLE`].
const CLEARED: [u8; 4] = [NO_TABLE, 0x3f, 0xe1, 0x1f];
/// Overhead of an entry in the table.
const ENTRY: usize = 32;
const DEFAULT_TABLE: u32 = 4096;
/// Blocks that are remembered. A `date` header makes a new one each second.
const REMEMBERED: usize = 8;

/// The header blocks of a call.
#[derive(Debug)]
pub struct CallHeaders {
    /// Header block that does not use the table.
    literal: Vec<u8>,
    /// Fills the table.
    first: Vec<u8>,
    /// Refers to the table.
    indexed: Vec<u8>,
    fits: bool,
}

/// What a connection's server knows about its header table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderTable {
    /// The settings of the server have not arrived.
    Unknown,
    /// It is smaller than the default, which the next block must acknowledge.
    Shrunk,
    Unused,
    Empty,
    /// It has the headers of the last call.
    Filled,
    /// It has other headers than those of the next call.
    Stale,
}

impl CallHeaders {
    /// `more` are fields with names in lower case.
    #[must_use]
    pub fn new<'a>(
        tls: bool,
        path: &'a str,
        authority: &'a str,
        agent: &'a str,
        more: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut fields: Vec<(&str, &str)> = vec![
            (":path", path),
            (":authority", authority),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", agent),
        ];
        fields.extend(more);
        let start = || vec![METHOD_POST, if tls { SCHEME_HTTPS } else { SCHEME_HTTP }];
        let literal = |kind: u8| {
            fields.iter().fold(start(), |mut out, (name, value)| {
                out.push(kind);
                put_string(&mut out, name);
                put_string(&mut out, value);
                out
            })
        };
        // The newest entry has the lowest index.
        let indexed = (0..fields.len() as u64).rev().fold(start(), |mut out, age| {
            put_integer(&mut out, 0x80, 7, FIRST_DYNAMIC + age);
            out
        });
        let size: usize = fields.iter().map(|(name, value)| name.len() + value.len() + ENTRY).sum();
        CallHeaders {
            literal: literal(0x00),
            first: literal(0x40),
            indexed,
            fits: size <= DEFAULT_TABLE as usize,
        }
    }

    /// Appends the block for the next call.
    pub fn write(&self, table: &mut HeaderTable, out: &mut Vec<u8>) {
        match table {
            HeaderTable::Empty if self.fits => {
                *table = HeaderTable::Filled;
                out.extend_from_slice(&self.first);
            }
            HeaderTable::Filled => out.extend_from_slice(&self.indexed),
            HeaderTable::Shrunk => {
                *table = HeaderTable::Unused;
                out.push(NO_TABLE);
                out.extend_from_slice(&self.literal);
            }
            HeaderTable::Stale if self.fits => {
                *table = HeaderTable::Filled;
                out.extend_from_slice(&CLEARED);
                out.extend_from_slice(&self.first);
            }
            HeaderTable::Unknown
            | HeaderTable::Unused
            | HeaderTable::Empty
            | HeaderTable::Stale => {
                out.extend_from_slice(&self.literal);
            }
        }
    }
}

impl HeaderTable {
    /// The server's settings have arrived, with this SETTINGS_HEADER_TABLE_SIZE if it was among
    /// them.
    pub fn settings(&mut self, size: Option<u32>) {
        *self = match (*self, size.unwrap_or(DEFAULT_TABLE) < DEFAULT_TABLE) {
            (_, true) => HeaderTable::Shrunk,
            (HeaderTable::Unknown, false) => HeaderTable::Empty,
            (known, false) => known,
        };
    }

    /// The next call has other headers than the last one.
    pub fn headers_changed(&mut self) {
        if *self == HeaderTable::Filled {
            *self = HeaderTable::Stale;
        }
    }
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    put_integer(out, 0, 7, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// An integer with a prefix of `bits` bits (RFC 7541, 5.1).
fn put_integer(out: &mut Vec<u8>, pattern: u8, bits: u32, mut value: u64) {
    let most = (1 << bits) - 1;
    if value < most {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | most as u8);
    value -= most;
    while value >= 128 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// What is kept of a header block.
pub trait HeaderBlock: Default {
    /// Takes one field.
    fn take(&mut self, name: &[u8], value: &[u8]);
}

/// Reads the header blocks of a server.
#[derive(Debug)]
pub struct HeaderReader<B> {
    known: Vec<(Vec<u8>, B)>,
    next: usize,
}

impl<B> Default for HeaderReader<B> {
    fn default() -> Self {
        HeaderReader { known: Vec::new(), next: 0 }
    }
}

impl<B: HeaderBlock> HeaderReader<B> {
    /// # Errors
    /// The block is invalid, or refers to a table.
    pub fn read(&mut self, block: &[u8]) -> Result<&B, String> {
        let at = match self.known.iter().position(|(known, _)| known == block) {
            Some(at) => at,
            None => {
                let entry = (block.to_vec(), decode_block(block)?);
                if self.known.len() < REMEMBERED {
                    self.known.push(entry);
                    self.known.len() - 1
                } else {
                    self.next = (self.next + 1) % REMEMBERED;
                    self.known[self.next] = entry;
                    self.next
                }
            }
        };
        Ok(&self.known[at].1)
    }
}

fn decode_block<B: HeaderBlock>(block: &[u8]) -> Result<B, String> {
    let mut decoder = Decoder::new();
    let headers = decoder
        .decode(block)
        .map_err(|e| format!("the headers of a response cannot be decoded: {e:?}"))?;
    let mut found = B::default();
    headers.iter().for_each(|(name, value)| found.take(name, value));
    Ok(found)
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
