//! Prints requests and responses to standard error, in curl's form: `> POST /path HTTP/1.1`,
//! `< HTTP/1.1 200 OK`.

use http::{HeaderMap, StatusCode, Version};
use std::fmt::Write;

pub(super) fn print_request(method: &str, path: &str, version: Version, headers: &HeaderMap) {
    let mut text = format!("> {method} {path} {version:?}\n");
    list(&mut text, '>', headers);
    eprint!("{text}");
}

pub(super) fn print_response(version: Version, status: StatusCode, headers: &HeaderMap) {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut text = format!("< {version:?} {} {reason}\n", status.as_u16());
    list(&mut text, '<', headers);
    eprint!("{text}");
}

pub(super) fn print_trailers(trailers: &HeaderMap) {
    let mut text = String::new();
    list(&mut text, '<', trailers);
    eprint!("{text}");
}

fn list(text: &mut String, mark: char, headers: &HeaderMap) {
    for (name, value) in headers {
        let _ = writeln!(text, "{mark} {name}: {}", String::from_utf8_lossy(value.as_bytes()));
    }
    let _ = writeln!(text, "{mark}");
}
