//! Nested inference: sends requests that backends have made, and passes the responses on.

mod receive; // responses

use crate::fault::{Result, TritonFault};
use crate::handles::LiveObject;
use crate::host::{self, as_str, take_error};
use crate::objects::model::ModelObject;
use crate::objects::nested_request::{
    CorrelationId, OwnInput, OwnRequest, Released, ResponseReceiver, SendPointer, SentRequest,
};
use crate::objects::request::RequestObject;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ptr;
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::inference::{
    InferenceExtension, ModelStatus, NestedHandler, NestedInput, NestedRequest,
};
use trtserver_plugin_api::abi::types::{self, Param, Str};

/// The last response of its request, and all of a request: flags of callbacks.
const FINAL: u32 = 1;
const RELEASE_ALL: u32 = 1;

/// Calls the extension with the scope of a model.
///
/// # Errors
/// The host does not offer it, or the model is closed; or the error of the call.
pub fn with_extension<R>(
    model: &ModelObject,
    call: impl FnOnce(&'static InferenceExtension, &'static HostTable, *mut types::Scope) -> Result<R>,
) -> Result<R> {
    let extension = host::inference_extension().ok_or_else(|| {
        TritonFault::unsupported(
            "this server offers no nested inference to backends in this process",
        )
    })?;
    let scope = model.scope();
    let called = scope.with(|host, scope| call(extension, host, scope));
    called.unwrap_or_else(|| {
        let name = model.name.to_string_lossy();
        Err(TritonFault::unavailable(format_args!("model '{name}' is closed")))
    })
}

/// The status of a version of a model.
///
/// # Errors
/// There is no such model or version.
pub fn model_status(model: &ModelObject, name: &CStr, version: i64) -> Result<ModelStatus> {
    with_extension(model, |extension, host, scope| {
        let mut status = MaybeUninit::uninit();
        // SAFETY: the scope is open, the name valid during the call; the status is written unless
        // there is an error.
        unsafe {
            let error = (extension.model_status)(scope, as_str(name), version, status.as_mut_ptr());
            take_error(host, error)?;
            Ok(status.assume_init())
        }
    })
}

/// A request on its way.
struct NestedCall {
    request: LiveObject<RequestObject>,
    sender: LiveObject<ModelObject>,
    model: CString,
    version: i64,
    id: CString,
    receiver: ResponseReceiver,
    released: (Released, SendPointer),
}

/// Sends a request. Its callbacks are called on threads of the host.
///
/// # Errors
/// The request stays the caller's, and no callback is called.
pub fn send_request(request: LiveObject<RequestObject>) -> Result<()> {
    let own = request.own()?;
    let mut state = own.editable()?;
    let released = state.released.ok_or_else(|| {
        TritonFault::misuse(
            "the request has no release callback (InferenceRequestSetReleaseCallback)",
        )
    })?;
    let receiver = state.responded.ok_or_else(|| {
        TritonFault::misuse(
            "the request has no response callback (InferenceRequestSetResponseCallback)",
        )
    })?;
    let call = Box::new(NestedCall {
        request,
        sender: own.sender,
        model: own.model.clone(),
        version: own.version,
        id: state.id.clone(),
        receiver,
        released,
    });
    let inputs: Vec<NestedInput> = state.inputs.iter().map(nested_input).collect();
    let outputs: Vec<Str> = state.outputs.iter().map(|name| as_str(name)).collect();
    let params: Vec<Param> =
        state.params.iter().map(|(key, value)| value.param(as_str(key))).collect();
    let none = Str { p: ptr::null(), n: 0 };
    let (number, correlation) = match &state.correlation {
        CorrelationId::None => (0, none),
        CorrelationId::Number(number) => (*number, none),
        CorrelationId::Text(text) => (0, as_str(text)),
    };
    let nested = NestedRequest {
        size: size_of::<NestedRequest>() as u64,
        model: as_str(&own.model),
        version: own.version,
        id: as_str(&state.id),
        correlation_id_string: correlation,
        correlation_id: number,
        priority: state.priority,
        timeout_us: state.timeout_us,
        deadline_ns: 0,
        flags: state.flags,
        n_inputs: inputs.len() as u32,
        n_outputs: outputs.len() as u32,
        n_params: params.len() as u32,
        inputs: inputs.as_ptr(),
        outputs: outputs.as_ptr(),
        params: params.as_ptr(),
        reserved: [0; 4],
    };
    let user = Box::into_raw(call);
    let sent = with_extension(&own.sender, |extension, host, scope| {
        let (mut handle, handler) =
            (ptr::null_mut(), NestedHandler { func: receive::receive_response, user: user.cast() });
        // SAFETY: the request and what it points at are valid during the call; the handler is until
        // its last call.
        unsafe { take_error(host, (extension.infer)(scope, &nested, handler, &mut handle))? };
        Ok(handle)
    });
    match sent {
        // A response that arrives meanwhile waits for the state.
        Ok(handle) => {
            state.sent = Some(SentRequest(handle));
            state.cancelled = false;
        }
        Err(fault) => {
            // SAFETY: the host calls the handler of a refused request never.
            drop(unsafe { Box::from_raw(user) });
            return Err(fault);
        }
    }
    Ok(())
}

fn nested_input(input: &OwnInput) -> NestedInput {
    NestedInput {
        name: as_str(&input.name),
        dtype: input.dtype,
        rank: input.shape.len() as u32,
        shape: input.shape.as_ptr(),
        parts: input.parts.as_ptr(),
        n_parts: input.parts.len() as u32,
        pad: 0,
    }
}

/// Asks the server to cancel a request.
///
/// # Errors
/// The request is not on its way.
pub fn cancel_request(own: &OwnRequest) -> Result<()> {
    let mut state = own.state();
    let Some(SentRequest(handle)) = state.sent else {
        return Err(TritonFault::invalid(
            "the request is not on its way, so it cannot be cancelled",
        ));
    };
    with_extension(&own.sender, |extension, _, _| {
        // SAFETY: released with the last response, which waits for the state.
        unsafe { (extension.nested_cancel)(handle) };
        Ok(())
    })?;
    state.cancelled = true;
    Ok(())
}
