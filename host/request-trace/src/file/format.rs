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
    let RequestSpan { id, parent_id, version, .. } = span;
    let (model, request_id) = (json_text(&span.model), json_text(&span.request_id));
    let _ = write!(
        out,
        "{{\"id\":{id},\"model_name\":{model},\"model_version\":{version},\"request_id\":{request_id}"
    );
    if *parent_id != 0 {
        let _ = write!(out, ",\"parent_id\":{parent_id}");
    }
    out.push('}');
    if levels.timestamps {
        for (activity, ns) in &span.timestamps {
            let name = json_text(&activity.name());
            let _ =
                write!(out, ",{{\"id\":{id},\"timestamps\":[{{\"name\":{name},\"ns\":{ns}}}]}}");
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

/// A text with quotes.
fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
