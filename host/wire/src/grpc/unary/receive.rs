//! Receives the message of a unary call: limits, decompression, decoding.

use super::message_buf::{MessageBuf, RequestedModel};
use super::receiver::{LARGE, MessageReceiver};
use super::sizes::{MAX_MESSAGE, PREFIX};
use crate::compression::{Coding, CodingError};
use crate::decode_workers;
use crate::decode_workers::{MAX_INLINE, ReadyOrDeferred};
use crate::status_code::to_grpc_status;
use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Body;
use http_body_util::BodyExt;
use prost::Message;
use prost::encoding::decode_varint;
use tonic::Status;
use trtserver_base::budget::{MemoryReservation, RefusalReason, SMALL, request_memory};
use trtserver_base::ledger::LedgerHolder;
use trtserver_config::ServerSettings;
use trtserver_models::InputMemory;
use trtserver_proto::parts;
use trtserver_proto::schema::MessageSchema as Schema;
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
pub async fn read_message<M, B>(
    schema: &'static Schema,
    headers: &HeaderMap,
    mut body: B,
    memory_of: impl Fn(RequestedModel<'_>) -> Option<InputMemory>,
) -> Result<M, Status>
where
    M: Message + Default,
    B: Body<Data = Bytes> + Unpin,
{
    decode_message(
        schema,
        receive_message(headers, &mut body, &memory_of, MessageLimits::MAX).await?,
    )
}

/// Limits of one message.
#[derive(Clone, Copy)]
pub struct MessageLimits {
    /// As it is sent.
    pub message: usize,
    /// After decompression.
    pub expanded: usize,
}

impl MessageLimits {
    #[cfg(test)]
    pub const MAX: Self = Self { message: MAX_MESSAGE, expanded: MAX_MESSAGE };
    /// For the calls that carry no tensors.
    pub const CONTROL: Self = Self { message: 4 << 20, expanded: 4 << 20 };

    pub fn from_settings(settings: &ServerSettings) -> Self {
        Self {
            message: settings.grpc_max_message_size.min(MAX_MESSAGE),
            expanded: settings.grpc_max_expanded_size.min(MAX_MESSAGE),
        }
    }
}

/// Receives the message of a unary call without decoding it. `memory_of` returns the memory for a
/// model's inputs.
///
/// # Errors
/// The status for [`refuse`](super::refuse).
pub async fn receive_message<B, F>(
    headers: &HeaderMap,
    body: &mut B,
    memory_of: &F,
    limits: MessageLimits,
) -> Result<MessageBuf, Status>
where
    B: Body<Data = Bytes> + Unpin,
    F: Fn(RequestedModel<'_>) -> Option<InputMemory>,
{
    let frames = collect(body, memory_of, limits.message).await?;
    match open_message(headers, frames, limits) {
        ReadyOrDeferred::Ready(message) => message,
        ReadyOrDeferred::Deferred(work) => work.await,
    }
}

/// The headers that [`open_message`] reads.
pub fn message_headers(headers: &HeaderMap) -> HeaderMap {
    headers.get(ENCODING).map(|coding| (ENCODING, coding.clone())).into_iter().collect()
}

/// The message in `frames`, which begin with its prefix; if it is compressed, the future that
/// decompresses it.
pub fn open_message(
    headers: &HeaderMap,
    mut frames: MessageBuf,
    limits: MessageLimits,
) -> ReadyOrDeferred<Result<MessageBuf, Status>> {
    let compressed = match read_prefix(&mut frames, limits) {
        Ok(compressed) => compressed,
        Err(status) => return ReadyOrDeferred::Ready(Err(status)),
    };
    if !compressed {
        return ReadyOrDeferred::Ready(Ok(frames));
    }
    match coding(headers) {
        Ok(coding) => ReadyOrDeferred::defer(decompress_message(coding, frames, limits.expanded)),
        Err(status) => ReadyOrDeferred::Ready(Err(status)),
    }
}

/// Reads the prefix of the message in `frames`. True if the message is compressed.
///
/// # Errors
/// `frames` are not exactly one message.
fn read_prefix(frames: &mut MessageBuf, limits: MessageLimits) -> Result<bool, Status> {
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
    Ok(compressed)
}

/// Decodes the message in `frames`.
///
/// # Errors
/// The status for [`refuse`](super::refuse).
pub fn decode_message<M: Message + Default>(
    schema: &'static Schema,
    frames: MessageBuf,
) -> Result<M, Status> {
    decoded_size(schema, &frames)?;
    let mut frames = frames;
    let message = M::decode(&mut frames)
        .map_err(|e| Status::internal(format!("failed to decode the message: {e}")));
    match frames.failed() {
        Some(failed) => Err(to_grpc_status(failed.refuse("a tensor of the message"))),
        None => message,
    }
}

/// An upper bound of the memory that the message in `frames` takes when it is decoded.
///
/// # Errors
/// It has too many parts.
pub fn decoded_size(schema: &'static Schema, frames: &MessageBuf) -> Result<usize, Status> {
    parts::check_parts(schema, frames.clone()).map_err(|e| Status::invalid_argument(e.to_string()))
}

/// Draws the memory for a message that takes long to decode from the budget. It is needed until the
/// message was decoded and converted.
///
/// # Errors
/// The message has too many parts, or does not fit into the budget.
pub async fn reserve_decoded(
    schema: &'static Schema,
    frames: MessageBuf,
) -> Result<(MessageBuf, MemoryReservation), Status> {
    let measure = move || {
        let size = decoded_size(schema, &frames);
        (frames, size)
    };
    let (frames, size) = decode_workers::run_on_worker(measure).await.map_err(to_grpc_status)?;
    let reservation = request_memory().reserve(size?, LedgerHolder::Decode).await;
    Ok((frames, reservation.map_err(|e| to_grpc_status(e.refuse()))?))
}

/// Decoding the message takes long: more than [`MAX_INLINE`] bytes of it are not in the fields
/// `raw`, whose elements are used as they are.
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

/// All frames of a message.
async fn collect<B, F>(body: &mut B, memory_of: &F, limit: usize) -> Result<MessageBuf, Status>
where
    B: Body<Data = Bytes> + Unpin,
    F: Fn(RequestedModel<'_>) -> Option<InputMemory>,
{
    let mut first = Bytes::new();
    while let Some(data) = next_frame(body).await? {
        if !first.is_empty() || !is_small_message(&data, limit) {
            // Boxed: the futures of calls whose message is small and arrives in one frame have no
            // space for it.
            return Box::pin(collect_frames(body, [first, data], memory_of, limit)).await;
        }
        first = data;
    }
    Ok(MessageBuf::from(first))
}

/// A whole message that has no large field and is not drawn from the memory budget.
fn is_small_message(frame: &[u8], limit: usize) -> bool {
    frame.split_first_chunk().is_some_and(|([_, length @ ..], message): (&[u8; PREFIX], _)| {
        let length = u32::from_be_bytes(*length) as usize;
        length == message.len() && length <= limit && frame.len() < LARGE.min(SMALL)
    })
}

/// As [`collect`]; `first` are the frames that were received.
async fn collect_frames<B, F>(
    body: &mut B,
    first: [Bytes; 2],
    memory_of: &F,
    limit: usize,
) -> Result<MessageBuf, Status>
where
    B: Body<Data = Bytes> + Unpin,
    F: Fn(RequestedModel<'_>) -> Option<InputMemory>,
{
    let mut receiver = MessageReceiver::new(memory_of);
    let mut first = first.into_iter();
    loop {
        let next = match first.next() {
            Some(data) => Some(data),
            None => next_frame(body).await?,
        };
        let Some(data) = next else { break };
        // Longer messages are refused before they are buffered.
        let received = receiver.received() + data.len();
        if received > limit + PREFIX {
            return Err(too_long(received, limit));
        }
        receiver.pay(data.len()).await.map_err(|e| to_grpc_status(e.refuse()))?;
        receiver.push(data);
    }
    let frames = receiver.finish();
    yield_if_long(frames.remaining()).await;
    Ok(frames)
}

/// The next bytes; `None` at the end.
async fn next_frame<B>(body: &mut B) -> Result<Option<Bytes>, Status>
where
    B: Body<Data = Bytes> + Unpin,
{
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Status::cancelled("the client reset the call"))?;
        match frame.into_data() {
            Ok(data) if !data.is_empty() => return Ok(Some(data)),
            _ => {}
        }
    }
    Ok(None)
}

/// Before a long message is read, its call leaves the task that polls new streams together
/// (`first_poll`).
async fn yield_if_long(len: usize) {
    if len > LONG {
        tokio::task::yield_now().await;
    }
}

/// The refusal of a message of `len` bytes.
pub fn too_long(len: usize, limit: usize) -> Status {
    request_memory().count_refusal(RefusalReason::MessageSize);
    let mut text = format!("Received message larger than max ({len} vs. {limit})");
    if limit != MAX_MESSAGE && limit != MessageLimits::CONTROL.message {
        text += ". Use --grpc-max-message-size to increase the limit.";
    }
    Status::resource_exhausted(text)
}

fn too_long_expanded(limit: usize) -> Status {
    request_memory().count_refusal(RefusalReason::MessageSize);
    Status::resource_exhausted(format!(
        "decompressed message exceeds the maximum allowed size of {limit} bytes. Use \
         --grpc-max-expanded-size to increase the limit."
    ))
}

/// The coding of compressed messages in a call with these headers.
///
/// # Errors
/// The headers name no coding, or one that is not supported.
fn coding(headers: &HeaderMap) -> Result<Coding, Status> {
    match headers.get(ENCODING).map_or(&b""[..], HeaderValue::as_bytes) {
        b"gzip" => Ok(Coding::Gzip),
        b"deflate" => Ok(Coding::Deflate),
        b"" | b"identity" => {
            Err(Status::internal("a message is compressed, but grpc-encoding is not set"))
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
            Err(status)
        }
    }
}

async fn decompress_message(
    coding: Coding,
    frames: MessageBuf,
    limit: usize,
) -> Result<MessageBuf, Status> {
    let len = frames.remaining();
    let out = coding
        .decompress(frames.reader(), len, limit, LedgerHolder::RequestBody.into())
        .await
        .map_err(|e| match e {
            CodingError::TooLong => too_long_expanded(limit),
            CodingError::Malformed(e) => {
                Status::internal(format!("failed to decompress the message: {e}"))
            }
            e => e.own_fault("a decompressed message").map_or_else(
                || Status::internal("failed to decompress the message"),
                to_grpc_status,
            ),
        })?;
    yield_if_long(out.len()).await;
    Ok(MessageBuf::from(out))
}
