//! Unit tests of `frames.rs`.

use super::*;

/// The events of these bytes in pieces of this size; parts of a DATA frame are joined.
fn events(bytes: &[u8], piece: usize) -> Result<Vec<String>, String> {
    let mut splitter = FrameSplitter::default();
    let (mut found, mut data) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        splitter.read(piece, &mut |event| {
            match event {
                FrameEvent::Data { stream, bytes, end, whole } => {
                    data.extend_from_slice(bytes);
                    if let Some(whole) = whole {
                        let data = std::mem::take(&mut data);
                        let text = String::from_utf8_lossy(&data).into_owned();
                        found.push(format!("data {stream} {text} {whole} {end}"));
                    }
                }
                FrameEvent::Headers { stream, block, end } => {
                    found.push(format!("headers {stream} {block:?} {end}"));
                }
                FrameEvent::Other { kind, stream, payload, .. } => {
                    found.push(format!("{kind} {stream} {payload:?}"));
                }
            }
            Ok(())
        })?;
    }
    Ok(found)
}

#[test]
fn frames_are_split_in_any_pieces() {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9]);
    put_frame(&mut bytes, HEADERS, END_HEADERS, 1, &[0x88]);
    put_frame(&mut bytes, DATA, 0, 1, b"first");
    put_frame(&mut bytes, DATA, PADDED, 1, b"\x03paddedxyz");
    put_frame(&mut bytes, DATA, END_STREAM, 3, b"");
    put_frame(&mut bytes, HEADERS, END_STREAM | PADDED | PRIORITY, 5, &[1, 0, 0, 0, 0, 9, 0x81, 0]);
    put_frame(&mut bytes, CONTINUATION, 0, 5, &[0x82]);
    put_frame(&mut bytes, CONTINUATION, END_HEADERS, 5, &[0x83]);
    put_frame(&mut bytes, PING, 0, 0, &[1; 8]);
    let expected = [
        "4 0 [0, 3, 0, 0, 0, 9]",
        "headers 1 [136] false",
        "data 1 first 5 false",
        "data 1 padded 10 false",
        "data 3  0 true",
        "headers 5 [129, 130, 131] true",
        "6 0 [1, 1, 1, 1, 1, 1, 1, 1]",
    ];
    for piece in 1..=bytes.len() {
        assert_eq!(events(&bytes, piece).unwrap(), expected, "{piece}");
    }
}

#[test]
fn what_is_not_http2_is_refused() {
    assert!(events(b"HTTP/1.1 400 Bad Request\r\n\r\n", 100).unwrap_err().contains("HTTP/1.1 400"));
    let mut interrupted = Vec::new();
    put_frame(&mut interrupted, HEADERS, 0, 1, &[0x88]);
    put_frame(&mut interrupted, PING, 0, 0, &[0; 8]);
    assert!(events(&interrupted, 100).is_err());
    let mut padding = Vec::new();
    put_frame(&mut padding, DATA, PADDED, 1, &[9, 1]);
    assert!(events(&padding, 100).is_err());
    let mut lone = Vec::new();
    put_frame(&mut lone, CONTINUATION, END_HEADERS, 1, &[]);
    assert!(events(&lone, 100).is_err());
}
