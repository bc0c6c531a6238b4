//! Calls without tensors, which tonic serves: their message is received here, because tonic would
//! decompress it on a network thread, and would take as much memory as the call announces.

use super::RequestedModel;
use super::receive::{MessageLimits, receive_message};
use super::sizes::PREFIX;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::Request;
use http_body_util::Full;
use tonic::Status;

/// The call with its message received and decompressed, and the message.
///
/// # Errors
/// The status for [`refuse`](super::refuse).
pub async fn receive_control<B>(
    request: Request<B>,
) -> Result<(Request<Full<Bytes>>, Bytes), Status>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let (parts, mut body) = request.into_parts();
    let mut message = receive_message(
        &parts.headers,
        &mut body,
        &|_: RequestedModel<'_>| None,
        MessageLimits::CONTROL,
    )
    .await?;
    let len = message.remaining();
    let mut body = BytesMut::with_capacity(PREFIX + len);
    body.put_u8(0);
    body.put_u32(len as u32);
    body.put(&mut message);
    let body = body.freeze();
    let message = body.slice(PREFIX..);
    Ok((Request::from_parts(parts, Full::new(body)), message))
}
