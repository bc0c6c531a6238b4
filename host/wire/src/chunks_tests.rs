//! Unit tests of `chunks.rs`.

use super::*;
use crate::http::body::ResponseBody;
use crate::unread::testing::limits;
use http_body::Body;
use http_body_util::BodyExt;

#[tokio::test]
async fn small_pieces_are_copied_large_ones_are_not() {
    let large = Bytes::from(vec![7; MAX_COPIED + 1]);
    let mut chunks = Chunks::from(b"head".to_vec());
    chunks.push(Bytes::from_static(b"ab"));
    chunks.push(large.clone());
    chunks.push(Bytes::new());
    chunks.push_message(&"c".to_owned());
    let mut body = ResponseBody::from_chunks(chunks);
    assert_eq!(body.size_hint().exact(), Some(large.len() as u64 + 9));
    let mut got = Vec::new();
    while let Some(frame) = body.frame().await {
        got.push(frame.unwrap().into_data().unwrap());
    }
    assert_eq!(got.len(), 3);
    assert_eq!((got[0].chunk(), got[2].chunk()), (&b"headab"[..], &b"\x0a\x01c"[..]));
    assert_eq!(got[1].chunk().as_ptr(), large.as_ptr());
    assert!(body.is_end_stream());
}

#[test]
fn large_chunks_are_unread_until_they_are_sent_or_dropped() {
    let unread = ConnectionUnread::new(limits(0, 20_000));
    let mut chunks = [vec![0; 100], vec![0; 8_000], vec![0; 9_000]].map(Chunk::from);
    count_unread(&mut chunks, &unread).unwrap();
    assert_eq!(unread.bytes(), 17_000);
    assert!(count_unread(&mut [Chunk::from(vec![0; 5_000])], &unread).is_err());
    chunks[1].advance(1_000);
    assert_eq!(unread.bytes(), 16_000);
    drop(chunks);
    assert_eq!(unread.bytes(), 0);
}
