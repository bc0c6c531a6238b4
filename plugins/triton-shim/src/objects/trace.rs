//! `TRITONSERVER_InferenceTrace`: the trace of a request of the host, valid as long as the request.

use crate::fault::Result;
use crate::handles::{ObjectKind, TypedObject};
use crate::host::{self, as_str, host_table, owned_text, str_text, trace_extension};
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use trtserver_plugin_api::abi::extensions::{TraceContext, TraceExtension};
use trtserver_plugin_api::abi::types::{Responder, Str};

pub struct TraceObject {
    responder: *mut Responder,
    table: &'static TraceExtension,
    /// Made when it is first read.
    context: OnceLock<CString>,
}

// SAFETY: the host accepts calls with a responder from any thread.
unsafe impl Send for TraceObject {}
// SAFETY: the host accepts calls with one responder from several threads at once.
unsafe impl Sync for TraceObject {}

impl TypedObject for TraceObject {
    const KIND: ObjectKind = ObjectKind::Trace;
}

impl TraceObject {
    /// The trace of a request that has one; `None` if the host offers nothing for it. The host
    /// finds out whether the responder is valid.
    pub fn new(responder: *mut Responder) -> Option<TraceObject> {
        Some(TraceObject { responder, table: trace_extension()?, context: OnceLock::new() })
    }

    /// Adds a point in time to the trace.
    pub fn report(&self, name: &CStr, at_ns: u64) -> Result<()> {
        // SAFETY: the text is valid during the call; the host checks the responder.
        unsafe {
            let error = (self.table.activity)(self.responder, as_str(name), at_ns);
            host::take_error(host_table()?, error)
        }
    }

    /// The context of the request as JSON: an object with `traceparent` and, if the client sent
    /// one, `tracestate`.
    pub fn context(&self) -> Result<&CStr> {
        if let Some(context) = self.context.get() {
            return Ok(context);
        }
        let mut context = TraceContext {
            trace_id: [0; 16],
            span_id: [0; 8],
            sampled: 0,
            pad: 0,
            state: Str { p: std::ptr::null(), n: 0 },
        };
        // SAFETY: valid for writing one context; the host checks the responder.
        unsafe {
            let error = (self.table.context)(self.responder, &raw mut context);
            host::take_error(host_table()?, error)?;
        }
        // SAFETY: valid as long as the responder, which the request keeps.
        let state = unsafe { str_text(context.state) };
        let json = context_json(&context, &state);
        Ok(self.context.get_or_init(|| owned_text(&json)))
    }
}

fn context_json(context: &TraceContext, state: &str) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (trace, span) = (hex(&context.trace_id), hex(&context.span_id));
    let flags = u8::from(context.sampled != 0);
    let parent = format!("00-{trace}-{span}-{flags:02x}");
    match state {
        "" => serde_json::json!({ "traceparent": parent }),
        state => serde_json::json!({ "traceparent": parent, "tracestate": state }),
    }
    .to_string()
}
