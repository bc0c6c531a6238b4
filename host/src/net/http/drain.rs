//! What is left of a request's body that nobody wants.

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use std::pin::Pin;

/// Throws away the rest of a body, up to about `most` bytes, and says how many there were: the caller, who reads
/// our answer only after he has sent everything, gets to see it, and the connection stays usable. If more is
/// announced, that is hopeless and nothing is read.
pub async fn drain<B: Body<Data = Bytes>>(mut body: Pin<&mut B>, most: u64) -> u64 {
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
