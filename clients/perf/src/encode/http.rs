//! HTTP/1.1 request heads.

use super::{BatchTensors, EncodeTarget, EncodedMessage, SequenceField};

/// A request whose body is `body` followed by the tensors that are not in shared memory. `headers`
/// and `body` have places to be patched, relative to each.
pub fn http_request(
    target: &EncodeTarget<'_>,
    path: &str,
    headers: (&str, Vec<(usize, SequenceField)>),
    body: (&str, Vec<(usize, SequenceField)>),
    tensors: &BatchTensors,
) -> EncodedMessage {
    let inline = || tensors.inputs.iter().filter(|input| input.region.is_none());
    let length = body.0.len() + inline().map(|input| input.bytes.len()).sum::<usize>();
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: {}\r\n", target.authority);
    let mut fields = shift_fields(headers.1, head.len());
    head += headers.0;
    head += &format!("Content-Type: application/octet-stream\r\nContent-Length: {length}\r\n");
    for (name, value) in target.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    fields.extend(shift_fields(body.1, head.len()));
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body.0.as_bytes());
    let head = bytes.len();
    for input in inline() {
        bytes.extend_from_slice(&input.bytes);
    }
    EncodedMessage { bytes, fields, head }
}

fn shift_fields(fields: Vec<(usize, SequenceField)>, by: usize) -> Vec<(usize, SequenceField)> {
    fields.into_iter().map(|(at, field)| (at + by, field)).collect()
}

/// A path segment.
pub fn escape_name(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(byte.into());
            }
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}
