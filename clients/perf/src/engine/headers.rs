//! HPACK: the headers of our calls, and what the server's say.
//!
//! We set SETTINGS_HEADER_TABLE_SIZE to 0, so that each header block of the server can be read by itself, and equal blocks mean
//! equal headers: a block that was seen before is recognised by its bytes. Our own headers are the same in each call; the second
//! call on a connection names them by their index in the server's table, as real clients do.

use loona_hpack::Decoder;

/// Indexes of the static table.
const METHOD_POST: u8 = 0x83;
const SCHEME_HTTP: u8 = 0x86;
const FIRST_DYNAMIC: u64 = 62;
/// "Dynamic table size update" to 0.
const NO_TABLE: u8 = 0x20;
/// Overhead of an entry in the table.
const ENTRY: usize = 32;
const DEFAULT_TABLE: u32 = 4096;
/// Blocks that are remembered. A `date` header makes a new one each second.
const REMEMBERED: usize = 8;

/// The header blocks of a call.
#[derive(Debug)]
pub struct CallHeaders {
    /// Without the table.
    literal: Vec<u8>,
    /// Fills the table.
    first: Vec<u8>,
    /// Refers to the table.
    indexed: Vec<u8>,
    fits: bool,
}

/// What a connection's server knows about its header table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Its settings have not arrived.
    Unknown,
    /// It is smaller than the default, which the next block must acknowledge.
    Shrunk,
    Unused,
    Empty,
    Filled,
}

impl CallHeaders {
    pub fn new(path: &str, authority: &str, more: &[(String, String)]) -> Self {
        let mut fields: Vec<(&str, &str)> = vec![
            (":path", path),
            (":authority", authority),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", concat!("trtserver-perf/", env!("CARGO_PKG_VERSION"))),
        ];
        fields.extend(more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let start = || vec![METHOD_POST, SCHEME_HTTP];
        let literal = |kind: u8| {
            fields.iter().fold(start(), |mut out, (name, value)| {
                out.push(kind);
                string(&mut out, name);
                string(&mut out, value);
                out
            })
        };
        // The newest entry has the lowest index.
        let indexed = (0..fields.len() as u64).rev().fold(start(), |mut out, age| {
            integer(&mut out, 0x80, 7, FIRST_DYNAMIC + age);
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
    pub fn write(&self, table: &mut Table, out: &mut Vec<u8>) {
        match table {
            Table::Empty if self.fits => {
                *table = Table::Filled;
                out.extend_from_slice(&self.first);
            }
            Table::Filled => out.extend_from_slice(&self.indexed),
            Table::Shrunk => {
                *table = Table::Unused;
                out.push(NO_TABLE);
                out.extend_from_slice(&self.literal);
            }
            Table::Unknown | Table::Unused | Table::Empty => out.extend_from_slice(&self.literal),
        }
    }
}

impl Table {
    /// The server's settings have arrived, with this SETTINGS_HEADER_TABLE_SIZE if it was among them.
    pub fn settings(&mut self, size: Option<u32>) {
        *self = match (*self, size.unwrap_or(DEFAULT_TABLE) < DEFAULT_TABLE) {
            (_, true) => Table::Shrunk,
            (Table::Unknown, false) => Table::Empty,
            (known, false) => known,
        };
    }
}

fn string(out: &mut Vec<u8>, text: &str) {
    integer(out, 0, 7, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// An integer with a prefix of `bits` bits (RFC 7541, 5.1).
fn integer(out: &mut Vec<u8>, pattern: u8, bits: u32, mut value: u64) {
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

/// What a header block says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderInfo {
    pub http_status: Option<u16>,
    pub grpc_status: Option<u32>,
    pub message: String,
}

/// Reads the header blocks of a server.
#[derive(Debug, Default)]
pub struct HeaderReader {
    known: Vec<(Vec<u8>, HeaderInfo)>,
    next: usize,
}

impl HeaderReader {
    /// # Errors
    /// The block is invalid, or refers to a table.
    pub fn read(&mut self, block: &[u8]) -> Result<&HeaderInfo, String> {
        let at = match self.known.iter().position(|(known, _)| known == block) {
            Some(at) => at,
            None => {
                let entry = (block.to_vec(), decode(block)?);
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

fn decode(block: &[u8]) -> Result<HeaderInfo, String> {
    let mut decoder = Decoder::new();
    let headers = decoder
        .decode(block)
        .map_err(|e| format!("the headers of a response cannot be decoded: {e:?}"))?;
    let mut info = HeaderInfo::default();
    for (name, value) in headers {
        let text = String::from_utf8_lossy(&value);
        match &name[..] {
            b":status" => info.http_status = text.parse().ok(),
            b"grpc-status" => info.grpc_status = Some(text.parse().unwrap_or(u32::MAX)),
            b"grpc-message" => info.message = percent_decoded(&value),
            _ => {}
        }
    }
    Ok(info)
}

fn percent_decoded(value: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        let code = value.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(code) if byte == b'%' => {
                bytes.push(code);
                at += 3;
            }
            _ => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
