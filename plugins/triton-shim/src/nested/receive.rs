//! Responses to nested requests: copied into memory of the backend and passed to its callbacks.

use super::{Call, FINAL, RELEASE_ALL};
use crate::fault::{Fault, Result};
use crate::handles::{self, Live, create};
use crate::host::{self, owned, text};
use crate::objects::arrived::{Arrived, ArrivedOutput, Buffer, ParamValue};
use crate::objects::own_request::{Pointer, Sent};
use crate::objects::parameter::Value;
use crate::objects::request::slice;
use crate::objects::response::{Response, Side};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use trtserver_plugin_api::abi::inference::{NestedOutput, NestedResponse};
use trtserver_plugin_api::abi::types::{Param, memory_type, param};

/// The handler of the host: one response.
pub unsafe extern "C" fn responded(user: *mut u8, response: *const NestedResponse) {
    let run = || {
        // SAFETY: the call lives until its last response, below; the response is valid during this call.
        let (call, response) = unsafe { (&*user.cast::<Call>(), &*response) };
        let last = response.last != 0;
        call.sender.scope().enter(|| {
            let passed = catch_unwind(AssertUnwindSafe(|| call.pass_on(response, last)));
            if last {
                // SAFETY: the host calls no more.
                unsafe { Box::from_raw(user.cast::<Call>()) }.release();
            }
            passed.unwrap_or_else(|panic| resume_unwind(panic));
        });
    };
    // A panic must not unwind into the host; the panic hook has printed it.
    let _ = catch_unwind(AssertUnwindSafe(run));
}

impl Call {
    fn pass_on(&self, response: &NestedResponse, last: bool) {
        let flags = if last { FINAL } else { 0 };
        // SAFETY: the outputs are valid during the call of the handler.
        let outputs = unsafe { slice(response.outputs, response.n_outputs) };
        let data = !outputs.is_empty() || response.n_params > 0;
        let empty = response.error.is_null() && !data && last;
        let handle = if empty { ptr::null_mut() } else { self.arrived(response, outputs).raw() };
        // SAFETY: the backend's callback, with what it owns from then on.
        unsafe { (self.receiver.function)(handle, flags, self.receiver.user.0) };
    }

    fn arrived(&self, response: &NestedResponse, outputs: &[NestedOutput]) -> Live<Response> {
        let mut arrived = Arrived {
            model: self.model.clone(),
            version: if response.version < 0 { self.version } else { response.version },
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
            // SAFETY: the host keeps the parameters of a response valid during the call of the
            // handler.
            let params = unsafe { slice(response.params, response.n_params) };
            // SAFETY: the host keeps the texts of a parameter valid during the call of the handler.
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
