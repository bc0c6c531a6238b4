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
mod tests {
    use super::*;
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};
    use std::convert::Infallible;
    use std::pin::pin;

    #[tokio::test]
    async fn what_is_not_wanted_is_read_up_to_a_limit() {
        let piece = || Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"12345")));
        let pieces = || StreamBody::new(tokio_stream::iter([piece(), piece(), piece(), piece()]));
        for (most, seen) in [(9, 10), (10, 15), (100, 20)] {
            let mut body = pin!(pieces());
            assert_eq!(drain(body.as_mut(), most).await, seen);
            assert_eq!(body.collect().await.unwrap().to_bytes().len() as u64, 20 - seen);
        }
        assert_eq!(drain(pin!(Full::new(Bytes::from_static(b"12345"))), 4).await, 0);
    }
}
