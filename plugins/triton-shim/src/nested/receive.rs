//! Responses to nested requests: copied into memory of the backend and passed to its callbacks.

use super::{FINAL, NestedCall, RELEASE_ALL};
use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject, create_object};
use crate::host::{self, owned_text, str_text};
use crate::objects::nested_request::{SendPointer, SentRequest};
use crate::objects::parameter::ParameterValue;
use crate::objects::received_response::{
    ArrivedBuffer, ArrivedOutput, ParamValue, ReceivedResponse,
};
use crate::objects::request::view_slice;
use crate::objects::response::{ResponseObject, ResponseSide};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use trtserver_plugin_api::abi::inference::{NestedOutput, NestedResponse};
use trtserver_plugin_api::abi::types::{Param, memory_type, param};

/// The handler of the host: one response.
pub unsafe extern "C" fn receive_response(user: *mut u8, response: *const NestedResponse) {
    let run = || {
        // SAFETY: the call lives until its last response, below; the response is valid during this
        // call.
        let (call, response) = unsafe { (&*user.cast::<NestedCall>(), &*response) };
        let last = response.last != 0;
        call.sender.scope().enter(|| {
            let passed = catch_unwind(AssertUnwindSafe(|| call.pass_on(response, last)));
            if last {
                // SAFETY: the host calls no more.
                unsafe { Box::from_raw(user.cast::<NestedCall>()) }.release();
            }
            passed.unwrap_or_else(|panic| resume_unwind(panic));
        });
    };
    // A panic must not unwind into the host; the panic hook has printed it.
    let _ = catch_unwind(AssertUnwindSafe(run));
}

impl NestedCall {
    fn pass_on(&self, response: &NestedResponse, last: bool) {
        let flags = if last { FINAL } else { 0 };
        // SAFETY: the outputs are valid during the call of the handler.
        let outputs = unsafe { view_slice(response.outputs, response.n_outputs) };
        let data = !outputs.is_empty() || response.n_params > 0;
        let empty = response.error.is_null() && !data && last;
        let handle = if empty { ptr::null_mut() } else { self.arrived(response, outputs).raw() };
        // SAFETY: the backend's callback, with what it owns from then on.
        unsafe { (self.receiver.function)(handle, flags, self.receiver.user.0) };
    }

    fn arrived(
        &self,
        response: &NestedResponse,
        outputs: &[NestedOutput],
    ) -> LiveObject<ResponseObject> {
        let mut arrived = ReceivedResponse {
            model: self.model.clone(),
            version: if response.version < 0 { self.version } else { response.version },
            id: self.id.clone(),
            fault: None,
            outputs: Vec::new(),
            params: Vec::new(),
        };
        if let Ok(host) = host::host_table()
            && !response.error.is_null()
        {
            // SAFETY: the error is valid during the call of the handler.
            arrived.fault = Some(unsafe {
                TritonFault::new(
                    (host.error_code)(response.error),
                    str_text((host.error_text)(response.error)),
                )
            });
        } else {
            match self.outputs(outputs) {
                Ok(outputs) => arrived.outputs = outputs,
                Err(fault) => arrived.fault = Some(fault),
            }
            // SAFETY: the host keeps the parameters of a response valid during the call of the
            // handler.
            let params = unsafe { view_slice(response.params, response.n_params) };
            // SAFETY: the host keeps the texts of a parameter valid during the call of the handler.
            arrived.params.extend(params.iter().filter_map(|p| unsafe { copy_parameter(p) }));
        }
        create_object(ResponseObject { side: ResponseSide::ReceivedResponse(arrived) })
    }

    /// Copies the outputs into memory of the backend.
    fn outputs(&self, outputs: &[NestedOutput]) -> Result<Vec<ArrivedOutput>> {
        let allocator = handles::get_object(self.receiver.allocator.raw())?;
        if let Some(start) = allocator.start {
            // SAFETY: the backend's function with its own pointer.
            take_raised(unsafe { start(allocator.raw(), self.receiver.allocator_user.0) })?;
        }
        outputs.iter().map(|output| self.output(output)).collect()
    }

    fn output(&self, output: &NestedOutput) -> Result<ArrivedOutput> {
        let allocator = self.receiver.allocator;
        // SAFETY: name, shape and data are valid during the call of the handler.
        let (name, shape, data) = unsafe {
            let data = (output.data.ptr.cast_const(), output.data.bytes as usize);
            (
                owned_text(&str_text(output.name)),
                view_slice(output.shape, output.rank).to_vec(),
                data,
            )
        };
        let (from, bytes) = data;
        let (mut p, mut user) = (ptr::null_mut(), ptr::null_mut());
        let (mut kind, mut id) = (memory_type::CPU as i32, 0);
        // SAFETY: the backend's function, with places for its results.
        take_raised(unsafe {
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
        let buffer = ArrivedBuffer {
            allocator,
            p: SendPointer(p),
            user: SendPointer(user),
            bytes,
            kind,
            id,
        };
        let shown = name.to_string_lossy();
        if kind != memory_type::CPU as i32 && kind != memory_type::PINNED as i32 {
            return Err(TritonFault::unsupported(format_args!(
                "the allocator put output '{shown}' into memory of type {kind}; only CPU and pinned memory are possible"
            )));
        }
        if bytes > 0 {
            if p.is_null() {
                return Err(TritonFault::invalid(format_args!(
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
            if let (Some(SentRequest(handle)), Some(extension)) =
                (sent, host::inference_extension())
            {
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
fn take_raised(error: *mut crate::objects::error::ErrorObject) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    Err(handles::free_object(error)?.to_fault())
}

/// # Safety
/// The texts are valid during the call.
unsafe fn copy_parameter(p: &Param) -> Option<(CString, ParamValue)> {
    // SAFETY: by the caller's promise.
    let (key, value) = unsafe { (owned_text(&str_text(p.key)), str_text(p.text)) };
    let value = match p.kind {
        param::STRING => ParameterValue::Text(owned_text(&value)),
        param::INT | param::UINT => ParameterValue::Int(p.bits as i64),
        param::BOOL => ParameterValue::Bool(p.bits != 0),
        param::DOUBLE => ParameterValue::Double(f64::from_bits(p.bits)),
        _ => return None,
    };
    Some((key, ParamValue::new(value)))
}
