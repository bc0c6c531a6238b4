//! Unit tests of `drain.rs`.

use super::*;
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use std::convert::Infallible;
use std::pin::pin;

#[tokio::test]
async fn drain_reads_up_to_a_limit() {
    let piece = || Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"12345")));
    let pieces = || StreamBody::new(tokio_stream::iter([piece(), piece(), piece(), piece()]));
    for (most, seen) in [(9, 10), (10, 15), (100, 20)] {
        let mut body = pin!(pieces());
        assert_eq!(drain_body(body.as_mut(), most).await, seen);
        assert_eq!(body.collect().await.unwrap().to_bytes().len() as u64, 20 - seen);
    }
    assert_eq!(drain_body(pin!(Full::new(Bytes::from_static(b"12345"))), 4).await, 0);
}
