//! `GET /v2/trtserver/requests` and `/v2/trtserver/requests/{id}`, extensions of this server: where
//! the time of single requests went.

use super::json::write::{Object, write_array, write_string};
use super::management_json::{write_nested_object, write_object};
use trtserver_base::error::{Error, Result};
use trtserver_request_trace::{Activity, BatchFacts, RequestSpan, RequestTrace};
use trtserver_wire::context::FrontendContext;

/// The traces in memory, the newest first, without details.
pub fn requests_json(ctx: &FrontendContext) -> Vec<u8> {
    let traces = ctx.tracer.recent().list();
    write_object(|o| {
        write_array(o.key("requests"), &traces, |out, trace: &RequestTrace| {
            write_nested_object(out, |o| write_summary(o, trace));
        });
        o.plain("dropped", ctx.tracer.stats().all_dropped());
    })
}

/// The newest trace with this id.
///
/// # Errors
/// There is none.
pub fn request_json(ctx: &FrontendContext, encoded: &str) -> Result<Vec<u8>> {
    let id = decode_percent(encoded);
    let trace = ctx.tracer.recent().find(&id).ok_or_else(|| {
        Error::not_found(format!(
            "no trace of a request with the id '{id}' is in memory: it was not traced (GET /v2/trace/setting, \
             --trace-slow-ms), or newer ones have displaced it (--trace-kept)"
        ))
    })?;
    Ok(write_object(|o| {
        write_summary(o, &trace);
        write_array(o.key("spans"), &trace.spans, |out, span| {
            write_nested_object(out, |o| write_span(o, &trace, span));
        });
    }))
}

fn write_summary(o: &mut Object<'_>, trace: &RequestTrace) {
    let root = trace.root();
    o.string("id", &root.request_id);
    o.plain("trace", root.id);
    if let Some(context) = &trace.context {
        o.string("traceparent", &context.traceparent());
    }
    o.string("kept", trace.reason.name());
    o.string("model", &root.model);
    o.string("version", &root.version.to_string());
    o.string("protocol", trace.wire.name());
    if let Some(caller) = &trace.caller {
        o.string("caller", caller);
    }
    if let Some(status) = trace.status {
        o.plain("status", status);
    }
    if let Some(failure) = &root.failure {
        o.string("error", &failure.message);
    }
    o.plain("began_unix_ms", trace.unix_ns(trace.start_ns) / 1_000_000);
    o.plain("total_us", micros(trace.duration_ns()));
    o.plain("input_bytes", trace.input_bytes);
    o.plain("output_bytes", trace.output_bytes);
}

fn write_span(o: &mut Object<'_>, trace: &RequestTrace, span: &RequestSpan) {
    o.plain("trace", span.id);
    if span.parent_id != 0 {
        o.plain("parent", span.parent_id);
    }
    o.string("model", &span.model);
    o.string("version", &span.version.to_string());
    o.plain("rows", span.rows);
    o.plain("responses", span.responses);
    if let Some(failure) = &span.failure {
        o.string("error", &failure.message);
    }
    for (key, from, to) in phases(trace) {
        if let Some(ns) = span.between(&from, &to) {
            o.plain(key, micros(ns));
        }
    }
    if let Some(batch) = &span.batch {
        let out = o.key("batch");
        write_nested_object(out, |o| write_batch(o, batch, span));
    }
    write_array(o.key("timeline"), &span.timestamps, |out, (activity, ns)| {
        write_nested_object(out, |o| {
            o.string("name", &activity.name());
            let after = ns.cast_signed() - trace.start_ns.cast_signed();
            o.plain("us", after as f64 / 1e3);
        });
    });
}

/// Parts of the time of a request: name, from, to.
fn phases(trace: &RequestTrace) -> [(&'static str, Activity, Activity); 6] {
    use Activity::*;
    let (receive, send) = match trace.wire.is_http() {
        true => ((HttpRecvStart, HttpRecvEnd), (HttpSendStart, HttpSendEnd)),
        false => ((GrpcWaitReadStart, GrpcWaitReadEnd), (GrpcSendStart, GrpcSendEnd)),
    };
    [
        ("receive_us", receive.0, receive.1),
        ("queue_us", QueueStart, ComputeStart),
        ("copy_input_us", ComputeStart, ComputeInputEnd),
        ("compute_us", ComputeInputEnd, ComputeOutputStart),
        ("copy_output_us", ComputeOutputStart, ComputeEnd),
        ("send_us", send.0, send.1),
    ]
}

fn write_batch(o: &mut Object<'_>, batch: &BatchFacts, span: &RequestSpan) {
    o.plain("number", batch.number);
    o.string("instance", &batch.instance);
    o.plain("requests", batch.requests);
    o.plain("rows", batch.rows);
    o.string("closed", batch.close_reason);
    // Itself once: ids need not be unique.
    let mut itself = true;
    let others = batch.request_ids.iter().flat_map(|ids| ids.iter()).filter(|id| {
        let is_itself = itself && span.request_id.starts_with(id.as_str());
        itself &= !is_itself;
        !is_itself
    });
    write_array(o.key("with"), others, |out, id| write_string(out, id.as_bytes()));
}

/// Microseconds with three digits after the point.
fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Ids are free text, so clients percent-encode what a path cannot have. A sign without two digits
/// stands for itself.
fn decode_percent(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let digits = bytes.get(i + 1..i + 3).and_then(|two| std::str::from_utf8(two).ok());
        match digits.filter(|_| bytes[i] == b'%').map(|two| u8::from_str_radix(two, 16)) {
            Some(Ok(byte)) => {
                decoded.push(byte);
                i += 3;
            }
            _ => {
                decoded.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
