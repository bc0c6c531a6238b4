//! HTTP/2 on a bare socket, as little as it takes to send wrong gRPC calls: what no client library would send.

use crate::process::PATIENCE;
use std::io::{self, Read, Write};
use std::net::TcpStream;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// How a call ended. What the trailers say is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Headers and trailers came, as for every answer and every refusal in words.
    Answered,
    /// The stream was reset.
    Reset,
    /// The whole connection was.
    HungUp,
}

/// The headers of an ordinary call.
pub fn call_headers(path: &str) -> Vec<(&str, &str)> {
    vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "test"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ]
}

/// A message behind its gRPC prefix.
pub fn message(bytes: &[u8]) -> Vec<u8> {
    prefixed(0, bytes.len() as u32, bytes)
}

/// The same with a prefix of one's own.
pub fn prefixed(flag: u8, length: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![flag];
    out.extend(length.to_be_bytes());
    out.extend(bytes);
    out
}

/// Makes one call on a connection of its own and waits for its end.
#[track_caller]
pub fn call(address: &str, headers: &[(&str, &str)], body: &[u8]) -> End {
    let mut bytes = opening();
    frame(&mut bytes, HEADERS, END_HEADERS, 1, &block(headers));
    for (i, part) in body.chunks(16_000).enumerate() {
        let last = (i + 1) * 16_000 >= body.len();
        frame(&mut bytes, DATA, if last { END_STREAM } else { 0 }, 1, part);
    }
    if body.is_empty() {
        frame(&mut bytes, DATA, END_STREAM, 1, &[]);
    }
    exchange(address, &bytes)
}

/// The same with these bytes instead of frames, behind an orderly opening.
#[track_caller]
pub fn garbage(address: &str, bytes: &[u8]) -> End {
    exchange(address, &[opening().as_slice(), bytes].concat())
}

fn opening() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frame(&mut bytes, SETTINGS, 0, 0, &[]);
    bytes
}

#[track_caller]
fn exchange(address: &str, bytes: &[u8]) -> End {
    let ended = TcpStream::connect(address).and_then(|mut stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        // It may have had enough before the end.
        let _ = stream.write_all(bytes);
        end(&mut stream)
    });
    ended.unwrap_or_else(|e| panic!("the call has no end: {e}"))
}

fn end(stream: &mut TcpStream) -> io::Result<End> {
    loop {
        let mut head = [0; 9];
        match stream.read_exact(&mut head) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Err(e),
            Err(_) => return Ok(End::HungUp),
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut rest = vec![0; length as usize];
        if stream.read_exact(&mut rest).is_err() {
            return Ok(End::HungUp);
        }
        match (head[3], head[4]) {
            (HEADERS | DATA, flags) if flags & END_STREAM != 0 => return Ok(End::Answered),
            (RST_STREAM, _) => return Ok(End::Reset),
            (GOAWAY, _) => return Ok(End::HungUp),
            (SETTINGS, flags) if flags & ACK == 0 => {
                let mut ack = Vec::new();
                frame(&mut ack, SETTINGS, ACK, 0, &[]);
                let _ = stream.write_all(&ack);
            }
            _ => {}
        }
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

/// Every header as a literal that is not remembered. Names and values are shorter than 127 bytes.
fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in headers {
        out.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "too long for one length byte: {text}");
            out.push(text.len() as u8);
            out.extend(text.bytes());
        }
    }
    out
}
