//! The extension `trts.trace`: what backends add to the traces of requests, and their contexts.

use super::guard::{guard_entry, put_out};
use crate::batch::slot::ExecutingHandle;
use crate::text::read_text;
use trtserver_base::error::Error as HostError;
use trtserver_plugin_api::abi::extensions::{TraceContext, TraceExtension};
use trtserver_plugin_api::abi::types::{Error, Responder, Str};

pub(super) static TABLE: TraceExtension =
    TraceExtension { size: size_of::<TraceExtension>() as u64, activity, context };

unsafe extern "C" fn activity(responder: *mut Responder, name: Str, at_ns: u64) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a handle of ours; the text is valid during the call.
        let (handle, name) = unsafe { (ExecutingHandle::from_raw(responder)?, read_text(name)) };
        if let Some(trace) = handle.responder()?.trace() {
            trace.report(&name, at_ns);
        }
        Ok(())
    })
}

unsafe extern "C" fn context(responder: *mut Responder, out: *mut TraceContext) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a handle of ours.
        let responder = unsafe { ExecutingHandle::from_raw(responder) }?.responder()?;
        let trace =
            responder.trace().ok_or_else(|| HostError::unsupported("the request has no trace"))?;
        let context = trace.outgoing_context();
        // The trace keeps it, and the responder the trace.
        let state = trace.trace_state();
        let view = TraceContext {
            trace_id: context.trace_id.0,
            span_id: context.span_id.0,
            sampled: context.sampled.into(),
            pad: 0,
            state: Str { p: state.as_ptr(), n: state.len() as u64 },
        };
        // SAFETY: the backend passes null, or a pointer that is valid for writing a context.
        unsafe { put_out(out, view) }
    })
}
