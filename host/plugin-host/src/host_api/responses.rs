//! Host entries for responders and responses, and for the release of requests.

use super::devices::take_event;
use super::guard::{guard_entry, guard_value, put_out};
use crate::batch::frame::release_request;
use crate::batch::send_after_event::send_after_event;
use crate::batch::slot::{DeferredResponses, ExecutingHandle};
use crate::text::{PluginError, read_text};
use std::sync::Arc;
use trtserver_base::error::{Code, Error as HostError, Result};
use trtserver_plugin_api::abi::host::send_flags;
use trtserver_plugin_api::abi::types::{
    Backlog, Error, Event, Param, RequestHandle, Responder, Response, param,
};
use trtserver_request::ParameterValue;

/// Runs the body of an entry that returns nothing; errors are logged.
fn guard_logged(body: impl FnOnce() -> Result<()>) {
    guard_value((), || {
        if let Err(e) = body() {
            tracing::error!("a backend misuses the interface: {e}");
        }
    });
}

pub(super) unsafe extern "C" fn request_release(request: *mut RequestHandle, after: *mut Event) {
    guard_logged(|| {
        // SAFETY: null or an event that the backend does not use again; null or a handle of ours.
        let (after, handle) = unsafe { (take_event(after), ExecutingHandle::from_raw(request)?) };
        release_request(handle, after.as_deref())
    });
}

pub(super) unsafe extern "C" fn responder_detach(responder: *mut Responder) {
    // SAFETY: null or a handle of ours.
    guard_logged(|| unsafe { ExecutingHandle::from_raw(responder) }?.retain());
}

pub(super) unsafe extern "C" fn responder_release(responder: *mut Responder) {
    // SAFETY: null or a handle of ours.
    guard_logged(|| unsafe { ExecutingHandle::from_raw(responder) }?.release_responder());
}

pub(super) unsafe extern "C" fn response_new(
    responder: *mut Responder,
    out: *mut *mut Response,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a handle of ours; null or valid for writing one handle.
        let handle = unsafe { ExecutingHandle::from_raw(responder) }?;
        // SAFETY: the backend passes null, or a pointer that is valid for writing one handle.
        unsafe { put_out(out, handle.raw()) }?;
        handle.begin_response()
    })
}

pub(super) unsafe extern "C" fn response_free(response: *mut Response) {
    if !response.is_null() {
        // SAFETY: a handle of ours.
        guard_logged(|| unsafe { ExecutingHandle::from_raw(response) }?.take_response().map(drop));
    }
}

pub(super) unsafe extern "C" fn response_param(
    response: *mut Response,
    given: *const Param,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: a handle of ours; the parameter is valid during the call.
        let (handle, given) = unsafe { (ExecutingHandle::from_raw(response)?, given.as_ref()) };
        let given = given.ok_or_else(|| HostError::invalid("no parameter was given"))?;
        // SAFETY: texts are valid during the call.
        let (key, text) = unsafe { (read_text(given.key), read_text(given.text)) };
        let value = match given.kind {
            param::STRING => ParameterValue::String(text),
            param::INT => ParameterValue::Int(given.bits as i64),
            param::BOOL => ParameterValue::Bool(given.bits != 0),
            param::DOUBLE => ParameterValue::Double(f64::from_bits(given.bits)),
            param::UINT => ParameterValue::Int(i64::try_from(given.bits).map_err(|_| {
                HostError::unsupported(format!("response parameter '{key}' exceeds 63 bits"))
            })?),
            kind => {
                return Err(HostError::unsupported(format!(
                    "response parameter '{key}' has kind {kind}; strings, integers, booleans and doubles are possible"
                )));
            }
        };
        handle.with_response(|r| {
            r.parameters.push((key, value));
            Ok(())
        })
    })
}

pub(super) unsafe extern "C" fn response_send(
    response: *mut Response,
    flags: u32,
    error: *const Error,
    after: *mut Event,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or an event that the backend does not use again; null or a handle of ours.
        let (after, handle) = unsafe { (take_event(after), ExecutingHandle::from_raw(response)?) };
        let mut response = handle.take_response()?;
        // SAFETY: null or a valid error, which the backend keeps.
        let error = unsafe { error.cast::<PluginError>().as_ref() }.map(PluginError::to_error);
        let has = |flag| flags & flag != 0;
        let last = has(send_flags::FINAL);
        if error.is_none()
            && let Err(e) = response.admit(last, !has(send_flags::NO_WAIT))
        {
            if has(send_flags::NO_WAIT) && e.code == Code::ResourceExhausted {
                handle.put_back(response)?;
            }
            return Err(e);
        }
        let Some(gpu) = response.gpu() else {
            if let Some(after) = after {
                // Without a GPU of its own the instance has no completion thread.
                after.synchronize()?;
            }
            return response.send(last, error);
        };
        if after.is_none()
            && !response.is_on_device()
            && handle.deferred()? == DeferredResponses::None
        {
            return response.send(last, error);
        }
        let gpu = Arc::clone(gpu);
        handle.defer(last || error.is_some())?;
        send_after_event(&gpu, after.as_deref(), response, last, error);
        Ok(())
    })
}

pub(super) unsafe extern "C" fn responder_backlog(
    responder: *mut Responder,
    out: *mut Backlog,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a handle of ours; null or valid for writing one backlog.
        let responder = unsafe { ExecutingHandle::from_raw(responder)?.responder()? };
        let backlog = responder.context.stream.as_ref().map(|stream| stream.backlog());
        let backlog = backlog.unwrap_or_default();
        let (bytes, responses, limit) = (backlog.bytes, backlog.responses, backlog.limit);
        // SAFETY: the backend passes null, or a pointer that is valid for writing one backlog.
        unsafe { put_out(out, Backlog { bytes, responses, limit, reserved: 0 }) }
    })
}

pub(super) unsafe extern "C" fn responder_finish(
    responder: *mut Responder,
    error: *const Error,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a handle of ours; the error is null or valid, and the backend keeps it.
        let ((responder, gpu), error) = unsafe {
            (ExecutingHandle::from_raw(responder)?.finish()?, error.cast::<PluginError>().as_ref())
        };
        let result = error.map_or(Ok(None), |error| Err(error.to_error()));
        match gpu {
            None => responder.finish(result),
            Some(gpu) => {
                gpu.finish_later(responder, result);
                Ok(())
            }
        }
    })
}
