//! Unit tests of `receive.rs`.

use super::*;
use http_body::Frame;
use http_body_util::StreamBody;
use std::convert::Infallible;
use std::io::Write;

async fn get(bytes: &[u8], step: usize, length: bool, limit: u64) -> Result<Bytes> {
    let frames: Vec<Result<Frame<Bytes>, Infallible>> =
        bytes.chunks(step).map(|c| Ok(Frame::data(Bytes::copy_from_slice(c)))).collect();
    let body = StreamBody::new(tokio_stream::iter(frames));
    let length = length.then_some(bytes.len() as u64);
    let spec = BodySpec { length, limit, ..BodySpec::default() };
    receive_body(body, spec, |n| Error::invalid(format!("{n} bytes"))).await
}

#[tokio::test]
async fn body_above_the_limit_is_read_to_its_end() {
    for step in [1, 7, 64, 999, 1000] {
        for length in [true, false] {
            assert_eq!(get(&[7; 1000], step, length, 1000).await.unwrap(), vec![7; 1000]);
            let refused = get(&[7; 1000], step, length, 999).await.unwrap_err();
            assert_eq!(refused.message, "1000 bytes");
        }
    }
    assert_eq!(get(&[], 1, false, 10).await.unwrap(), "");
    let refused = get(&vec![0; 70_000], 1, false, 1 << 20).await.unwrap_err();
    assert!(refused.message.starts_with("Chunked request body exceeds maximum of 65536"));
}

#[tokio::test]
async fn decompression_is_bounded() {
    let plain = vec![7; 10_000];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    gzip.write_all(&plain).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
    zlib.write_all(&plain).unwrap();
    for packed in [gzip.finish().unwrap(), zlib.finish().unwrap()] {
        let packed = Bytes::from(packed);
        assert_eq!(
            decompress_body(packed.clone(), 10_000, MemoryTag::default()).await.unwrap(),
            plain
        );
        let refused = decompress_body(packed, 9_999, MemoryTag::default()).await.unwrap_err();
        assert!(refused.message.contains("exceeds the maximum allowed input size of 9999"));
    }
    assert!(decompress_body("nonsense".into(), 100, MemoryTag::default()).await.is_err());
}

#[test]
fn content_length_is_checked() {
    for (text, want) in [("0", Some(0)), ("2147483647", Some(2147483647)), ("2147483648", None)] {
        let headers = HeaderMap::from_iter([(CONTENT_LENGTH, text.parse().unwrap())]);
        assert_eq!(content_length(&headers).ok().flatten(), want, "{text}");
    }
}
