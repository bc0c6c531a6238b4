//! Nested inference: sends requests that backends have made, and passes the responses on.

mod receive; // responses

use crate::fault::{Fault, Result};
use crate::handles::Live;
use crate::host::{self, taken, view};
use crate::objects::model::Model;
use crate::objects::own_request::{
    Correlation, OwnInput, OwnRequest, Pointer, Receiver, Released, Sent,
};
use crate::objects::request::Request;
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
pub fn with<R>(
    model: &Model,
    call: impl FnOnce(&'static InferenceExtension, &'static HostTable, *mut types::Scope) -> Result<R>,
) -> Result<R> {
    let extension = host::inference().ok_or_else(|| {
        Fault::unsupported("this server offers no nested inference to backends in this process")
    })?;
    let scope = model.scope();
    let called = scope.with(|host, scope| call(extension, host, scope));
    called.unwrap_or_else(|| {
        let name = model.name.to_string_lossy();
        Err(Fault::unavailable(format_args!("model '{name}' is closed")))
    })
}

/// The status of a version of a model.
///
/// # Errors
/// There is no such model or version.
pub fn status(model: &Model, name: &CStr, version: i64) -> Result<ModelStatus> {
    with(model, |extension, host, scope| {
        let mut status = MaybeUninit::uninit();
        // SAFETY: the scope is open, the name valid during the call; the status is written unless there is an error.
        unsafe {
            let error = (extension.model_status)(scope, view(name), version, status.as_mut_ptr());
            taken(host, error)?;
            Ok(status.assume_init())
        }
    })
}

/// A request on its way.
struct Call {
    request: Live<Request>,
    sender: Live<Model>,
    model: CString,
    version: i64,
    id: CString,
    receiver: Receiver,
    released: (Released, Pointer),
}

/// Sends a request. Its callbacks are called on threads of the host.
///
/// # Errors
/// The request stays the caller's, and no callback is called.
pub fn send(request: Live<Request>) -> Result<()> {
    let own = request.own()?;
    let mut state = own.editable()?;
    let released = state.released.ok_or_else(|| {
        Fault::misuse("the request has no release callback (InferenceRequestSetReleaseCallback)")
    })?;
    let receiver = state.responded.ok_or_else(|| {
        Fault::misuse("the request has no response callback (InferenceRequestSetResponseCallback)")
    })?;
    let call = Box::new(Call {
        request,
        sender: own.sender,
        model: own.model.clone(),
        version: own.version,
        id: state.id.clone(),
        receiver,
        released,
    });
    let inputs: Vec<NestedInput> = state.inputs.iter().map(nested_input).collect();
    let outputs: Vec<Str> = state.outputs.iter().map(|name| view(name)).collect();
    let params: Vec<Param> =
        state.params.iter().map(|(key, value)| value.param(view(key))).collect();
    let none = Str { p: ptr::null(), n: 0 };
    let (number, correlation) = match &state.correlation {
        Correlation::None => (0, none),
        Correlation::Number(number) => (*number, none),
        Correlation::Text(text) => (0, view(text)),
    };
    let nested = NestedRequest {
        size: size_of::<NestedRequest>() as u64,
        model: view(&own.model),
        version: own.version,
        id: view(&state.id),
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
    let sent = with(&own.sender, |extension, host, scope| {
        let (mut handle, handler) =
            (ptr::null_mut(), NestedHandler { func: receive::responded, user: user.cast() });
        // SAFETY: the request and what it points at are valid during the call; the handler is until its last call.
        unsafe { taken(host, (extension.infer)(scope, &nested, handler, &mut handle))? };
        Ok(handle)
    });
    match sent {
        // A response that arrives meanwhile waits for the state.
        Ok(handle) => {
            state.sent = Some(Sent(handle));
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
        name: view(&input.name),
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
pub fn cancel(own: &OwnRequest) -> Result<()> {
    let mut state = own.state();
    let Some(Sent(handle)) = state.sent else {
        return Err(Fault::invalid("the request is not on its way, so it cannot be cancelled"));
    };
    with(&own.sender, |extension, _, _| {
        // SAFETY: released with the last response, which waits for the state.
        unsafe { (extension.nested_cancel)(handle) };
        Ok(())
    })?;
    state.cancelled = true;
    Ok(())
}
