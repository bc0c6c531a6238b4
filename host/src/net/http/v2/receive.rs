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
#[path = "receive_tests.rs"]
mod tests;
