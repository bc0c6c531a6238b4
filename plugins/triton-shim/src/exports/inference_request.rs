//! `TRITONSERVER_InferenceRequest*`: requests that a backend makes for nested inference.
//! `inference_tensors.rs` has their inputs and outputs.

use super::guard::{Ended, Flag, Maybe, Out, Text, TextMaybe, export};
use crate::fault::TritonFault;
use crate::handles::{self, LiveObject, create_object};
use crate::host::c_str;
use crate::nested;
use crate::objects::allocator::ResponseAllocator;
use crate::objects::nested_request::{
    CorrelationId, OwnRequest, Released, Responded, ResponseReceiver, SendPointer,
};
use crate::objects::parameter::ParameterValue;
use crate::objects::request::{RequestObject, RequestSource};
use crate::objects::server::ServerToken;
use std::ffi::{c_char, c_void};

export! {
    /// A request to a model of the server, owned by the caller. An error if there is no such model
    /// or version.
    fn TRITONSERVER_InferenceRequestNew(
        inference_request: Out<*mut RequestObject>,
        server: LiveObject<ServerToken>,
        model_name: Text,
        model_version: i64,
    ) {
        let sender = server.model()?;
        nested::model_status(&sender, model_name.c(), model_version)?;
        let own = Box::new(OwnRequest::new(sender, model_name.c(), model_version));
        inference_request.set(create_object(RequestObject { source: RequestSource::Own(own) }).raw());
    }

    /// Frees a request that is not on its way; null is allowed.
    fn TRITONSERVER_InferenceRequestDelete(inference_request: Ended<RequestObject>) {
        if inference_request.0.is_null() {
            return Ok(());
        }
        drop(handles::get_object(inference_request.0)?.own()?.editable()?);
        handles::free_object(inference_request.0)?;
    }

    /// The id, owned by the request; empty if it has none.
    fn TRITONSERVER_InferenceRequestId(inference_request: LiveObject<RequestObject>, id: Out<*const c_char>) {
        id.set(match &inference_request.source {
            RequestSource::Own(own) => own.state().id.as_ptr(),
            RequestSource::Host(host) => c_str(host.view().id),
        });
    }

    /// Sets the id, which is copied.
    fn TRITONSERVER_InferenceRequestSetId(inference_request: LiveObject<RequestObject>, id: TextMaybe) {
        let mut state = inference_request.own()?.editable()?;
        state.id = id.0.map(|id| id.c().to_owned()).unwrap_or_default();
    }

    /// 1 for the first and 2 for the last request of a sequence.
    fn TRITONSERVER_InferenceRequestFlags(inference_request: LiveObject<RequestObject>, flags: Out<u32>) {
        flags.set(inference_request.own()?.state().flags);
    }

    /// Sets the flags.
    fn TRITONSERVER_InferenceRequestSetFlags(inference_request: LiveObject<RequestObject>, flags: u32) {
        inference_request.own()?.editable()?.flags = flags;
    }

    /// The correlation id, 0 if there is none. An error if it is a text.
    fn TRITONSERVER_InferenceRequestCorrelationId(
        inference_request: LiveObject<RequestObject>,
        correlation_id: Out<u64>,
    ) {
        correlation_id.set(match inference_request.own()?.state().correlation {
            CorrelationId::None => 0,
            CorrelationId::Number(number) => number,
            CorrelationId::Text(_) => {
                let text = "the correlation id of the request is not an unsigned integer";
                return Err(TritonFault::invalid(text));
            }
        });
    }

    /// The correlation id as text, owned by the request, empty if there is none. An error if it is
    /// a number.
    fn TRITONSERVER_InferenceRequestCorrelationIdString(
        inference_request: LiveObject<RequestObject>,
        correlation_id: Out<*const c_char>,
    ) {
        correlation_id.set(match &inference_request.own()?.state().correlation {
            CorrelationId::None => c"".as_ptr(),
            CorrelationId::Text(text) => text.as_ptr(),
            CorrelationId::Number(_) => {
                return Err(TritonFault::invalid("the correlation id of the request is not a string"));
            }
        });
    }

    /// Sets a number as correlation id; 0 is none.
    fn TRITONSERVER_InferenceRequestSetCorrelationId(
        inference_request: LiveObject<RequestObject>,
        correlation_id: u64,
    ) {
        inference_request.own()?.editable()?.correlation = match correlation_id {
            0 => CorrelationId::None,
            number => CorrelationId::Number(number),
        };
    }

    /// Sets a text as correlation id, which is copied.
    fn TRITONSERVER_InferenceRequestSetCorrelationIdString(
        inference_request: LiveObject<RequestObject>,
        correlation_id: Text,
    ) {
        let text = correlation_id.c();
        inference_request.own()?.editable()?.correlation =
            if text.is_empty() { CorrelationId::None } else { CorrelationId::Text(text.to_owned()) };
    }

    /// Whether the server was asked to cancel the request.
    fn TRITONSERVER_InferenceRequestIsCancelled(
        inference_request: LiveObject<RequestObject>,
        is_cancelled: Out<u8>,
    ) {
        is_cancelled.set(match &inference_request.source {
            RequestSource::Own(own) => own.state().cancelled.into(),
            RequestSource::Host(host) => host.reply.is_cancelled().into(),
        });
    }

    /// Asks the server to cancel a request that is on its way.
    fn TRITONSERVER_InferenceRequestCancel(inference_request: LiveObject<RequestObject>) {
        nested::cancel_request(inference_request.own()?)?;
    }

    /// The priority; 0 is the model's default.
    fn TRITONSERVER_InferenceRequestPriority(inference_request: LiveObject<RequestObject>, priority: Out<u32>) {
        let set = inference_request.own()?.state().priority;
        priority.set(u32::try_from(set).unwrap_or(u32::MAX));
    }

    /// The priority; 0 is the model's default.
    fn TRITONSERVER_InferenceRequestPriorityUInt64(
        inference_request: LiveObject<RequestObject>,
        priority: Out<u64>,
    ) {
        priority.set(inference_request.own()?.state().priority);
    }

    /// Sets the priority.
    fn TRITONSERVER_InferenceRequestSetPriority(inference_request: LiveObject<RequestObject>, priority: u32) {
        inference_request.own()?.editable()?.priority = priority.into();
    }

    /// Sets the priority.
    fn TRITONSERVER_InferenceRequestSetPriorityUInt64(
        inference_request: LiveObject<RequestObject>,
        priority: u64,
    ) {
        inference_request.own()?.editable()?.priority = priority;
    }

    /// How long the request may wait in the queue; 0 is the model's default.
    fn TRITONSERVER_InferenceRequestTimeoutMicroseconds(
        inference_request: LiveObject<RequestObject>,
        timeout_us: Out<u64>,
    ) {
        timeout_us.set(inference_request.own()?.state().timeout_us);
    }

    /// Sets how long the request may wait in the queue.
    fn TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
        inference_request: LiveObject<RequestObject>,
        timeout_us: u64,
    ) {
        inference_request.own()?.editable()?.timeout_us = timeout_us;
    }

    /// Sets a parameter. Key and value are copied.
    fn TRITONSERVER_InferenceRequestSetStringParameter(
        request: LiveObject<RequestObject>,
        key: Text,
        value: Text,
    ) {
        request.own()?.editable()?.set_param(key.c(), ParameterValue::Text(value.c().into()));
    }

    /// Sets a parameter. The key is copied.
    fn TRITONSERVER_InferenceRequestSetIntParameter(
        request: LiveObject<RequestObject>,
        key: Text,
        value: i64,
    ) {
        request.own()?.editable()?.set_param(key.c(), ParameterValue::Int(value));
    }

    /// Sets a parameter. The key is copied.
    fn TRITONSERVER_InferenceRequestSetBoolParameter(
        request: LiveObject<RequestObject>,
        key: Text,
        value: Flag,
    ) {
        request.own()?.editable()?.set_param(key.c(), ParameterValue::Bool(value.0));
    }

    /// Sets a parameter. The key is copied.
    fn TRITONSERVER_InferenceRequestSetDoubleParameter(
        request: LiveObject<RequestObject>,
        key: Text,
        value: f64,
    ) {
        request.own()?.editable()?.set_param(key.c(), ParameterValue::Double(value));
    }

    /// Sets the function that gets the request back, after the last response.
    fn TRITONSERVER_InferenceRequestSetReleaseCallback(
        inference_request: LiveObject<RequestObject>,
        request_release_fn: Option<Released>,
        request_release_userp: *mut c_void,
    ) {
        let Some(function) = request_release_fn else {
            return Err(TritonFault::misuse("request_release_fn is null"));
        };
        let released = Some((function, SendPointer(request_release_userp)));
        inference_request.own()?.editable()?.released = released;
    }

    /// Sets the function that gets the responses, and the allocator of their outputs, which must
    /// outlive them.
    fn TRITONSERVER_InferenceRequestSetResponseCallback(
        inference_request: LiveObject<RequestObject>,
        response_allocator: Maybe<ResponseAllocator>,
        response_allocator_userp: *mut c_void,
        response_fn: Option<Responded>,
        response_userp: *mut c_void,
    ) {
        let (Some(allocator), Some(function)) = (response_allocator.0, response_fn) else {
            return Err(TritonFault::misuse("response_allocator and response_fn must not be null"));
        };
        let allocator_user = SendPointer(response_allocator_userp);
        let user = SendPointer(response_userp);
        inference_request.own()?.editable()?.responded =
            Some(ResponseReceiver { allocator, allocator_user, function, user });
    }
}
