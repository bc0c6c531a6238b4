//! gzip and deflate for both wires, away from the network threads when it takes long.

use flate2::Compression;
use flate2::read::{GzEncoder, MultiGzDecoder, ZlibDecoder, ZlibEncoder};
use std::io::{Read, Result};

/// A content coding. Deflate is the zlib format, as HTTP defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Gzip,
    Deflate,
}

impl Coding {
    pub fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
        }
    }

    /// The coding that `data` begins with.
    pub fn detect(data: &[u8]) -> Self {
        if data.starts_with(&[0x1f, 0x8b]) { Coding::Gzip } else { Coding::Deflate }
    }

    /// Decompresses to at most `limit` bytes and one more, which shows the caller that the limit is exceeded.
    pub fn decompress(self, data: impl Read, limit: u64) -> Result<Vec<u8>> {
        let limit = limit.saturating_add(1);
        let mut out = Vec::new();
        match self {
            Coding::Gzip => MultiGzDecoder::new(data).take(limit).read_to_end(&mut out)?,
            Coding::Deflate => ZlibDecoder::new(data).take(limit).read_to_end(&mut out)?,
        };
        Ok(out)
    }

    pub fn compress(self, data: impl Read) -> Result<Vec<u8>> {
        let level = Compression::default();
        let mut out = Vec::new();
        match self {
            Coding::Gzip => GzEncoder::new(data, level).read_to_end(&mut out)?,
            Coding::Deflate => ZlibEncoder::new(data, level).read_to_end(&mut out)?,
        };
        Ok(out)
    }
}

/// Runs `work` on this thread if it is `short`, else on a blocking thread. `None` if it panicked there.
pub async fn offload<T: Send + 'static>(
    short: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if short {
        return Some(work());
    }
    tokio::task::spawn_blocking(work).await.ok()
}
