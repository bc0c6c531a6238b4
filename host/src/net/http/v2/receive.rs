//! The body of a request in one piece, placed so that the tensors in it can be used where they lie.

use crate::arena::Arena;
use crate::error::{Code, Error, Result};
use crate::net::http::drain::drain;
use crate::request::buffer::{ALIGN, AlignedBuf};
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use smallvec::SmallVec;
use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;

/// No body is longer.
const MAX_BODY: u64 = i32::MAX as u64;
/// Chunked bodies in more pieces than this are refused if the pieces are small.
const MAX_CHUNKS: usize = 1 << 16;
/// Bodies above this size are compressed and expanded away from the connections' threads.
pub const SMALL: usize = 64 << 10;

/// `Content-Length`, if the body has one.
pub fn content_length(headers: &HeaderMap) -> Result<Option<u64>> {
    let Some(value) = headers.get(CONTENT_LENGTH) else { return Ok(None) };
    let text = String::from_utf8_lossy(value.as_bytes());
    match text.parse::<u64>() {
        Ok(n) if n <= MAX_BODY => Ok(Some(n)),
        _ => Err(Error::invalid(format!(
            "Unable to parse Content-Length, value is out of range [ {}, {} ], got: {text}",
            i32::MIN,
            i32::MAX
        ))),
    }
}

/// Reads a whole body. It stays where it is if it arrived in one piece, which may be aligned to nothing; else
/// its byte `aligned_at` comes to lie on a cache line. With an arena it comes to lie there in any case.
///
/// # Errors
/// `too_large`, told the length of a body of more than `limit` bytes, which is read to its end so
/// that the caller gets to see the answer.
pub async fn receive<B: http_body::Body<Data = Bytes>>(
    body: B,
    length: Option<u64>,
    aligned_at: usize,
    arena: Option<&Arc<Arena>>,
    limit: u64,
    too_large: impl FnOnce(u64) -> Error,
) -> Result<Bytes> {
    let mut body = std::pin::pin!(body);
    let limit = limit.min(MAX_BODY);
    if let Some(n) = length.filter(|n| *n > limit) {
        drain(body.as_mut(), MAX_BODY).await;
        return Err(too_large(n));
    }
    let pad = (ALIGN - aligned_at % ALIGN) % ALIGN;
    let mut pieces: SmallVec<[Bytes; 1]> = SmallVec::new();
    let mut block: Option<AlignedBuf> = None;
    let mut total = 0;
    while let Some(piece) = next(body.as_mut()).await? {
        let end = total + piece.len();
        if end as u64 > limit {
            let more = drain(body.as_mut(), MAX_BODY).await;
            return Err(too_large(end as u64 + more));
        }
        if let Some(n) = length.filter(|n| *n > piece.len() as u64) {
            let block = match &mut block {
                Some(block) => block,
                // Room that nobody fills costs addresses only: the length need not be true.
                none => none.insert(
                    AlignedBuf::try_for_input(arena, pad + n as usize).ok_or_else(|| no_room(n))?,
                ),
            };
            match block.as_mut().get_mut(pad + total..pad + end) {
                Some(place) => place.copy_from_slice(&piece),
                None => return Err(Error::invalid("the request body is longer than announced")),
            }
        } else {
            pieces.push(piece);
            if pieces.len() > MAX_CHUNKS && end < pieces.len() * 1024 {
                return Err(Error::invalid(format!(
                    "Chunked request body exceeds maximum of {MAX_CHUNKS} non-empty chunks. Send \
                     fewer or larger HTTP chunks."
                )));
            }
        }
        total = end;
    }
    if let Some(block) = block {
        return Ok(block.into_bytes().slice(pad..pad + total));
    }
    if arena.is_none() && pieces.len() <= 1 {
        return Ok(pieces.pop().unwrap_or_default());
    }
    let mut parts: Vec<&[u8]> = Vec::with_capacity(pieces.len() + 1);
    parts.push(&[0; ALIGN][..pad]);
    parts.extend(pieces.iter().map(|p| p.as_ref()));
    Ok(AlignedBuf::copy_to(arena, &parts).into_bytes().slice(pad..))
}

fn no_room(length: u64) -> Error {
    Error::unavailable(format!("no room for a request body of {length} bytes"))
}

/// The next piece that is not empty.
async fn next<B: http_body::Body<Data = Bytes>>(mut body: Pin<&mut B>) -> Result<Option<Bytes>> {
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| Error::new(Code::Cancelled, "the request body was cut short"))?;
        match frame.into_data() {
            Ok(data) if !data.is_empty() => return Ok(Some(data)),
            _ => {}
        }
    }
    Ok(None)
}

/// Expands a gzip or zlib body, whichever it looks like, to at most `limit` bytes.
pub async fn expand(body: Bytes, limit: u64) -> Result<Bytes> {
    if body.is_empty() {
        return Err(Error::invalid("nothing to be decompressed"));
    }
    let small = body.len() <= SMALL / 16;
    let work = move || -> Result<Bytes> {
        let mut out = Vec::new();
        let most = limit.saturating_add(1);
        let read = if body.starts_with(&[0x1f, 0x8b]) {
            flate2::read::MultiGzDecoder::new(&body[..]).take(most).read_to_end(&mut out)
        } else {
            flate2::read::ZlibDecoder::new(&body[..]).take(most).read_to_end(&mut out)
        };
        read.map_err(|e| Error::invalid(format!("Failed to decompress the request body: {e}")))?;
        if out.len() as u64 > limit {
            return Err(Error::invalid(format!(
                "decompressed request size exceeds the maximum allowed input size of {limit} bytes. \
                 Use --http-max-input-size to increase the limit."
            )));
        }
        Ok(Bytes::from(out))
    };
    elsewhere(work, small).await
}

/// Runs `work` here, or where it holds nobody up.
pub async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
    here: bool,
) -> Result<T> {
    if here {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(Error::internal("the work on a compressed body was broken off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use std::convert::Infallible;
    use std::io::Write;

    fn body(bytes: &[u8], step: usize) -> impl http_body::Body<Data = Bytes> + use<> {
        let frames: Vec<Result<Frame<Bytes>, Infallible>> =
            bytes.chunks(step).map(|c| Ok(Frame::data(Bytes::copy_from_slice(c)))).collect();
        StreamBody::new(tokio_stream::iter(frames))
    }

    async fn get(bytes: &[u8], step: usize, length: bool, limit: u64) -> Result<Bytes> {
        let length = length.then_some(bytes.len() as u64);
        let too_large = |n| Error::invalid(format!("{n} bytes"));
        receive(body(bytes, step), length, 37, None, limit, too_large).await
    }

    #[tokio::test]
    async fn whole_and_aligned() {
        let bytes: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        for step in [1, 7, 64, 999, 1000] {
            for length in [true, false] {
                let got = get(&bytes, step, length, 1000).await.unwrap();
                assert_eq!(got, bytes, "pieces of {step}");
                // One piece stays where it came.
                assert!(step == 1000 || (got.as_ptr() as usize + 37).is_multiple_of(ALIGN));
                let refused = get(&bytes, step, length, 999).await.unwrap_err();
                assert_eq!(refused.message, "1000 bytes");
            }
        }
        assert_eq!(get(&[], 1, false, 10).await.unwrap(), "");
        let one = Bytes::from(bytes);
        let too_large = |_| Error::invalid("");
        let body = http_body_util::Full::new(one.clone());
        let got = receive(body, Some(1000), 37, None, 1000, too_large).await.unwrap();
        assert_eq!(got.as_ptr(), one.as_ptr());
    }

    #[tokio::test]
    async fn too_many_chunks() {
        let refused = get(&vec![0; 70_000], 1, false, 1 << 20).await.unwrap_err();
        assert!(refused.message.starts_with("Chunked request body exceeds maximum of 65536"));
    }

    #[tokio::test]
    async fn expanding() {
        let plain = vec![7; 10_000];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        gzip.write_all(&plain).unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
        zlib.write_all(&plain).unwrap();
        for packed in [gzip.finish().unwrap(), zlib.finish().unwrap()] {
            let packed = Bytes::from(packed);
            assert_eq!(expand(packed.clone(), 10_000).await.unwrap(), plain);
            let refused = expand(packed, 9_999).await.unwrap_err();
            assert!(refused.message.contains("exceeds the maximum allowed input size of 9999"));
        }
        assert!(expand("nonsense".into(), 100).await.is_err());
    }

    #[test]
    fn lengths() {
        for (text, want) in [("0", Some(0)), ("2147483647", Some(2147483647)), ("2147483648", None)]
        {
            let headers = HeaderMap::from_iter([(CONTENT_LENGTH, text.parse().unwrap())]);
            assert_eq!(content_length(&headers).ok().flatten(), want, "{text}");
        }
    }
}
