//! Unit tests of `response.rs`.

use super::{ReadProgress, ResponseReader};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nX: y\r\ncontent-length: 3\r\n\r\nabc";

fn complete(failure: Option<&str>, close: bool) -> ReadProgress {
    ReadProgress::Complete { failure: failure.map(str::to_owned), close }
}

#[test]
fn responses_are_read_in_any_pieces() {
    for cut in 0..OK.len() {
        let mut reader = ResponseReader::default();
        if cut > 0 {
            assert_eq!(reader.read(&OK[..cut]), Ok(ReadProgress::Incomplete), "{cut}");
            assert!(reader.has_begun());
        }
        assert_eq!(reader.read(&OK[cut..]), Ok(complete(None, false)), "{cut}");
        assert!(!reader.has_begun());
        assert_eq!(reader.read(OK), Ok(complete(None, false)));
    }
}

#[test]
fn failures_carry_the_server_text() {
    let cases: [(&[u8], &str); 4] = [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 17\r\n\r\n{\"error\":\"wrong\"}", "HTTP status 400: wrong"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "HTTP status 503"),
        (b"HTTP/1.1 502 Bad\r\nContent-Length: 7\r\n\r\n<html/>", "HTTP status 502: <html/>"),
        (
            b"HTTP/1.1 400 Bad\r\nNV-Status: code: INVALID_ARG msg: \"no\" server_id: \"s:0\" request_id: 4\r\nContent-Length: 0\r\n\r\n",
            "[s:0 4] INVALID_ARG - no",
        ),
    ];
    for (bytes, text) in cases {
        assert_eq!(ResponseReader::default().read(bytes), Ok(complete(Some(text), false)));
    }
}

#[test]
fn chunked_responses_are_read_in_any_pieces() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in ["0\r\n\r\n", "3;x=y\r\nabc\r\n00B\r\n0\r\n\r\n567890\r\n0\r\nTrailer: 1\r\n\r\n"] {
        let response = [HEAD, body].concat();
        for cut in 1..response.len() {
            let (first, second) = response.as_bytes().split_at(cut);
            let mut reader = ResponseReader::default();
            assert_eq!(reader.read(first), Ok(ReadProgress::Incomplete), "{cut}");
            assert_eq!(reader.read(second), Ok(complete(None, false)), "{cut}");
            assert!(!reader.has_begun());
        }
    }
    let failed =
        b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nno\r\n1\r\nt\r\n0\r\n\r\n";
    let read = ResponseReader::default().read(failed);
    assert_eq!(read, Ok(complete(Some("HTTP status 400: not"), false)));
    let wrong = [
        ("+3\r\n", "not the size of a chunk of the response: \"+3\""),
        ("\r\n", "not the size"),
        ("fffffffffffffffff\r\n", "not the size"),
        ("1\r\nab\r\n", "longer than its size"),
        ("0\r\n\r\nHTTP", "more bytes than its chunks"),
    ];
    for (body, text) in wrong {
        let read = ResponseReader::default().read([HEAD, body].concat().as_bytes());
        assert!(read.as_ref().is_err_and(|e| e.contains(text)), "{read:?}, expected {text}");
    }
    let endless = [HEAD, &"1".repeat(9000)].concat();
    assert!(ResponseReader::default().read(endless.as_bytes()).is_err());
}

#[test]
fn connection_close_is_noticed() {
    let bytes = b"HTTP/1.0 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(ResponseReader::default().read(bytes), Ok(complete(None, true)));
}

#[test]
fn invalid_responses_are_refused() {
    let cases: [(&[u8], &str); 7] = [
        (b"<html>", "not an HTTP response"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "no HTTP status"),
        (b"HTTP/1.1\r\n\r\n", "no HTTP status"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "no Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n", "Content-Length is \"-4\""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "Transfer-Encoding is \"gzip\""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", "more bytes"),
    ];
    for (bytes, text) in cases {
        let read = ResponseReader::default().read(bytes);
        assert!(read.as_ref().is_err_and(|e| e.contains(text)), "{read:?}, expected {text}");
    }
    let endless = [OK[..20].to_vec(), vec![b'x'; 70_000]].concat();
    assert!(ResponseReader::default().read(&endless).is_err());
}
