//! Unit tests of `collect.rs`.

use super::*;
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use std::convert::Infallible;
use std::pin::pin;

fn pieces(sizes: &[usize]) -> impl ReceivedBody + use<> {
    let frames: Vec<Result<_, Infallible>> =
        sizes.iter().map(|n| Ok(Frame::data(Bytes::from(vec![7; *n])))).collect();
    StreamBody::new(tokio_stream::iter(frames))
}

#[tokio::test]
async fn announced_length_bounds_the_body() {
    let arena = Arena::new("test", 1 << 20).unwrap();
    for (sizes, length, want) in [
        (&[3, 0, 5][..], 8, Ok(8)),
        (&[8], 8, Ok(8)),
        (&[], 0, Ok(0)),
        (&[], 5, Ok(0)),
        (&[3], 8, Ok(3)),
        (&[3, 6, 100], 8, Err(BodyError::TooLong(9))),
        (&[3, 8], 8, Err(BodyError::TooLong(11))),
        (&[9], 8, Err(BodyError::TooLong(9))),
        (&[3], u64::MAX, Err(BodyError::OutOfMemory(AllocError::System(usize::MAX)))),
    ] {
        for arena in [None, Some(&arena)] {
            // The limit is the announced length, or none.
            for limit in [length, u64::MAX] {
                let spec = BodySpec { length: Some(length), limit, arena, ..Default::default() };
                if limit > length && matches!(sizes, [9] | [8]) {
                    continue;
                }
                let got = collect_body(pin!(pieces(sizes)), spec).await;
                assert_eq!(got.map(|b| b.len() as u64), want, "{sizes:?}");
            }
        }
    }
}

#[tokio::test]
async fn pieces_are_joined_and_aligned() {
    let bytes: Vec<u8> = (0..1000).map(|i| i as u8).collect();
    for step in [1, 7, 64, 999, 1000] {
        for length in [None, Some(1000)] {
            let frames: Vec<Result<_, Infallible>> =
                bytes.chunks(step).map(|c| Ok(Frame::data(Bytes::copy_from_slice(c)))).collect();
            let body = StreamBody::new(tokio_stream::iter(frames));
            let spec = BodySpec { length, limit: 1000, aligned_at: 37, ..BodySpec::default() };
            let got = collect_body(pin!(body), spec).await.unwrap();
            assert_eq!(got, bytes, "pieces of {step}");
            assert!(step == 1000 || (got.as_ptr() as usize + 37).is_multiple_of(ALIGN));
        }
    }
    let whole = Bytes::from(bytes);
    let spec = BodySpec { length: Some(1000), limit: 1000, aligned_at: 37, ..BodySpec::default() };
    let got = collect_body(pin!(Full::new(whole.clone())), spec).await.unwrap();
    assert_eq!(got.as_ptr(), whole.as_ptr(), "a body in one piece is not copied");
    for (length, copied) in [(900, true), (1000, false)] {
        let whole = whole.slice(..length);
        let spec =
            BodySpec { limit: 1000, aligned_at: 37, has_tensors: true, ..BodySpec::default() };
        let got = collect_body(pin!(Full::new(whole.clone())), spec).await.unwrap();
        assert_eq!(got, whole);
        assert_eq!(got.as_ptr() != whole.as_ptr(), copied, "a body of {length} bytes with tensors");
        assert!(!copied || (got.as_ptr() as usize + 37).is_multiple_of(ALIGN));
    }
}

#[tokio::test]
async fn many_small_pieces_are_refused() {
    let spec = BodySpec { limit: 1 << 20, ..BodySpec::default() };
    let got = collect_body(pin!(pieces(&vec![1; 70_000])), spec).await;
    assert_eq!(got, Err(BodyError::TooManyChunks));
}
