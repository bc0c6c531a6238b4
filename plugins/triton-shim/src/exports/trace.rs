//! `TRITONSERVER_InferenceTrace*` as backends use it. A request that is not traced has null, which
//! every function takes; what a backend would add to its trace is dropped.

use super::guard::{Maybe, Out, Text, export};
use crate::objects::trace::TraceObject;
use std::ffi::{c_char, c_int};
use std::ptr;

export! {
    /// A point that a backend adds to a trace.
    fn TRITONSERVER_InferenceTraceReportActivity(
        trace: Maybe<TraceObject>,
        timestamp: u64,
        name: Text,
    ) {
        if let Some(trace) = trace.0 {
            trace.report(name.c(), timestamp)?;
        }
    }

    /// Null: the server traces nested inference itself.
    fn TRITONSERVER_InferenceTraceSpawnChildTrace(
        trace: Maybe<TraceObject>,
        child_trace: Out<*mut TraceObject>,
    ) {
        let _ = trace.0;
        child_trace.set(ptr::null_mut());
    }

    /// The W3C context as JSON, valid as long as the request; an empty text without a trace.
    fn TRITONSERVER_InferenceTraceContext(
        trace: Maybe<TraceObject>,
        trace_context: Out<*const c_char>,
    ) {
        let context = match &trace.0 {
            Some(trace) => trace.context()?.as_ptr(),
            None => c"".as_ptr(),
        };
        trace_context.set(context);
    }

    /// Nothing to free: the request owns its trace.
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
