//! The records of a trace in Triton's JSON format.

use crate::request_trace::{RequestSpan, RequestTrace};
use crate::settings::TraceLevels;
use std::fmt::Write;

/// Appends the records of a trace, separated by commas: those of each request with its id.
pub fn write_records(trace: &RequestTrace, levels: TraceLevels, out: &mut String) {
    for (i, span) in trace.spans.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_span(span, levels, out);
    }
}

// Writing into a string cannot fail.
fn write_span(span: &RequestSpan, levels: TraceLevels, out: &mut String) {
    let mut buffer = itoa::Buffer::new();
    let id = buffer.format(span.id);
    out.push_str("{\"id\":");
    out.push_str(id);
    out.push_str(",\"model_name\":");
    push_json(&span.model, out);
    let _ = write!(out, ",\"model_version\":{},\"request_id\":", span.version);
    push_json(&span.request_id, out);
    if span.parent_id != 0 {
        let _ = write!(out, ",\"parent_id\":{}", span.parent_id);
    }
    out.push('}');
    if levels.timestamps {
        for (activity, ns) in &span.timestamps {
            out.push_str(",{\"id\":");
            out.push_str(id);
            out.push_str(",\"timestamps\":[{\"name\":");
            push_json(&activity.name(), out);
            out.push_str(",\"ns\":");
            out.push_str(itoa::Buffer::new().format(*ns));
            out.push_str("}]}");
        }
    }
    for tensor in &span.tensors {
        let _ = write!(
            out,
            ",{{\"id\":{id},\"activity\":\"{}\",\"tensor\":{{\"name\":{},\"data\":{},\"shape\":\"{}\",\"dtype\":\"{}\"}}}}",
            tensor.activity.name(),
            json_text(&tensor.name),
            json_text(&tensor.data),
            tensor.shape,
            tensor.dtype
        );
    }
}

/// Appends a text with quotes.
fn push_json(text: &str, out: &mut String) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        out.extend(["\"", text, "\""]);
    } else {
        out.push_str(&json_text(text));
    }
}

/// A text with quotes.
fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
