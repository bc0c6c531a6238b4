//! Receives the message of a unary call: limits, decompression, decoding.

use super::message_buf::MessageBuf;
use super::receiver::MessageReceiver;
use super::sizes::{MAX_MESSAGE, MIN_IN_ARENA, PREFIX};
use crate::arena::Arena;
use crate::net::compression::{Coding, offload};
use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt;
use prost::Message;
use std::sync::Arc;
use tonic::Status;
use trtserver_proto::parts;
use trtserver_proto::schema::Message as Schema;

/// Reading a longer message would delay the other calls of a connection.
const LONG: usize = 64 << 10;

const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Receives and decodes the message of a unary inference call. `arena` returns the arena of an isolated model by name.
///
/// # Errors
/// The status for [`refuse`](super::refuse).
pub async fn read<M, B>(
    schema: &'static Schema,
    headers: &HeaderMap,
    body: B,
    arena: impl Fn(&str) -> Option<Arc<Arena>>,
) -> Result<M, Status>
where
    M: Message + Default,
    B: http_body::Body<Data = Bytes>,
{
    let mut frames = receive(headers, body, &arena).await?;
    if frames.remaining() >= MIN_IN_ARENA
        && let Some(arena) = frames.first_text().and_then(arena)
    {
        frames.copy_into(arena);
    }
    decode(schema, frames)
}

/// Receives the message of a unary call without decoding it; `arena` as for [`read`].
///
/// # Errors
/// The status for [`refuse`](super::refuse).
pub async fn receive<B, F>(headers: &HeaderMap, body: B, arena: &F) -> Result<MessageBuf, Status>
where
    B: http_body::Body<Data = Bytes>,
    F: Fn(&str) -> Option<Arc<Arena>>,
{
    let mut frames = collect(body, arena).await?;
    if frames.remaining() < PREFIX {
        return Err(Status::internal("the call ended before a whole message was received"));
    }
    let compressed = match frames.get_u8() {
        0 => false,
        1 => true,
        flag => {
            return Err(Status::internal(format!(
                "received a message with the compression flag {flag}; only 0 and 1 are known"
            )));
        }
    };
    let len = frames.get_u32() as usize;
    if len > MAX_MESSAGE {
        return Err(too_long(len));
    }
    match frames.remaining() {
        n if n < len => {
            return Err(Status::internal(format!(
                "the message is cut short: expected {len} bytes, got {n}"
            )));
        }
        n if n > len => {
            return Err(Status::unimplemented("a unary call takes one message, got more"));
        }
        _ => {}
    }
    if compressed {
        return decompress(headers, frames).await;
    }
    if len > LONG {
        // Leave the task that polls new streams together, see `first_poll`.
        tokio::task::yield_now().await;
    }
    Ok(frames)
}

/// Decodes the message in `frames`.
///
/// # Errors
/// The status for [`refuse`](super::refuse).
pub fn decode<M: Message + Default>(
    schema: &'static Schema,
    frames: MessageBuf,
) -> Result<M, Status> {
    parts::check(schema, frames.clone()).map_err(|e| Status::invalid_argument(e.to_string()))?;
    M::decode(frames).map_err(|e| Status::internal(format!("failed to decode the message: {e}")))
}

async fn collect<B, F>(body: B, arena: &F) -> Result<MessageBuf, Status>
where
    B: http_body::Body<Data = Bytes>,
    F: Fn(&str) -> Option<Arc<Arena>>,
{
    let mut frames = MessageReceiver::new(arena);
    let mut body = std::pin::pin!(body);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Status::cancelled("the client reset the call"))?;
        if let Ok(data) = frame.into_data() {
            frames.push(data);
            // Longer messages are refused before they are buffered.
            if frames.received() > MAX_MESSAGE + PREFIX {
                return Err(too_long(frames.received()));
            }
        }
    }
    Ok(frames.finish())
}

fn too_long(len: usize) -> Status {
    Status::resource_exhausted(format!(
        "Received message larger than max ({len} vs. {MAX_MESSAGE})"
    ))
}

async fn decompress(headers: &HeaderMap, frames: MessageBuf) -> Result<MessageBuf, Status> {
    let encoding = headers.get(ENCODING).map_or(&b""[..], HeaderValue::as_bytes);
    let coding = match encoding {
        b"gzip" => Coding::Gzip,
        b"deflate" => Coding::Deflate,
        b"" | b"identity" => {
            return Err(Status::internal("a message is compressed, but grpc-encoding is not set"));
        }
        other => {
            let mut status = Status::unimplemented(format!(
                "messages compressed with '{}' are not supported",
                String::from_utf8_lossy(other)
            ));
            status.metadata_mut().insert(
                "grpc-accept-encoding",
                tonic::metadata::MetadataValue::from_static("identity,gzip,deflate"),
            );
            return Err(status);
        }
    };
    let out = offload(false, move || coding.decompress(frames.reader(), MAX_MESSAGE as u64))
        .await
        .ok_or_else(|| Status::internal("decompression of the message panicked"))?
        .map_err(|e| Status::internal(format!("failed to decompress the message: {e}")))?;
    if out.len() > MAX_MESSAGE {
        return Err(too_long(out.len()));
    }
    let mut frames = MessageBuf::default();
    frames.push(Bytes::from(out));
    frames.seal();
    Ok(frames)
}
