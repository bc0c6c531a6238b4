//! Unit tests of `headers.rs`.

use super::{CallHeaders, HeaderBlock, HeaderReader, HeaderTable};
use loona_hpack::{Decoder, Encoder};

fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    Encoder::new().encode(headers)
}

#[test]
fn every_form_of_our_headers_means_the_same() {
    let token = "a".repeat(300);
    let path = "/inference.GRPCInferenceService/ModelInfer";
    let headers = CallHeaders::new(false, path, "h:1", "test", [("x-token", token.as_str())]);
    let mut decoder = Decoder::new();
    let mut table = HeaderTable::Unknown;
    let mut read = |table: &mut HeaderTable| {
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
    table.headers_changed();
    let refilled = read(&mut table);
    assert_eq!(refilled, (literal + 4, expected.clone()));
    assert_eq!(read(&mut table), (8, expected.clone()));
    table.settings(Some(100));
    assert_eq!(read(&mut table), (literal + 1, expected.clone()));
    assert_eq!(read(&mut table), (literal, expected));
}

#[test]
fn large_headers_do_not_use_the_table() {
    let large = "a".repeat(5000);
    let headers = CallHeaders::new(false, "/s/m", "h:1", "test", [("x", large.as_str())]);
    let mut table = HeaderTable::Empty;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    headers.write(&mut table, &mut first);
    headers.write(&mut table, &mut second);
    assert_eq!(first, second);
}

/// The fields of a block as text.
#[derive(Debug, Default, PartialEq)]
struct Fields(String);

impl HeaderBlock for Fields {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        self.0 += &format!("{}: {}\n", text(name), text(value));
    }
}

#[test]
fn blocks_are_read_and_remembered() {
    let mut reader = HeaderReader::<Fields>::default();
    // More blocks than are remembered.
    for second in 0..30 {
        let block = block(&[(":status", "503"), ("date", &second.to_string())]);
        for _ in 0..2 {
            let read = reader.read(&block).unwrap();
            assert_eq!(read.0, format!(":status: 503\ndate: {second}\n"));
        }
    }
    assert!(reader.read(&[0xbe]).is_err(), "an index into a table that we do not have");
}
