//! Discards the rest of a request body that will not be used.

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use std::pin::Pin;

/// Reads and discards the rest of a body, up to about `most` bytes, and returns the number of bytes
/// read. Clients read the response only after they have sent everything, and the connection stays
/// usable. Nothing is read of a body that announces more than `most`.
pub async fn drain_body<B: Body<Data = Bytes>>(mut body: Pin<&mut B>, most: u64) -> u64 {
    let mut seen = 0;
    if body.size_hint().exact().is_some_and(|n| n > most) {
        return seen;
    }
    while seen <= most
        && let Some(Ok(frame)) = body.frame().await
    {
        seen += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
    seen
}

#[cfg(test)]
#[path = "drain_tests.rs"]
mod tests;
