//! Compression of bodies, with a limit on what they decompress to.

use crate::error::{Error, Result};
use crate::settings::Compression;
use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::{Read, Write};

pub(crate) fn compress_body(how: Compression, body: &[u8]) -> Result<Vec<u8>> {
    let level = flate2::Compression::fast();
    let compressed = match how {
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), level);
            encoder.write_all(body).and_then(|()| encoder.finish())
        }
        Compression::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(body).and_then(|()| encoder.finish())
        }
    };
    compressed.map_err(|e| Error::invalid(format!("the request cannot be compressed: {e}")))
}

/// Decompresses a response whose encoding has this name.
pub(crate) fn decompress_body(encoding: &str, body: Bytes, limit: usize) -> Result<Bytes> {
    let mut decoder: Box<dyn Read> = match encoding {
        "identity" | "" => return Ok(body),
        "gzip" => Box::new(MultiGzDecoder::new(&*body)),
        "deflate" => Box::new(ZlibDecoder::new(&*body)),
        _ => {
            return Err(Error::protocol(format!(
                "the response has the unknown encoding `{encoding}`, expected gzip, deflate or identity"
            )));
        }
    };
    let mut all = Vec::new();
    let mut limited = (&mut decoder).take(limit as u64 + 1);
    limited
        .read_to_end(&mut all)
        .map_err(|e| Error::protocol(format!("the response is not valid {encoding}: {e}")))?;
    if all.len() > limit {
        return Err(Error::protocol(format!(
            "the response decompresses to more than the limit of {limit} bytes"
        )));
    }
    Ok(all.into())
}
