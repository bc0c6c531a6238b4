//! Nested inference: sends requests that backends have made, and passes the responses on.

use crate::fault::{Fault, Result};
use crate::handles::{self, Live, create};
use crate::host::{self, owned, taken, text, view};
use crate::objects::arrived::{Arrived, ArrivedOutput, Buffer, ParamValue};
use crate::objects::model::Model;
use crate::objects::own_request::{
    Correlation, OwnInput, OwnRequest, Pointer, Receiver, Released, Sent,
};
use crate::objects::parameter::Value;
use crate::objects::request::{Request, slice};
use crate::objects::response::{Response, Side};
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::inference::{
    InferenceExtension, ModelStatus, NestedHandler, NestedInput, NestedOutput, NestedRequest,
    NestedResponse,
};
use trtserver_plugin_api::abi::types::{self, Param, Str, memory_type, param};

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
            (ptr::null_mut(), NestedHandler { func: responded, user: user.cast() });
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

/// The handler of the host: one response.
unsafe extern "C" fn responded(user: *mut u8, response: *const NestedResponse) {
    let run = || {
        // SAFETY: the call lives until its last response, below; the response is valid during this call.
        let (call, response) = unsafe { (&*user.cast::<Call>(), &*response) };
        let last = response.last != 0;
        call.sender.scope().enter(|| {
            call.pass_on(response, last);
            if last {
                // SAFETY: the host calls no more.
                unsafe { Box::from_raw(user.cast::<Call>()) }.release();
            }
        });
    };
    // A panic must not unwind into the host; there is nobody to tell.
    let _ = catch_unwind(AssertUnwindSafe(run));
}

impl Call {
    fn pass_on(&self, response: &NestedResponse, last: bool) {
        let flags = if last { FINAL } else { 0 };
        // SAFETY: the outputs are valid during the call of the handler.
        let outputs = unsafe { slice(response.outputs, response.n_outputs) };
        let empty = response.error.is_null() && outputs.is_empty() && last;
        let handle = if empty { ptr::null_mut() } else { self.arrived(response, outputs).raw() };
        // SAFETY: the backend's callback, with what it owns from then on.
        unsafe { (self.receiver.function)(handle, flags, self.receiver.user.0) };
    }

    fn arrived(&self, response: &NestedResponse, outputs: &[NestedOutput]) -> Live<Response> {
        let mut arrived = Arrived {
            model: self.model.clone(),
            version: self.version,
            id: self.id.clone(),
            fault: None,
            outputs: Vec::new(),
            params: Vec::new(),
        };
        if let Ok(host) = host::host()
            && !response.error.is_null()
        {
            // SAFETY: the error is valid during the call of the handler.
            arrived.fault = Some(unsafe {
                Fault::new(
                    (host.error_code)(response.error),
                    text((host.error_text)(response.error)),
                )
            });
        } else {
            match self.outputs(outputs) {
                Ok(outputs) => arrived.outputs = outputs,
                Err(fault) => arrived.fault = Some(fault),
            }
            // SAFETY: as above.
            let params = unsafe { slice(response.params, response.n_params) };
            // SAFETY: as above.
            arrived.params.extend(params.iter().filter_map(|p| unsafe { parameter(p) }));
        }
        create(Response { side: Side::Arrived(arrived) })
    }

    /// Copies the outputs into memory of the backend.
    fn outputs(&self, outputs: &[NestedOutput]) -> Result<Vec<ArrivedOutput>> {
        let allocator = handles::get(self.receiver.allocator.raw())?;
        if let Some(start) = allocator.start {
            // SAFETY: the backend's function with its own pointer.
            raised(unsafe { start(allocator.raw(), self.receiver.allocator_user.0) })?;
        }
        outputs.iter().map(|output| self.output(output)).collect()
    }

    fn output(&self, output: &NestedOutput) -> Result<ArrivedOutput> {
        let allocator = self.receiver.allocator;
        // SAFETY: name, shape and data are valid during the call of the handler.
        let (name, shape, data) = unsafe {
            let data = (output.data.ptr.cast_const(), output.data.bytes as usize);
            (owned(&text(output.name)), slice(output.shape, output.rank).to_vec(), data)
        };
        let (from, bytes) = data;
        let (mut p, mut user) = (ptr::null_mut(), ptr::null_mut());
        let (mut kind, mut id) = (memory_type::CPU as i32, 0);
        // SAFETY: the backend's function, with places for its results.
        raised(unsafe {
            (allocator.allocate)(
                allocator.raw(),
                name.as_ptr(),
                bytes,
                memory_type::CPU as i32,
                0,
                self.receiver.allocator_user.0,
                &mut p,
                &mut user,
                &mut kind,
                &mut id,
            )
        })?;
        let buffer = Buffer { allocator, p: Pointer(p), user: Pointer(user), bytes, kind, id };
        let shown = name.to_string_lossy();
        if kind != memory_type::CPU as i32 && kind != memory_type::PINNED as i32 {
            return Err(Fault::unsupported(format_args!(
                "the allocator put output '{shown}' into memory of type {kind}; only CPU and pinned memory are possible"
            )));
        }
        if bytes > 0 {
            if p.is_null() {
                return Err(Fault::invalid(format_args!(
                    "the allocator gave no memory for output '{shown}' of {bytes} bytes"
                )));
            }
            // SAFETY: the backend has allocated that many bytes.
            unsafe { ptr::copy_nonoverlapping(from, p.cast::<u8>(), bytes) };
        }
        drop(shown);
        Ok(ArrivedOutput { name, dtype: output.dtype, shape, buffer })
    }

    /// Gives the request back to the backend.
    fn release(self) {
        if let Ok(own) = self.request.own() {
            let sent = own.state().sent.take();
            if let (Some(Sent(handle)), Some(extension)) = (sent, host::inference()) {
                // SAFETY: the handle of this request, released once.
                unsafe { (extension.nested_release)(handle) };
            }
        }
        let (function, user) = self.released;
        // SAFETY: the backend's callback; the request is its own from then on.
        unsafe { function(self.request.raw(), RELEASE_ALL, user.0) };
    }
}

/// An error that a function of the backend has returned.
fn raised(error: *mut crate::objects::error::Error) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    Err(handles::free(error)?.to_fault())
}

/// # Safety
/// The texts are valid during the call.
unsafe fn parameter(p: &Param) -> Option<(CString, ParamValue)> {
    // SAFETY: by the caller's promise.
    let (key, value) = unsafe { (owned(&text(p.key)), text(p.text)) };
    let value = match p.kind {
        param::STRING => Value::Text(owned(&value)),
        param::INT | param::UINT => Value::Int(p.bits as i64),
        param::BOOL => Value::Bool(p.bits != 0),
        param::DOUBLE => Value::Double(f64::from_bits(p.bits)),
        _ => return None,
    };
    Some((key, ParamValue::new(value)))
}
