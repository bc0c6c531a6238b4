//! Unary gRPC calls without tonic: tensors are copied at most once when they are received, and sent zero-copy.

mod message_buf;
mod receiver;

pub use message_buf::MessageBuf;

use crate::arena::Arena;
use crate::net::chunks::{self, Chunks};
use crate::net::compression::{Coding, offload};
use crate::net::grpc::body::{GrpcBody, STATUS};
use bytes::{Buf, BufMut, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body_util::BodyExt;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use receiver::MessageReceiver;
use std::sync::Arc;
use tonic::Status;
use trtserver_proto::parts;
use trtserver_proto::schema::Message as Schema;

/// Reading a longer message would delay the other calls of a connection.
const LONG: usize = 64 << 10;
/// Tensors of a shorter message for an isolated model are copied into its arena later.
pub const MIN_IN_ARENA: usize = 1 << 10;
/// Length of the prefix of a message: compression flag and length.
const PREFIX: usize = 5;
/// The longest message in either direction.
pub const MAX_MESSAGE: usize = i32::MAX as usize;

const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// Receives and decodes the message of a unary inference call. `arena` returns the arena of an isolated model by name.
///
/// # Errors
/// The status for [`refuse`].
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
/// The status for [`refuse`].
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
/// The status for [`refuse`].
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

/// A successful response: `head` is the message without its `payloads`, which follow as elements of the repeated bytes field
/// number `field`. `spent` is a map whose memory is reused, such as the headers of the request.
pub fn respond(
    head: &impl Message,
    field: u32,
    payloads: &[Bytes],
    spent: HeaderMap,
) -> http::Response<GrpcBody> {
    let head_len = head.encoded_len();
    respond_with(head_len, |open| head.encode_raw(open), field, payloads.iter(), spent)
}

/// The same for a head of `head_len` bytes that `head` appends. The order of fields is free in protobuf, so the payloads can
/// follow the head zero-copy.
pub fn respond_with<'a>(
    head_len: usize,
    head: impl FnOnce(&mut Vec<u8>),
    field: u32,
    payloads: impl Iterator<Item = &'a Bytes> + Clone,
    mut spent: HeaderMap,
) -> http::Response<GrpcBody> {
    let (mut len, mut small) = (head_len, head_len + PREFIX);
    for payload in payloads.clone() {
        let key = key_len(field) + encoded_len_varint(payload.len() as u64);
        len += key + payload.len();
        small += key + chunks::copied(payload.len());
    }
    if len > MAX_MESSAGE {
        return refuse(&Status::invalid_argument(format!(
            "Response has byte size {len} which exceeds gRPC's byte size limit {MAX_MESSAGE}."
        )));
    }
    let mut message = Chunks::with_capacity(small);
    let buffer = message.buffer(PREFIX + head_len);
    buffer.put_u8(0);
    buffer.put_u32(len as u32);
    head(buffer);
    for payload in payloads {
        let payload_len = payload.len() as u64;
        let buffer = message.buffer(key_len(field) + encoded_len_varint(payload_len));
        encode_key(field, WireType::LengthDelimited, buffer);
        encode_varint(payload_len, buffer);
        message.push_ref(payload);
    }
    let mut response = http::Response::new(GrpcBody::message(message));
    spent.clear();
    spent.insert(header::CONTENT_TYPE, GRPC);
    *response.headers_mut() = spent;
    response
}

/// A failure: a response of headers only.
pub fn refuse(status: &Status) -> http::Response<GrpcBody> {
    let mut response = http::Response::new(GrpcBody::empty());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, GRPC);
    headers.insert(STATUS, HeaderValue::from(status.code() as i32));
    if let Ok(message) = HeaderValue::from_str(&percent_encode(status.message()))
        && !status.message().is_empty()
    {
        headers.insert(MESSAGE, message);
    }
    if let Some(accept) = status.metadata().get("grpc-accept-encoding")
        && let Ok(value) = HeaderValue::from_bytes(accept.as_bytes())
    {
        headers.insert(ACCEPT, value);
    }
    response
}

/// Percent-encodes everything but printable ASCII, and `%` itself.
fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(byte as char),
            _ => {
                out.push('%');
                for digit in [byte >> 4, byte & 15] {
                    out.push(b"0123456789ABCDEF"[usize::from(digit)] as char);
                }
            }
        }
    }
    out
}

/// Refuses requests that are no gRPC calls.
pub fn check_call(method: &http::Method, headers: &HeaderMap) -> Result<(), http::StatusCode> {
    let content = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if method != http::Method::POST {
        return Err(http::StatusCode::METHOD_NOT_ALLOWED);
    }
    if !content.starts_with(b"application/grpc") || content.starts_with(b"application/grpc-web") {
        return Err(http::StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    Ok(())
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
