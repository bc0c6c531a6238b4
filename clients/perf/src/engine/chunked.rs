//! Bodies with `Transfer-Encoding: chunked` (RFC 9112, 7.1).

/// A line of a size with its extensions, or of a trailer, may be this long.
const MAX_LINE: usize = 8 * 1024;

#[derive(Debug, Default)]
pub struct ChunkedReader {
    state: ChunkState,
    /// A line that has not arrived whole.
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum ChunkState {
    #[default]
    Size,
    /// Bytes of the chunk that are left.
    Data(usize),
    /// The end of line after a chunk.
    DataEnd,
    Trailer,
}

impl ChunkedReader {
    /// Calls `each` with the parts of the body; true after its last byte.
    ///
    /// # Errors
    /// The bytes are not chunks, or more follow.
    pub fn read(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) -> Result<bool, String> {
        while !bytes.is_empty() {
            if let ChunkState::Data(left) = self.state {
                let (now, rest) = bytes.split_at(left.min(bytes.len()));
                each(now);
                bytes = rest;
                let left = left - now.len();
                self.state = if left > 0 { ChunkState::Data(left) } else { ChunkState::DataEnd };
                continue;
            }
            let end = memchr::memchr(b'\n', bytes);
            let (now, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            self.line.extend_from_slice(now);
            bytes = rest;
            if self.line.len() > MAX_LINE {
                return Err(format!("a line of the chunked response exceeds {MAX_LINE} bytes"));
            }
            if end.is_some() && self.end_of_line()? {
                return match bytes.is_empty() {
                    true => Ok(true),
                    false => Err("the server sent more bytes than its chunks".to_owned()),
                };
            }
        }
        Ok(false)
    }

    /// True after the last line of the body.
    fn end_of_line(&mut self) -> Result<bool, String> {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_ascii_end();
        let wrong = |what: &str| Err(format!("{what}: {:?}", String::from_utf8_lossy(text)));
        self.state = match self.state {
            ChunkState::DataEnd if text.is_empty() => ChunkState::Size,
            ChunkState::DataEnd | ChunkState::Data(_) => {
                return wrong("a chunk of the response is longer than its size");
            }
            ChunkState::Trailer if text.is_empty() => return Ok(true),
            ChunkState::Trailer => ChunkState::Trailer,
            ChunkState::Size => {
                let digits = text.split(|byte| *byte == b';').next().unwrap_or_default();
                let digits = std::str::from_utf8(digits.trim_ascii()).unwrap_or_default();
                // `from_str_radix` takes a sign.
                let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                match usize::from_str_radix(digits, 16) {
                    Ok(0) if plain => ChunkState::Trailer,
                    Ok(size) if plain => ChunkState::Data(size),
                    _ => return wrong("not the size of a chunk of the response"),
                }
            }
        };
        Ok(false)
    }
}
