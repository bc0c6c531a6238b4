//! Unit tests of `automatic_response.rs`.

use super::*;

#[test]
fn refusals_get_a_text() {
    let automatic = |status: &str| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-length: 0\r\ndate: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n"
        )
    };
    for (status, text) in [
        ("400 Bad Request", "malformed"),
        ("414 URI Too Long", "path"),
        ("431 Request Header Fields Too Large", "more than 100 headers"),
    ] {
        let sent = String::from_utf8(with_text(automatic(status).as_bytes()).unwrap()).unwrap();
        let (head, body) = sent.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
        assert!(body.starts_with(r#"{"error":"#) && body.contains(text), "{body}");
    }
    for other in ["200 OK", "500 Internal Server Error"] {
        assert_eq!(with_text(automatic(other).as_bytes()), None);
    }
    assert_eq!(with_text(b"HTTP/1.1 4"), None);
}
