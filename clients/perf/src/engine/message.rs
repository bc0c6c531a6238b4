//! gRPC messages of responses: their boundaries, and the fields that tell success from failure.
//!
//! Tensors are counted, not kept: only the first bytes of a message are looked at.

use trtserver_proto::v1;

/// Length of a message prefix.
const PREFIX: usize = 5;
/// Bytes kept of each message. Status and parameters precede the tensors.
const KEPT: usize = 4096;

/// What a message says about its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// v2 unary: the call's status tells.
    V2,
    V2Stream,
    V1,
}

/// Outcome of one message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MessageOutcome {
    pub failure: Option<String>,
    /// Whether `triton_final_response` says that more responses follow.
    pub more_follow: bool,
    /// Whether it carries nothing but the final flag.
    pub empty: bool,
}

/// Splits a call's data into messages.
#[derive(Debug, Default)]
pub struct MessageReader {
    prefix: [u8; PREFIX],
    prefix_read: usize,
    remaining: usize,
    kept: Vec<u8>,
}

impl MessageReader {
    /// Whether data ended within a message.
    pub fn is_inside(&self) -> bool {
        self.prefix_read > 0
    }

    /// Takes bytes from `data`; returns the start of a message once it is complete.
    ///
    /// # Errors
    /// The message is compressed, which was not asked for.
    pub fn read(&mut self, data: &mut &[u8]) -> Result<Option<&[u8]>, String> {
        if self.prefix_read == 0 {
            self.kept.clear();
        }
        if self.prefix_read < PREFIX {
            let count = (PREFIX - self.prefix_read).min(data.len());
            let (now, rest) = data.split_at(count);
            self.prefix[self.prefix_read..self.prefix_read + count].copy_from_slice(now);
            self.prefix_read += count;
            *data = rest;
            if self.prefix_read < PREFIX {
                return Ok(None);
            }
            let [flag, length @ ..] = self.prefix;
            if flag != 0 {
                return Err(format!("the response's message has the prefix flag {flag}"));
            }
            self.remaining = u32::from_be_bytes(length) as usize;
        }
        let (now, rest) = data.split_at(self.remaining.min(data.len()));
        *data = rest;
        self.remaining -= now.len();
        let space = KEPT.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&now[..now.len().min(space)]);
        if self.remaining > 0 {
            return Ok(None);
        }
        self.prefix_read = 0;
        Ok(Some(&self.kept))
    }
}

/// Reads what a message says about its request.
pub fn message_outcome(kind: MessageKind, message: &[u8]) -> MessageOutcome {
    match kind {
        MessageKind::V2 => MessageOutcome::default(),
        MessageKind::V1 => {
            MessageOutcome { failure: v1_failure(message), ..MessageOutcome::default() }
        }
        MessageKind::V2Stream => v2_stream(message),
    }
}

/// Field 1 of a v1 response is its status.
fn v1_failure(message: &[u8]) -> Option<String> {
    let status = Fields(message).find_map(|field| match field {
        ProtoField { number: 1, bytes: Some(bytes), .. } => Some(bytes),
        _ => None,
    });
    let Some(status) = status else { return Some("a response without request_status".to_owned()) };
    // `code: SUCCESS`.
    if status.starts_with(&[0x08, 0x01]) {
        return None;
    }
    match <v1::RequestStatus as prost::Message>::decode(status) {
        Ok(status) => Some(v1_status_text(&status)),
        Err(_) => Some("a response whose request_status cannot be read".to_owned()),
    }
}

/// `[server request] CODE - message`, as the original client prints it.
pub fn v1_status_text(status: &v1::RequestStatus) -> String {
    let code = status.code().as_str_name();
    format!("[{} {}] {code} - {}", status.server_id, status.request_id, status.msg)
}

fn v2_stream(message: &[u8]) -> MessageOutcome {
    let mut outcome = MessageOutcome::default();
    for field in Fields(message) {
        match field {
            ProtoField { number: 1, bytes: Some(error), .. } if !error.is_empty() => {
                outcome.failure = Some(String::from_utf8_lossy(error).into_owned());
            }
            ProtoField { number: 2, bytes: Some(response), .. } => {
                outcome.empty = true;
                for field in Fields(response) {
                    match field {
                        ProtoField { number: 4, bytes: Some(parameter), .. } => {
                            if let Some(last) = final_flag(parameter) {
                                outcome.more_follow = !last;
                            }
                        }
                        ProtoField { number: 5 | 6, .. } => outcome.empty = false,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    outcome
}

/// The value of the parameter `triton_final_response`.
fn final_flag(parameter: &[u8]) -> Option<bool> {
    let is_final = |field: &ProtoField<'_>| {
        field.number == 1 && field.bytes == Some(b"triton_final_response".as_slice())
    };
    if !Fields(parameter).any(|field| is_final(&field)) {
        return None;
    }
    let value = Fields(parameter).find(|field| field.number == 2)?.bytes?;
    // `bool_param`; false may be left out.
    Some(Fields(value).any(|field| field.number == 1 && field.varint == 1))
}

/// A field of an encoded message. Of a truncated one, the bytes that are there.
struct ProtoField<'m> {
    number: u64,
    varint: u64,
    bytes: Option<&'m [u8]>,
}

struct Fields<'m>(&'m [u8]);

impl<'m> Iterator for Fields<'m> {
    type Item = ProtoField<'m>;

    fn next(&mut self) -> Option<ProtoField<'m>> {
        let tag = read_varint(&mut self.0)?;
        let mut field = ProtoField { number: tag >> 3, varint: 0, bytes: None };
        match tag & 7 {
            0 => field.varint = read_varint(&mut self.0)?,
            1 => self.0 = self.0.get(8..)?,
            2 => {
                let length = usize::try_from(read_varint(&mut self.0)?).ok()?;
                let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
                field.bytes = Some(bytes);
                self.0 = rest;
            }
            5 => self.0 = self.0.get(4..)?,
            _ => return None,
        }
        Some(field)
    }
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
