//! Unit tests of `headers.rs`.

use super::{CallHeaders, HeaderInfo, HeaderReader, Table};
use loona_hpack::{Decoder, Encoder};

fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    Encoder::new().encode(headers)
}

#[test]
fn every_form_of_our_headers_means_the_same() {
    let more = [("x-token".to_owned(), "a".repeat(300))];
    let headers = CallHeaders::new("/inference.GRPCInferenceService/ModelInfer", "h:1", &more);
    let mut decoder = Decoder::new();
    let mut table = Table::Unknown;
    let mut read = |table: &mut Table| {
        let mut out = Vec::new();
        headers.write(table, &mut out);
        let fields = decoder.decode(&out).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (out.len(), fields.iter().map(|(n, v)| (text(n), text(v))).collect::<Vec<_>>())
    };
    let (literal, expected) = read(&mut table);
    assert_eq!(expected.len(), 8);
    assert!(expected.contains(&("te".to_owned(), "trailers".to_owned())));
    table.settings(None);
    assert_eq!(read(&mut table), (literal, expected.clone()));
    for _ in 0..2 {
        // One byte a field.
        assert_eq!(read(&mut table), (8, expected.clone()));
    }
    table.settings(Some(100));
    assert_eq!(read(&mut table), (literal + 1, expected.clone()));
    assert_eq!(read(&mut table), (literal, expected));
}

#[test]
fn large_headers_do_not_use_the_table() {
    let more = [("x".to_owned(), "a".repeat(5000))];
    let headers = CallHeaders::new("/s/m", "h:1", &more);
    let mut table = Table::Empty;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    headers.write(&mut table, &mut first);
    headers.write(&mut table, &mut second);
    assert_eq!(first, second);
}

#[test]
fn status_and_message_are_read() {
    let mut reader = HeaderReader::default();
    let head = block(&[(":status", "200"), ("content-type", "application/grpc")]);
    let info = |http, grpc, message: &str| HeaderInfo {
        http_status: http,
        grpc_status: grpc,
        message: message.to_owned(),
    };
    for _ in 0..2 {
        assert_eq!(reader.read(&head), Ok(&info(Some(200), None, "")));
        let trailers = block(&[("grpc-status", "0")]);
        assert_eq!(reader.read(&trailers), Ok(&info(None, Some(0), "")));
    }
    let failed = block(&[("grpc-status", "5"), ("grpc-message", "no model%3A 100%, %c3%a4")]);
    assert_eq!(reader.read(&failed), Ok(&info(None, Some(5), "no model: 100%, ä")));
    // More blocks than are remembered.
    for second in 0..30 {
        let date = block(&[(":status", "503"), ("date", &second.to_string())]);
        assert_eq!(reader.read(&date), Ok(&info(Some(503), None, "")));
    }
    assert!(reader.read(&[0xbe]).is_err(), "an index into a table that we do not have");
}
