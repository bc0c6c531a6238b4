//! Host entries of `trts.inference`: nested requests, status, loading and unloading of models.

use super::basics::no_scope;
use super::guard::{guard_entry, guard_value, put_out};
use super::scope::Scope;
use crate::nested;
use crate::nested::{CancelRequest, ResponseHandler};
use crate::text::{PluginError, c_text, read_text, to_code_number};
use bytes::Bytes;
use std::mem::size_of;
use std::sync::Arc;
use trtserver_base::error::{Error as HostError, Result};
use trtserver_plugin_api::abi::inference::{
    InferenceExtension, ModelStatus, Nested, NestedHandler, NestedInput, NestedRequest,
};
use trtserver_plugin_api::abi::request::request_flags;
use trtserver_plugin_api::abi::types::{self, Error, MAX_RANK, Param, Str, memory_type, param};
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::dtype::DType;
use trtserver_request::{CorrelationId, InferResponse, ParameterValue, RequestSequence};

pub(super) static TABLE: InferenceExtension = InferenceExtension {
    size: size_of::<InferenceExtension>() as u64,
    infer,
    nested_cancel,
    nested_release,
    model_status,
    model_load,
    model_unload,
};

/// The target of a `trts_nested`.
struct NestedHandle(CancelRequest);

unsafe extern "C" fn infer(
    scope: *mut types::Scope,
    request: *const NestedRequest,
    handler: NestedHandler,
    out: *mut *mut Nested,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a handle of ours; null or a request that is valid during the call.
        let (scope, request) =
            unsafe { (Scope::from_handle(scope).ok_or_else(no_scope)?, request.as_ref()) };
        let request = request.ok_or_else(|| HostError::invalid("infer without a request"))?;
        // SAFETY: what the request points at is valid during the call.
        let request = unsafe { owned(scope, request)? };
        let handler = Arc::new(Handler(handler));
        let cancel =
            scope.nested.infer(scope.label(), nested::server_models()?, request, handler)?;
        if !out.is_null() {
            let handle = Box::into_raw(Box::new(NestedHandle(cancel)));
            // SAFETY: valid for writing one handle.
            unsafe { put_out(out, handle.cast())? };
        }
        Ok(())
    })
}

unsafe extern "C" fn nested_cancel(nested: *const Nested) {
    guard_value((), || {
        // SAFETY: null or a handle of `infer` that was not released.
        let handle = unsafe { nested.cast::<NestedHandle>().as_ref() };
        if let Some(NestedHandle(cancel)) = handle {
            cancel();
        }
    });
}

unsafe extern "C" fn nested_release(nested: *mut Nested) {
    guard_value((), || {
        if !nested.is_null() {
            // SAFETY: a handle of `infer`, which the backend does not use again.
            drop(unsafe { Box::from_raw(nested.cast::<NestedHandle>()) });
        }
    });
}

unsafe extern "C" fn model_status(
    scope: *mut types::Scope,
    model: Str,
    version: i64,
    out: *mut ModelStatus,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a handle of ours; the text is valid during the call.
        let model = unsafe {
            Scope::from_handle(scope).ok_or_else(no_scope)?;
            read_text(model)
        };
        let status = nested::server_models()?.status(&model, number(version))?;
        let status = ModelStatus {
            size: size_of::<ModelStatus>() as u64,
            version: status.version.unwrap_or(0),
            ready: u32::from(status.ready),
            decoupled: u32::from(status.decoupled),
            reserved: [0; 4],
        };
        // SAFETY: null or valid for writing one status.
        unsafe { put_out(out, status) }
    })
}

unsafe extern "C" fn model_load(
    scope: *mut types::Scope,
    model: Str,
    params: *const Param,
    n_params: u32,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a handle of ours; texts and parameters are valid during the call.
        let (scope, model, params) = unsafe {
            let scope = Scope::from_handle(scope).ok_or_else(no_scope)?;
            (scope, read_text(model), slice(params, n_params, "load parameters")?)
        };
        refuse_own(scope, &model, "load")?;
        let (mut config, mut files) = (None, Vec::new());
        for p in params {
            // SAFETY: the backend keeps the texts of its parameters valid during the call.
            let key = unsafe { read_text(p.key) };
            match (key.as_str(), p.kind) {
                // SAFETY: the parameter is a string, which the backend keeps valid during the call.
                ("config", param::STRING) => config = Some(unsafe { read_text(p.text) }),
                (file, param::BYTES) if file.starts_with("file:") => {
                    // SAFETY: the parameter is a list of bytes, which the backend keeps valid
                    // during the call.
                    let content = unsafe { slice(p.text.p, p.text.n, file)? };
                    files.push((key, Bytes::copy_from_slice(content)));
                }
                _ => {
                    return Err(HostError::invalid(format!(
                        "load parameter '{key}' of model '{model}': expected 'config' of kind STRING, or 'file:PATH' of kind BYTES"
                    )));
                }
            }
        }
        nested::server_models()?.load(&model, config, files)
    })
}

unsafe extern "C" fn model_unload(
    scope: *mut types::Scope,
    model: Str,
    dependents: u32,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a handle of ours; the text is valid during the call.
        let (scope, model) =
            unsafe { (Scope::from_handle(scope).ok_or_else(no_scope)?, read_text(model)) };
        refuse_own(scope, &model, "unload")?;
        nested::server_models()?.unload(&model, dependents != 0)
    })
}

/// A change of the model that waits for it could wait for itself.
fn refuse_own(scope: &Scope, model: &str, what: &str) -> Result<()> {
    match &scope.reporter.model {
        Some((own, _)) if &**own == model => {
            Err(HostError::invalid(format!("model '{model}' cannot {what} itself")))
        }
        _ => Ok(()),
    }
}

fn number(version: i64) -> Option<i64> {
    (version >= 0).then_some(version)
}

/// The elements of a list; `what` is for the error.
///
/// # Errors
/// It is null and not empty, or longer than memory.
///
/// # Safety
/// `n` elements at `p` are valid for `'a`.
unsafe fn slice<'a, T>(p: *const T, n: impl Into<u64>, what: &str) -> Result<&'a [T]> {
    let n = n.into();
    if n == 0 {
        return Ok(&[]);
    }
    let bytes = n.checked_mul(size_of::<T>() as u64);
    match bytes.and_then(|bytes| isize::try_from(bytes).ok()) {
        // SAFETY: by the caller's promise; the size was checked.
        Some(_) if !p.is_null() => Ok(unsafe { std::slice::from_raw_parts(p, n as usize) }),
        _ => {
            let size = size_of::<T>();
            Err(HostError::invalid(format!("{what}: {n} elements of {size} byte(s) at {p:?}")))
        }
    }
}

/// A copy of a request that outlives the call.
///
/// # Safety
/// What the request points at is valid during the call.
unsafe fn owned(scope: &Scope, request: &NestedRequest) -> Result<nested::NestedRequest> {
    if request.size < size_of::<NestedRequest>() as u64 {
        return Err(HostError::invalid(format!(
            "a nested request has {} bytes, expected {}",
            request.size,
            size_of::<NestedRequest>()
        )));
    }
    // SAFETY: by the caller's promise.
    let (model, id, text, inputs, outputs, params) = unsafe {
        (
            read_text(request.model),
            read_text(request.id),
            read_text(request.correlation_id_string),
            slice(request.inputs, request.n_inputs, "inputs of a nested request")?,
            slice(request.outputs, request.n_outputs, "outputs of a nested request")?,
            slice(request.params, request.n_params, "parameters of a nested request")?,
        )
    };
    let sequence_id = match (text.is_empty(), request.correlation_id) {
        (false, _) => CorrelationId::Text(text),
        (true, 0) => CorrelationId::None,
        (true, number) => CorrelationId::Number(number),
    };
    // SAFETY: by the caller's promise.
    let inputs = inputs.iter().map(|input| unsafe { owned_input(scope, &model, input) });
    let inputs = inputs.collect::<Result<_>>()?;
    Ok(nested::NestedRequest {
        sender: scope.reporter.model.clone(),
        inputs,
        // SAFETY: by the caller's promise.
        outputs: outputs.iter().map(|name| unsafe { read_text(*name) }).collect(),
        // SAFETY: by the caller's promise.
        parameters: params.iter().filter_map(|p| unsafe { parameter(p) }).collect(),
        model,
        version: number(request.version),
        id,
        sequence: RequestSequence {
            id: sequence_id,
            start: request.flags & request_flags::SEQUENCE_START != 0,
            end: request.flags & request_flags::SEQUENCE_END != 0,
        },
        priority: request.priority,
        timeout_us: request.timeout_us,
        deadline_ns: request.deadline_ns,
    })
}

/// # Safety
/// The conditions of [`owned`].
unsafe fn owned_input(
    scope: &Scope,
    model: &str,
    input: &NestedInput,
) -> Result<nested::NestedInput> {
    // SAFETY: by the caller's promise.
    let name = unsafe { read_text(input.name) };
    let invalid =
        |why: String| HostError::invalid(format!("input '{name}' for model '{model}': {why}"));
    let dtype = DType::from_number(input.dtype);
    let dtype = dtype.ok_or_else(|| invalid(format!("{} is not a data type", input.dtype)))?;
    if input.rank > MAX_RANK {
        return Err(invalid(format!("rank {}, at most {MAX_RANK} are allowed", input.rank)));
    }
    let what = format!("input '{name}' for model '{model}'");
    // SAFETY: by the caller's promise.
    let (shape, parts) = unsafe {
        (slice(input.shape, input.rank, &what)?, slice(input.parts, input.n_parts, &what)?)
    };
    let on_cpu = |m: u32| matches!(m, memory_type::CPU | memory_type::PINNED);
    if let Some(part) = parts.iter().find(|part| !on_cpu(part.memory.memory_type)) {
        return Err(HostError::unsupported(format!(
            "input '{name}' for model '{model}' is in memory of type {}, nested requests take CPU and pinned memory",
            part.memory.memory_type
        )));
    }
    // SAFETY: by the caller's promise, CPU memory of that size.
    let parts = parts.iter().map(|p| unsafe { slice(p.ptr.cast_const(), p.bytes, &what) });
    let parts = parts.collect::<Result<Vec<&[u8]>>>()?;
    let data = AlignedBuf::try_copy(None, &parts, scope.tag());
    let data = data.map_err(|e| e.refuse("an input of a nested request"))?;
    Ok(nested::NestedInput { dtype, shape: shape.into(), data: data.into_bytes().into(), name })
}

/// `None` for kinds that requests do not have.
///
/// # Safety
/// The texts are valid during the call.
unsafe fn parameter(p: &Param) -> Option<(String, ParameterValue)> {
    // SAFETY: by the caller's promise.
    let (key, text) = unsafe { (read_text(p.key), p.text) };
    let value = match p.kind {
        // SAFETY: by the caller's promise.
        param::STRING => ParameterValue::String(unsafe { read_text(text) }),
        param::INT | param::UINT => ParameterValue::Int(p.bits as i64),
        param::BOOL => ParameterValue::Bool(p.bits != 0),
        param::DOUBLE => ParameterValue::Double(f64::from_bits(p.bits)),
        _ => return None,
    };
    Some((key, value))
}

/// Calls the handler of a backend.
struct Handler(NestedHandler);

// SAFETY: the interface lets the host call handlers on its threads.
unsafe impl Send for Handler {}
// SAFETY: the delivery calls a handler on one thread at a time.
unsafe impl Sync for Handler {}

impl ResponseHandler for Handler {
    fn deliver(&self, version: i64, result: Result<Option<InferResponse>>, last: bool) {
        let views = match result {
            Ok(response) => views::Views::new(response.unwrap_or_default()),
            Err(e) => Err(e),
        };
        let call = |response: &_| {
            // SAFETY: the response is valid during the call; the handler is, until its last call.
            unsafe { (self.0.func)(self.0.user, response) };
        };
        match views {
            Ok(views) => views.call(version, last, call),
            Err(e) => {
                let text = c_text(&e.message);
                let error = PluginError { code: to_code_number(e.code), flags: 0, text };
                call(&views::failure_view(&error, version));
            }
        }
    }
}

#[cfg(test)]
#[path = "inference_tests.rs"]
mod tests;

#[path = "inference_views.rs"]
mod views;
