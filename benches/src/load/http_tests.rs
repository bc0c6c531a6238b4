//! Unit tests of `http.rs`.

use super::ends;

#[test]
fn response_length_is_parsed() {
    let head = b"HTTP/1.1 200 OK\r\nX: y\r\ncontent-length: 3\r\n\r\n";
    assert_eq!(ends(&head[..20]).unwrap(), None);
    assert_eq!(ends(head).unwrap(), Some((head.len(), head.len() + 3)));
    assert!(ends(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap_err().contains("404"));
    assert!(ends(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
}
