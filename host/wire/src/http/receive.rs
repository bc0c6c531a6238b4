//! The body of a v2 request: its limits and its compression.

use crate::compression::{Coding, CodingError};
use crate::http::accept::find_headers;
use crate::http::collect::{BodyError, BodySpec, MAX_CHUNKS, ReceivedBody, collect_body};
use crate::http::drain::drain_body;
use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use trtserver_base::budget::{RefusalReason, request_memory};
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::ledger::MemoryTag;

/// Longest body, with or without `Content-Length`.
const MAX_BODY: u64 = i32::MAX as u64;
/// The most that is drained of the body of a refused request.
pub const MAX_DRAINED: u64 = 64 << 20;

/// `Content-Length`, if the body has one.
pub fn content_length(headers: &HeaderMap) -> Result<Option<u64>> {
    let [Some(value)] = find_headers(headers, [&CONTENT_LENGTH]) else { return Ok(None) };
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

/// Reads a whole body; see [`collect`].
///
/// # Errors
/// `too_large`, called with the length of a body that exceeds the limit. Such a body is drained
/// first, because clients read the response only after they have sent everything.
pub async fn receive_body<B: ReceivedBody>(
    body: B,
    mut spec: BodySpec<'_>,
    too_large: impl FnOnce(u64) -> Error,
) -> Result<Bytes> {
    let mut body = std::pin::pin!(body);
    spec.limit = spec.limit.min(MAX_BODY);
    if let Some(length) = spec.length.filter(|length| *length > spec.limit) {
        drain_body(body.as_mut(), MAX_BODY).await;
        return Err(too_large(length));
    }
    match collect_body(body.as_mut(), spec).await {
        Ok(bytes) => Ok(bytes),
        Err(BodyError::TooLong(received)) if received > spec.limit => {
            Err(too_large(received + drain_body(body, MAX_BODY).await))
        }
        Err(BodyError::TooLong(_)) => {
            Err(Error::invalid("the request body is longer than announced"))
        }
        Err(BodyError::OutOfMemory(e)) => {
            let error = e.refuse("a request body");
            drain_body(body, MAX_DRAINED).await;
            Err(error)
        }
        Err(BodyError::TooManyChunks) => Err(Error::invalid(format!(
            "Chunked request body exceeds maximum of {MAX_CHUNKS} non-empty chunks. Send fewer or \
             larger HTTP chunks."
        ))),
        Err(BodyError::TimedOut) => Err(too_slow()),
        Err(BodyError::Disconnected) => Err(Error::new(
            Code::Cancelled,
            "the client disconnected while sending the request body",
        )),
    }
}

/// Decompresses a gzip or zlib body to at most `limit` bytes. The body's first bytes decide which
/// of the two it is. The result is entered under `tag`.
pub async fn decompress_body(body: Bytes, limit: u64, tag: MemoryTag) -> Result<Bytes> {
    if body.is_empty() {
        return Err(Error::invalid("the compressed request body is empty"));
    }
    let (coding, len) = (Coding::detect(&body), body.len());
    let most = usize::try_from(limit.min(MAX_BODY)).unwrap_or(usize::MAX - 1);
    coding.decompress(body.reader(), len, most, tag).await.map_err(|e| match e {
        CodingError::TooLong => {
            request_memory().count_refusal(RefusalReason::MessageSize);
            Error::invalid(format!(
                "decompressed request size exceeds the maximum allowed input size of {limit} bytes. \
                 Use --http-max-input-size to increase the limit."
            ))
        }
        CodingError::Malformed(e) => {
            Error::invalid(format!("Failed to decompress the request body: {e}"))
        }
        e => e.own_fault("a decompressed request body").unwrap_or_else(failed),
    })
}

/// The error for a body longer than `--http-max-body-size`.
pub fn too_large(bytes: u64, limit: u64) -> Error {
    request_memory().count_refusal(RefusalReason::MessageSize);
    Error::invalid(format!(
        "request body of {bytes} bytes exceeds the maximum allowed size of {limit} bytes. Use \
         --http-max-body-size to increase the limit."
    ))
}

/// The error for a body that did not arrive in time.
pub fn too_slow() -> Error {
    Error::new(
        Code::RequestTimeout,
        "the request body did not arrive in time (--request-body-timeout-secs, --request-body-min-rate)",
    )
}

fn failed() -> Error {
    Error::internal("decompression of the request body failed")
}

#[cfg(test)]
#[path = "receive_tests.rs"]
mod tests;
