//! `TRITONSERVER_InferenceTrace*` as backends use it. Requests have no trace object: the server
//! writes traces itself. So these functions get null, and what a backend would add to a trace is
//! dropped.

use super::guard::{Maybe, Out, TextMaybe, export};
use crate::objects::server::TraceObject;
use std::ffi::{c_char, c_int};
use std::ptr;

export! {
    /// A point that a backend adds to a trace: ignored.
    fn TRITONSERVER_InferenceTraceReportActivity(
        trace: Maybe<TraceObject>,
        _timestamp: u64,
        _name: TextMaybe,
    ) {
        let _ = trace.0;
    }

    /// Null: there is no trace for nested inference.
    fn TRITONSERVER_InferenceTraceSpawnChildTrace(
        trace: Maybe<TraceObject>,
        child_trace: Out<*mut TraceObject>,
    ) {
        let _ = trace.0;
        child_trace.set(ptr::null_mut());
    }

    /// An empty text: there is no context.
    fn TRITONSERVER_InferenceTraceContext(
        trace: Maybe<TraceObject>,
        trace_context: Out<*const c_char>,
    ) {
        let _ = trace.0;
        trace_context.set(c"".as_ptr());
    }

    /// Nothing to free; null is what a backend has.
    fn TRITONSERVER_InferenceTraceDelete(trace: Maybe<TraceObject>) {
        let _ = trace.0;
    }
}

export! {
    /// Name of a trace level: a constant.
    fn TRITONSERVER_InferenceTraceLevelString(level: c_int) -> *const c_char, c"<unknown>".as_ptr(); {
        Ok(match level {
            0 => c"DISABLED",
            1 => c"MIN",
            2 => c"MAX",
            4 => c"TIMESTAMPS",
            8 => c"TENSORS",
            _ => c"<unknown>",
        }.as_ptr())
    }

    /// Name of an activity in a trace: a constant.
    fn TRITONSERVER_InferenceTraceActivityString(activity: c_int) -> *const c_char, c"<unknown>".as_ptr(); {
        Ok(match activity {
            0 => c"REQUEST_START",
            1 => c"QUEUE_START",
            2 => c"COMPUTE_START",
            3 => c"COMPUTE_INPUT_END",
            4 => c"COMPUTE_OUTPUT_START",
            5 => c"COMPUTE_END",
            6 => c"REQUEST_END",
            7 => c"TENSOR_QUEUE_INPUT",
            8 => c"TENSOR_BACKEND_INPUT",
            9 => c"TENSOR_BACKEND_OUTPUT",
            10 => c"CUSTOM_ACTIVITY",
            _ => c"<unknown>",
        }.as_ptr())
    }
}
