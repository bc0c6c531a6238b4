//! NV-Status and NV-InferResponse as one line of protobuf text. A fast path writes ordinary
//! messages; all others go through the general text printer, which writes the same.

use bytes::BytesMut;
use http::HeaderValue;
use std::fmt::Write;
use trtserver_proto::text;
use trtserver_proto::v1::{InferResponseHeader, RequestStatus, RequestStatusCode};
use trtserver_request::thread_block::take_piece;

/// Room for an ordinary line.
const LINE: usize = 256;

/// A line in memory that a response costs no allocation for.
pub struct HeaderLine(BytesMut);

impl HeaderLine {
    fn new() -> Self {
        let mut line = take_piece(LINE).unwrap_or_default();
        line.clear();
        Self(line)
    }

    /// `None` for a line that is not ASCII: the text printer writes ASCII alone.
    pub fn into_value(self) -> Option<HeaderValue> {
        HeaderValue::from_maybe_shared(self.0.freeze()).ok()
    }

    #[cfg(test)]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap()
    }
}

impl From<String> for HeaderLine {
    fn from(text: String) -> Self {
        Self(text.as_str().into())
    }
}

/// NV-Status.
pub fn format_status(status: &RequestStatus) -> HeaderLine {
    let ordinary = status.code == RequestStatusCode::Success as i32 && status.msg.is_empty();
    if !ordinary || !plain(&status.server_id) {
        return text::print_line(status).into();
    }
    success_line(&status.server_id, status.request_id)
}

/// NV-Status of a success, of a server whose id is [`plain`].
pub fn success_line(server_id: &str, request_id: u64) -> HeaderLine {
    let mut line = HeaderLine::new();
    let out = &mut line.0;
    out.extend_from_slice(b"code: SUCCESS");
    if !server_id.is_empty() {
        let _ = write!(out, " server_id: \"{server_id}\"");
    }
    if request_id != 0 {
        let _ = write!(out, " request_id: {request_id}");
    }
    line
}

/// NV-InferResponse.
pub fn format_response_header(header: &InferResponseHeader) -> HeaderLine {
    let ordinary = !header.model_name.is_empty()
        && plain(&header.model_name)
        && header.output.iter().all(|o| {
            o.batch_classes.is_empty()
                && o.data_type == 0
                && !o.name.is_empty()
                && plain(&o.name)
                && o.raw.as_ref().is_none_or(|raw| raw.byte_size == 0)
        });
    if !ordinary {
        return text::print_line(header).into();
    }
    let mut line = HeaderLine::new();
    let out = &mut line.0;
    let _ = write!(out, "model_name: \"{}\"", header.model_name);
    number(out, "model_version", header.model_version);
    number(out, "batch_size", header.batch_size.into());
    for output in &header.output {
        let _ = write!(out, " output {{ name: \"{}\"", output.name);
        if let Some(raw) = &output.raw {
            out.extend_from_slice(b" raw {");
            for d in &raw.dims {
                let _ = write!(out, " dims: {d}");
            }
            if raw.batch_byte_size != 0 {
                let _ = write!(out, " batch_byte_size: {}", raw.batch_byte_size);
            }
            out.extend_from_slice(b" }");
        }
        out.extend_from_slice(b" }");
    }
    if header.id != 0 {
        let _ = write!(out, " id: {}", header.id);
    }
    line
}

fn number(out: &mut BytesMut, name: &str, value: i64) {
    if value != 0 {
        let _ = write!(out, " {name}: {value}");
    }
}

/// True if a string needs no escapes.
pub fn plain(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\'' | b'\\'))
}

#[cfg(test)]
#[path = "header_text_tests.rs"]
mod tests;
