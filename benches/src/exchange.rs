//! An encoded request, and how its response is checked.

use crate::Result;
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use serde_json::Value;

/// The transport of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Http1,
    Grpc,
    /// Messages on a gRPC stream.
    Stream,
}

#[derive(Clone)]
pub struct Exchange {
    /// Path of the gRPC method; empty for HTTP.
    pub path: String,
    /// HTTP: head and body. gRPC: length-prefixed message.
    pub message: Bytes,
    pub expect: Expect,
}

/// Expected body of a response. Cheap to check, so that every response is checked.
#[derive(Clone)]
pub enum Expect {
    Starts(Bytes),
    Ends(Bytes),
    /// JSON whose first output holds these numbers.
    Numbers(Vec<f32>),
}

impl Expect {
    pub fn check(&self, body: &[u8]) -> Result<()> {
        let right = match self {
            Expect::Starts(bytes) => body.starts_with(bytes),
            Expect::Ends(bytes) => body.ends_with(bytes),
            Expect::Numbers(numbers) => numbers_of(body).is_some_and(|got| got == *numbers),
        };
        if right {
            return Ok(());
        }
        let shown = &body[..body.len().min(300)];
        Err(format!(
            "a wrong response of {} bytes: {}",
            body.len(),
            String::from_utf8_lossy(shown).escape_debug()
        ))
    }
}

fn numbers_of(body: &[u8]) -> Option<Vec<f32>> {
    let response: Value = serde_json::from_slice(body).ok()?;
    let data = response.pointer("/outputs/0/data")?.as_array()?;
    data.iter().map(|n| n.as_f64().map(|n| n as f32)).collect()
}

/// An HTTP/1.1 keep-alive request.
pub fn http(path: &str, headers: &str, body: &[u8], expect: Expect) -> Exchange {
    let mut message = BytesMut::with_capacity(body.len() + 512);
    let length = body.len();
    message.put_slice(
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n\
             {headers}Content-Length: {length}\r\n\r\n"
        )
        .as_bytes(),
    );
    message.put_slice(body);
    Exchange { path: String::new(), message: message.freeze(), expect }
}

/// A unary gRPC call.
pub fn grpc(path: &str, request: &impl Message, expect: Expect) -> Exchange {
    let length = request.encoded_len();
    let mut message = BytesMut::with_capacity(5 + length);
    message.put_u8(0);
    message.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.put_slice(&request.encode_to_vec());
    Exchange { path: path.to_owned(), message: message.freeze(), expect }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
