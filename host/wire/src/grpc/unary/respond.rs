//! Builds the responses of unary calls: a message whose tensors are zero-copy, or a status.

use super::sizes::{MAX_MESSAGE, PREFIX};
use crate::chunks;
use crate::chunks::Chunks;
use crate::grpc::body::{GrpcBody, MESSAGE, STATUS};
use crate::status_code::RETRY_PUSHBACK;
use bytes::{BufMut, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use tonic::Status;

const ACCEPT: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const PUSHBACK: HeaderName = HeaderName::from_static(RETRY_PUSHBACK);
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// A successful response: `head` is the message without its `payloads`, which follow as elements of
/// the repeated bytes field number `field`. `recycled` is a header map whose memory is reused, such
/// as that of the request.
pub fn respond_unary(
    head: &impl Message,
    field: u32,
    payloads: &[Bytes],
    recycled: HeaderMap,
) -> http::Response<GrpcBody> {
    let head_len = head.encoded_len();
    respond_with(head_len, |open| head.encode_raw(open), field, payloads.iter(), recycled)
}

/// The same for a head of `head_len` bytes that `head` appends. The order of fields is free in
/// protobuf, so the payloads can follow the head zero-copy.
pub fn respond_with<'a>(
    head_len: usize,
    head: impl FnOnce(&mut Vec<u8>),
    field: u32,
    payloads: impl Iterator<Item = &'a Bytes> + Clone,
    mut recycled: HeaderMap,
) -> http::Response<GrpcBody> {
    let (mut len, mut small) = (head_len, head_len + PREFIX);
    for payload in payloads.clone() {
        let key = key_len(field) + encoded_len_varint(payload.len() as u64);
        len += key + payload.len();
        small += key + chunks::copied_bytes(payload.len());
    }
    if len > MAX_MESSAGE {
        return refuse_call(&Status::invalid_argument(format!(
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
    recycled.clear();
    recycled.insert(header::CONTENT_TYPE, GRPC);
    *response.headers_mut() = recycled;
    response
}

/// A failure: a response of headers only.
pub fn refuse_call(status: &Status) -> http::Response<GrpcBody> {
    let mut response = http::Response::new(GrpcBody::empty());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, GRPC);
    headers.insert(STATUS, HeaderValue::from(status.code() as i32));
    if let Ok(message) = HeaderValue::from_str(&percent_encode(status.message()))
        && !status.message().is_empty()
    {
        headers.insert(MESSAGE, message);
    }
    for name in [ACCEPT, PUSHBACK] {
        if let Some(value) = status.metadata().get(name.as_str())
            && let Ok(value) = HeaderValue::from_bytes(value.as_bytes())
        {
            headers.insert(name, value);
        }
    }
    response
}

/// Percent-encodes everything but printable ASCII, and `%` itself.
pub fn percent_encode(text: &str) -> String {
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
