//! NV-Status and NV-InferResponse as one line of protobuf text. A fast path writes ordinary
//! messages; all others go through the general text printer, which writes the same.

use std::fmt::Write;
use trtserver_proto::text;
use trtserver_proto::v1::{InferResponseHeader, RequestStatus, RequestStatusCode};

/// NV-Status.
pub fn format_status(status: &RequestStatus) -> String {
    let ordinary = status.code == RequestStatusCode::Success as i32 && status.msg.is_empty();
    if !ordinary || !plain(&status.server_id) {
        return text::print_line(status);
    }
    let mut out = String::with_capacity(64 + status.server_id.len());
    out.push_str("code: SUCCESS");
    if !status.server_id.is_empty() {
        let _ = write!(out, " server_id: \"{}\"", status.server_id);
    }
    if status.request_id != 0 {
        let _ = write!(out, " request_id: {}", status.request_id);
    }
    out
}

/// NV-InferResponse.
pub fn format_response_header(header: &InferResponseHeader) -> String {
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
        return text::print_line(header);
    }
    let mut out = String::with_capacity(96 + 96 * header.output.len());
    let _ = write!(out, "model_name: \"{}\"", header.model_name);
    number(&mut out, "model_version", header.model_version);
    number(&mut out, "batch_size", header.batch_size.into());
    for output in &header.output {
        let _ = write!(out, " output {{ name: \"{}\"", output.name);
        if let Some(raw) = &output.raw {
            out.push_str(" raw {");
            for d in &raw.dims {
                let _ = write!(out, " dims: {d}");
            }
            if raw.batch_byte_size != 0 {
                let _ = write!(out, " batch_byte_size: {}", raw.batch_byte_size);
            }
            out.push_str(" }");
        }
        out.push_str(" }");
    }
    if header.id != 0 {
        let _ = write!(out, " id: {}", header.id);
    }
    out
}

fn number(out: &mut String, name: &str, value: i64) {
    if value != 0 {
        let _ = write!(out, " {name}: {value}");
    }
}

/// True if a string needs no escapes.
fn plain(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\'' | b'\\'))
}

#[cfg(test)]
#[path = "header_text_tests.rs"]
mod tests;
