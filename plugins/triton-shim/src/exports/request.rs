//! `TRITONBACKEND_Request*`: the requests of a batch.

use super::guard::{Ended, Out, Text, TextMaybe, export};
use crate::fault::TritonFault;
use crate::handles::{self, LiveObject};
use crate::host::c_str;
use crate::objects::parameter::parameter_type;
use crate::objects::request::{InputObject, RequestObject, RequestSource};
use crate::objects::trace::TraceObject;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use trtserver_plugin_api::abi::request::request_flags;
use trtserver_plugin_api::abi::types::param;

/// Everything of the request is released.
const RELEASE_ALL: u32 = 1;
/// The request goes back to the queue.
const RELEASE_RESCHEDULE: u32 = 2;

fn no_such(what: &str, index: u32, n: usize) -> TritonFault {
    TritonFault::invalid(format_args!("the request has {n} {what}, index {index} is none of them"))
}

export! {
    /// The id, owned by the request; empty if it has none.
    fn TRITONBACKEND_RequestId(request: LiveObject<RequestObject>, id: Out<*const c_char>) {
        id.set(c_str(request.host()?.view().id));
    }

    /// Whether the client has cancelled the request: one atomic load.
    fn TRITONBACKEND_RequestIsCancelled(request: LiveObject<RequestObject>, is_cancelled: Out<u8>) {
        is_cancelled.set(request.host()?.reply.is_cancelled().into());
    }

    /// The correlation id, 0 if there is none. An error if it is a text.
    fn TRITONBACKEND_RequestCorrelationId(request: LiveObject<RequestObject>, id: Out<u64>) {
        let view = request.host()?.view();
        if view.correlation_id_string.n != 0 {
            return Err(TritonFault::invalid("the correlation id of the request is not an unsigned integer"));
        }
        id.set(view.correlation_id);
    }

    /// The correlation id as text, owned by the request. An error if it is a number, as which
    /// Triton counts none.
    fn TRITONBACKEND_RequestCorrelationIdString(request: LiveObject<RequestObject>, id: Out<*const c_char>) {
        let view = request.host()?.view();
        if view.correlation_id_string.n == 0 {
            return Err(TritonFault::invalid("the correlation id of the request is not a string"));
        }
        id.set(c_str(view.correlation_id_string));
    }

    /// 1 for the first and 2 for the last request of a sequence.
    fn TRITONBACKEND_RequestFlags(request: LiveObject<RequestObject>, flags: Out<u32>) {
        let sequence = request_flags::SEQUENCE_START | request_flags::SEQUENCE_END;
        flags.set(request.host()?.view().flags & sequence);
    }

    /// The time limit that the client gave; without one, the time from arrival to the deadline; 0 =
    /// for ever.
    fn TRITONBACKEND_InferenceRequestTimeoutMicroseconds(
        request: LiveObject<RequestObject>,
        timeout: Out<u64>,
    ) {
        let view = request.host()?.view();
        timeout.set(match (view.timeout_us, view.deadline_ns) {
            (0, 0) => 0,
            (given @ 1.., _) => given,
            (0, deadline) => (deadline.saturating_sub(view.received_ns) / 1000).max(1),
        });
    }

    /// The trace of the request, owned by it; null if it is not traced.
    fn TRITONBACKEND_RequestTrace(request: LiveObject<RequestObject>, trace: Out<*mut TraceObject>) {
        trace.set(request.host()?.trace().map_or(ptr::null_mut(), |trace| trace.raw()));
    }

    /// Number of parameters.
    fn TRITONBACKEND_RequestParameterCount(request: LiveObject<RequestObject>, count: Out<u32>) {
        count.set(request.host()?.params().len() as u32);
    }

    /// A parameter, owned by the request: the value is a text or points at an `int64_t`, `bool` or
    /// `double`.
    fn TRITONBACKEND_RequestParameter(
        request: LiveObject<RequestObject>,
        index: u32,
        key: Out<*const c_char>,
        kind: Out<c_int>,
        vvalue: Out<*const c_void>,
    ) {
        let params = request.host()?.params();
        let found = params.get(index as usize);
        let found = found.ok_or_else(|| no_such("parameters", index, params.len()))?;
        let bits = (&raw const found.bits).cast();
        let (number, value) = match found.kind {
            param::STRING => (parameter_type::STRING, c_str(found.text).cast()),
            param::BYTES => (parameter_type::BYTES, c_str(found.text).cast()),
            param::BOOL => (parameter_type::BOOL, bits),
            param::DOUBLE => (parameter_type::DOUBLE, bits),
            _ => (parameter_type::INT, bits),
        };
        key.set(c_str(found.key));
        kind.set(number);
        vvalue.set(value);
    }

    /// Number of inputs.
    fn TRITONBACKEND_RequestInputCount(request: LiveObject<RequestObject>, count: Out<u32>) {
        count.set(request.host()?.inputs.len() as u32);
    }

    /// Name of an input, owned by the request.
    fn TRITONBACKEND_RequestInputName(
        request: LiveObject<RequestObject>,
        index: u32,
        input_name: Out<*const c_char>,
    ) {
        let inputs = &request.host()?.inputs;
        let input = inputs.get(index as usize);
        let input = input.ok_or_else(|| no_such("inputs", index, inputs.len()))?;
        input_name.set(c_str(input.tensor().name));
    }

    /// An input by name, owned by the request.
    fn TRITONBACKEND_RequestInput(request: LiveObject<RequestObject>, name: Text, input: Out<*mut InputObject>) {
        let host = request.host()?;
        let found = host.inputs.iter().find(|input| input.is_named(name.c()));
        let found = found.ok_or_else(|| {
            TritonFault::not_found(format_args!("the request has no input '{}'", name.text()))
        })?;
        input.set(found.raw());
    }

    /// An input by position, owned by the request.
    fn TRITONBACKEND_RequestInputByIndex(
        request: LiveObject<RequestObject>,
        index: u32,
        input: Out<*mut InputObject>,
    ) {
        let inputs = &request.host()?.inputs;
        let found = inputs.get(index as usize);
        input.set(found.ok_or_else(|| no_such("inputs", index, inputs.len()))?.raw());
    }

    /// Number of outputs that the client asked for.
    fn TRITONBACKEND_RequestOutputCount(request: LiveObject<RequestObject>, count: Out<u32>) {
        count.set(request.host()?.requested_outputs().count() as u32);
    }

    /// Name of an output that the client asked for, owned by the request.
    fn TRITONBACKEND_RequestOutputName(
        request: LiveObject<RequestObject>,
        index: u32,
        output_name: Out<*const c_char>,
    ) {
        let host = request.host()?;
        let found = host.requested_outputs().nth(index as usize);
        let found = found.ok_or_else(|| {
            no_such("requested outputs", index, host.requested_outputs().count())
        })?;
        output_name.set(c_str(found.name));
    }

    /// The memory that an output will probably have: CPU memory.
    fn TRITONBACKEND_RequestOutputBufferProperties(
        request: LiveObject<RequestObject>,
        _name: TextMaybe,
        _byte_size: *mut c_void,
        memory_type: Out<c_int>,
        memory_type_id: Out<i64>,
    ) {
        request.host()?;
        memory_type.set(0);
        memory_type_id.set(0);
    }

    /// Gives the request back. Its inputs, names and shapes are invalid afterwards. An error means
    /// that it was not released.
    fn TRITONBACKEND_RequestRelease(request: Ended<RequestObject>, release_flags: u32) {
        handles::get_object(request.0)?.host()?;
        if release_flags & RELEASE_RESCHEDULE != 0 {
            return Err(TritonFault::unsupported(
                "a request cannot be rescheduled: this server has no iterative sequences",
            ));
        }
        if release_flags & RELEASE_ALL == 0 {
            return Err(TritonFault::misuse(format_args!("release flags {release_flags} are unknown")));
        }
        let RequestSource::Host(mut released) = handles::free_object(request.0)?.source else { return Ok(()) };
        released.free_parts();
        let handle = released.view().handle;
        // SAFETY: released once, here; the view is not used again.
        unsafe { (crate::host::host_table()?.request_release)(handle, ptr::null_mut()) };
        released.reply.release();
    }
}
