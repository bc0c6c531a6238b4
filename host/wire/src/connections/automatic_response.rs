//! Responses that hyper makes itself, for heads that it cannot read, have no body. Here they get
//! one, which says what is wrong.

/// A response with a text in place of one that hyper made.
pub fn with_text(response: &[u8]) -> Option<Vec<u8>> {
    const VERSION: &[u8] = b"HTTP/1.1 ";
    let status = response.strip_prefix(VERSION)?.get(..3)?;
    let (reason, text) = match status {
        b"400" => (
            "Bad Request",
            "the head of the request is malformed: expected METHOD PATH HTTP/1.1, headers NAME: VALUE, one number in \
             Content-Length, and no Transfer-Encoding but chunked, without TLS",
        ),
        b"414" => ("URI Too Long", "the path of the request has more than 65534 bytes"),
        b"431" => (
            "Request Header Fields Too Large",
            "the request has more than 100 headers, or a head of more than 400 KiB",
        ),
        _ => return None,
    };
    let status = String::from_utf8_lossy(status);
    let body = format!(r#"{{"error":"{text}"}}"#);
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    Some((head + &body).into_bytes())
}

#[cfg(test)]
#[path = "automatic_response_tests.rs"]
mod tests;
