//! Receives the message of a unary call: limits, decompression, decoding.

use super::message_buf::MessageBuf;
use super::receiver::MessageReceiver;
use super::sizes::{MAX_MESSAGE, PREFIX};
use crate::arena::Arena;
use crate::budget::{Purpose, Refusal, Reservation, request_memory};
use crate::config::Settings;
use crate::net::compression::{Coding, CodingError};
use crate::net::decode_workers::{self, MAX_INLINE};
use crate::net::status_code::status;
use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt;
use prost::Message;
use prost::encoding::decode_varint;
use std::sync::Arc;
use tonic::Status;
use trtserver_proto::parts;
use trtserver_proto::schema::Message as Schema;
use trtserver_proto_wire::{Tag, WireType};

/// Reading a longer message would delay the other calls of a connection.
const LONG: usize = 64 << 10;

/// Raw tensors from this size on cost nothing to decode.
const MIN_RAW: usize = 4 << 10;

const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Receives and decodes a message.
///
/// # Errors
/// The status for [`refuse`](super::refuse).
#[cfg(test)]
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
    decode(schema, receive(headers, body, &arena, Limits::MAX).await?)
}

/// Limits of one message.
#[derive(Clone, Copy)]
pub struct Limits {
    /// As it is sent.
    pub message: usize,
    /// After decompression.
    pub expanded: usize,
}

impl Limits {
    #[cfg(test)]
    pub const MAX: Self = Self { message: MAX_MESSAGE, expanded: MAX_MESSAGE };
    /// For the calls that carry no tensors.
    pub const CONTROL: Self = Self { message: 4 << 20, expanded: 4 << 20 };

    pub fn of(settings: &Settings) -> Self {
        Self {
            message: settings.grpc_max_message_size.min(MAX_MESSAGE),
            expanded: settings.grpc_max_expanded_size.min(MAX_MESSAGE),
        }
    }
}

/// Receives the message of a unary call without decoding it. `arena` returns the arena of an isolated model by name.
///
/// # Errors
/// The status for [`refuse`](super::refuse).
pub async fn receive<B, F>(
    headers: &HeaderMap,
    body: B,
    arena: &F,
    limits: Limits,
) -> Result<MessageBuf, Status>
where
    B: http_body::Body<Data = Bytes>,
    F: Fn(&str) -> Option<Arc<Arena>>,
{
    let frames = open(headers, collect(body, arena, limits.message).await?, limits).await?;
    if frames.remaining() > LONG {
        // Leave the task that polls new streams together, see `first_poll`.
        tokio::task::yield_now().await;
    }
    Ok(frames)
}

/// The message in `frames`, which begin with its prefix, decompressed if necessary.
///
/// # Errors
/// The status for [`refuse`](super::refuse).
pub async fn open(
    headers: &HeaderMap,
    mut frames: MessageBuf,
    limits: Limits,
) -> Result<MessageBuf, Status> {
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
    if len > limits.message {
        return Err(too_long(len, limits.message));
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
        return Box::pin(decompress(headers, frames, limits.expanded)).await;
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
    decoded_size(schema, &frames)?;
    let mut frames = frames;
    let message = M::decode(&mut frames)
        .map_err(|e| Status::internal(format!("failed to decode the message: {e}")));
    match frames.failed() {
        Some(failed) => Err(status(failed.refuse("a tensor of the message"))),
        None => message,
    }
}

/// An upper bound of the memory that the message in `frames` takes when it is decoded.
///
/// # Errors
/// It has too many parts.
pub fn decoded_size(schema: &'static Schema, frames: &MessageBuf) -> Result<usize, Status> {
    parts::check(schema, frames.clone()).map_err(|e| Status::invalid_argument(e.to_string()))
}

/// Draws the memory for a message that takes long to decode from the budget. It is needed until the message was decoded and
/// converted.
///
/// # Errors
/// The message has too many parts, or does not fit into the budget.
pub async fn reserve_decoded(
    schema: &'static Schema,
    frames: MessageBuf,
) -> Result<(MessageBuf, Reservation), Status> {
    let measure = move || {
        let size = decoded_size(schema, &frames);
        (frames, size)
    };
    let (frames, size) = decode_workers::run(measure).await.map_err(status)?;
    let reservation = request_memory().reserve(size?, Purpose::Request).await;
    Ok((frames, reservation.map_err(|e| status(e.refuse()))?))
}

/// Decoding the message takes long: more than [`MAX_INLINE`] bytes of it are not in the fields `raw`, whose elements are used
/// as they are.
pub fn is_heavy(frames: &MessageBuf, raw: u32) -> bool {
    frames.remaining() > MAX_INLINE && bytes_to_decode(frames.clone(), raw) > MAX_INLINE
}

fn bytes_to_decode(mut frames: MessageBuf, raw: u32) -> usize {
    let mut bytes = 0;
    while frames.has_remaining() && bytes <= MAX_INLINE {
        let before = frames.remaining();
        let tag = decode_varint(&mut frames).ok().and_then(|tag| Tag::from_varint(tag).ok());
        let value = match tag.map(|tag| tag.wire_type) {
            Some(WireType::Bytes) => decode_varint(&mut frames).ok(),
            Some(WireType::Varint) => decode_varint(&mut frames).ok().map(|_| 0),
            Some(WireType::Fixed32) => Some(4),
            Some(WireType::Fixed64) => Some(8),
            Some(WireType::StartGroup | WireType::EndGroup) => Some(0),
            None => None,
        };
        let value =
            value.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= frames.remaining());
        // Malformed: decoding ends here.
        let Some(value) = value else { break };
        frames.advance(value);
        let is_raw = tag.is_some_and(|tag| tag.number == raw) && value >= MIN_RAW;
        bytes += if is_raw { 0 } else { before - frames.remaining() };
    }
    bytes
}

async fn collect<B, F>(body: B, arena: &F, limit: usize) -> Result<MessageBuf, Status>
where
    B: http_body::Body<Data = Bytes>,
    F: Fn(&str) -> Option<Arc<Arena>>,
{
    let mut frames = MessageReceiver::new(arena);
    let mut body = std::pin::pin!(body);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Status::cancelled("the client reset the call"))?;
        if let Ok(data) = frame.into_data() {
            // Longer messages are refused before they are buffered.
            let received = frames.received() + data.len();
            if received > limit + PREFIX {
                return Err(too_long(received, limit));
            }
            if frames.must_pay(data.len()) {
                // Boxed: the futures of small messages have no space for it.
                Box::pin(frames.pay(data.len())).await.map_err(|e| status(e.refuse()))?;
            }
            frames.push(data);
        }
    }
    Ok(frames.finish())
}

/// The refusal of a message of `len` bytes.
pub fn too_long(len: usize, limit: usize) -> Status {
    request_memory().count_refusal(Refusal::MessageSize);
    let mut text = format!("Received message larger than max ({len} vs. {limit})");
    if limit != MAX_MESSAGE && limit != Limits::CONTROL.message {
        text += ". Use --grpc-max-message-size to increase the limit.";
    }
    Status::resource_exhausted(text)
}

fn too_long_expanded(limit: usize) -> Status {
    request_memory().count_refusal(Refusal::MessageSize);
    Status::resource_exhausted(format!(
        "decompressed message exceeds the maximum allowed size of {limit} bytes. Use \
         --grpc-max-expanded-size to increase the limit."
    ))
}

async fn decompress(
    headers: &HeaderMap,
    frames: MessageBuf,
    limit: usize,
) -> Result<MessageBuf, Status> {
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
    let len = frames.remaining();
    let out = coding.decompress(frames.reader(), len, limit).await.map_err(|e| match e {
        CodingError::TooLong => too_long_expanded(limit),
        CodingError::Malformed(e) => {
            Status::internal(format!("failed to decompress the message: {e}"))
        }
        e => e
            .own_fault("a decompressed message")
            .map_or_else(|| Status::internal("failed to decompress the message"), status),
    })?;
    let mut frames = MessageBuf::default();
    frames.push(out);
    frames.seal();
    Ok(frames)
}
