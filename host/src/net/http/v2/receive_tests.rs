//! Unit tests of `receive.rs`.

use super::*;
use http_body::Frame;
use http_body_util::StreamBody;
use std::convert::Infallible;
use std::io::Write;

fn body(bytes: &[u8], step: usize) -> impl http_body::Body<Data = Bytes> + use<> {
    let frames: Vec<Result<Frame<Bytes>, Infallible>> =
        bytes.chunks(step).map(|c| Ok(Frame::data(Bytes::copy_from_slice(c)))).collect();
    StreamBody::new(tokio_stream::iter(frames))
}

async fn get(bytes: &[u8], step: usize, length: bool, limit: u64) -> Result<Bytes> {
    let length = length.then_some(bytes.len() as u64);
    let too_large = |n| Error::invalid(format!("{n} bytes"));
    receive(body(bytes, step), length, 37, None, limit, too_large).await
}

#[tokio::test]
async fn whole_and_aligned() {
    let bytes: Vec<u8> = (0..1000).map(|i| i as u8).collect();
    for step in [1, 7, 64, 999, 1000] {
        for length in [true, false] {
            let got = get(&bytes, step, length, 1000).await.unwrap();
            assert_eq!(got, bytes, "pieces of {step}");
            // One piece stays where it came.
            assert!(step == 1000 || (got.as_ptr() as usize + 37).is_multiple_of(ALIGN));
            let refused = get(&bytes, step, length, 999).await.unwrap_err();
            assert_eq!(refused.message, "1000 bytes");
        }
    }
    assert_eq!(get(&[], 1, false, 10).await.unwrap(), "");
    let one = Bytes::from(bytes);
    let too_large = |_| Error::invalid("");
    let body = http_body_util::Full::new(one.clone());
    let got = receive(body, Some(1000), 37, None, 1000, too_large).await.unwrap();
    assert_eq!(got.as_ptr(), one.as_ptr());
}

#[tokio::test]
async fn too_many_chunks() {
    let refused = get(&vec![0; 70_000], 1, false, 1 << 20).await.unwrap_err();
    assert!(refused.message.starts_with("Chunked request body exceeds maximum of 65536"));
}

#[tokio::test]
async fn expanding() {
    let plain = vec![7; 10_000];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    gzip.write_all(&plain).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
    zlib.write_all(&plain).unwrap();
    for packed in [gzip.finish().unwrap(), zlib.finish().unwrap()] {
        let packed = Bytes::from(packed);
        assert_eq!(expand(packed.clone(), 10_000).await.unwrap(), plain);
        let refused = expand(packed, 9_999).await.unwrap_err();
        assert!(refused.message.contains("exceeds the maximum allowed input size of 9999"));
    }
    assert!(expand("nonsense".into(), 100).await.is_err());
}

#[test]
fn lengths() {
    for (text, want) in [("0", Some(0)), ("2147483647", Some(2147483647)), ("2147483648", None)] {
        let headers = HeaderMap::from_iter([(CONTENT_LENGTH, text.parse().unwrap())]);
        assert_eq!(content_length(&headers).ok().flatten(), want, "{text}");
    }
}
