//! Unit tests of `upload.rs`.

use super::*;
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use std::convert::Infallible;
use std::pin::pin;

fn chunked(sizes: &[usize]) -> impl Body<Data = Bytes, Error = Infallible> + use<> {
    let frames: Vec<Result<_, Infallible>> =
        sizes.iter().map(|n| Ok(Frame::data(Bytes::from(vec![7; *n])))).collect();
    StreamBody::new(tokio_stream::iter(frames))
}

#[tokio::test]
async fn exactly_the_announced_size() {
    let arena = Arena::new("test", 1 << 20).unwrap();
    for (sizes, expected, want) in [
        (&[3, 0, 5][..], 8, Ok(8)),
        (&[], 0, Ok(0)),
        (&[], 5, Err(Fault::Size(0))),
        (&[3], 8, Err(Fault::Size(3))),
        (&[3, 6, 100], 8, Err(Fault::Size(9))),
        (&[3], usize::MAX, Err(Fault::Memory)),
    ] {
        let shared = collect(pin!(chunked(sizes)), expected, Some(&arena)).await;
        let got = collect(pin!(chunked(sizes)), expected, None).await;
        assert_eq!(shared, got, "{sizes:?}");
        if let Ok(bytes) = &got {
            assert!(bytes.is_empty() || (bytes.as_ptr() as usize).is_multiple_of(64));
        }
        assert_eq!(got.map(|b| b.len()), want, "{sizes:?}");
    }
    let whole = Full::new(Bytes::from(vec![1; 10]));
    assert_eq!(collect(pin!(whole.clone()), 10, None).await.unwrap(), vec![1; 10]);
    assert_eq!(collect(pin!(whole), 1 << 50, None).await, Err(Fault::Size(10)));
}
