//! Nested inference: requests to other models of the server, their status, loading and unloading.

use super::dtype::Dtype;
use super::error::Error;
use super::host::{Host, OwnedText, as_slice, as_text, with_str};
use super::scope::Scope;
use super::value::{Params, Value};
use crate::abi::inference::{
    self, InferenceExtension, NestedHandler, NestedInput, NestedOutput, NestedRequest,
    NestedResponse,
};
use crate::abi::request::request_flags;
use crate::abi::types::{Buf, Memory, Param, Str};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A request to a model of the server, for [`Scope::infer`].
#[derive(Default)]
pub struct InferenceRequest {
    model: String,
    version: Option<i64>,
    id: String,
    sequence_text: String,
    sequence_number: u64,
    flags: u32,
    priority: u64,
    timeout_us: u64,
    deadline_ns: u64,
    inputs: Vec<OwnedInput>,
    outputs: Vec<OwnedText>,
    params: Vec<(String, OwnedParam)>,
}

struct OwnedInput {
    name: OwnedText,
    dtype: Dtype,
    shape: Vec<i64>,
    data: Vec<u8>,
}

enum OwnedParam {
    Text(String),
    Bytes(Vec<u8>),
    Int(i64),
    Uint(u64),
    Bool(bool),
    Double(f64),
}

impl InferenceRequest {
    /// A request to the version that clients reach without a number, for all outputs.
    pub fn new(model: &str) -> Self {
        Self { model: model.to_owned(), ..Self::default() }
    }

    /// To this version, instead of the one that clients reach without a number.
    pub fn version(mut self, version: i64) -> Self {
        self.version = Some(version);
        self
    }

    /// With this id, for logs.
    pub fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// The request is part of a sequence; 0 = none.
    pub fn sequence(mut self, id: u64, start: bool, end: bool) -> Self {
        self.sequence_number = id;
        self.bounds(start, end)
    }

    /// As [`InferenceRequest::sequence`], with a text; empty = none.
    pub fn sequence_text(mut self, id: &str, start: bool, end: bool) -> Self {
        id.clone_into(&mut self.sequence_text);
        self.bounds(start, end)
    }

    fn bounds(mut self, start: bool, end: bool) -> Self {
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        self.flags =
            flag(start, request_flags::SEQUENCE_START) | flag(end, request_flags::SEQUENCE_END);
        self
    }

    /// 1 = the highest, 0 = the model's default.
    pub fn priority(mut self, priority: u64) -> Self {
        self.priority = priority;
        self
    }

    /// Longest time in the queue, where the model's policy allows it.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_us = timeout.as_micros() as u64;
        self
    }

    /// CLOCK_MONOTONIC nanoseconds, as those of a request that is executed.
    pub fn deadline_ns(mut self, deadline_ns: u64) -> Self {
        self.deadline_ns = deadline_ns;
        self
    }

    /// Adds an input; `shape` has the batch dimension first when the model batches.
    pub fn input(mut self, name: &str, dtype: Dtype, shape: &[i64], data: Vec<u8>) -> Self {
        let (name, shape) = (OwnedText::new(name), shape.to_vec());
        self.inputs.push(OwnedInput { name, dtype, shape, data });
        self
    }

    /// Requests an output; without any, all are returned.
    pub fn output(mut self, name: &str) -> Self {
        self.outputs.push(OwnedText::new(name));
        self
    }

    /// With a parameter for the model.
    pub fn param<'v>(mut self, key: &str, value: impl Into<Value<'v>>) -> Self {
        let value = match value.into() {
            Value::Text(text) => OwnedParam::Text(text.to_owned()),
            Value::Bytes(bytes) => OwnedParam::Bytes(bytes.to_owned()),
            Value::Int(n) => OwnedParam::Int(n),
            Value::Uint(n) => OwnedParam::Uint(n),
            Value::Bool(b) => OwnedParam::Bool(b),
            Value::Double(x) => OwnedParam::Double(x),
        };
        self.params.push((key.to_owned(), value));
        self
    }

    /// Calls `f` with the request in the form of the interface.
    fn with_raw<R>(&self, f: impl FnOnce(&NestedRequest) -> R) -> R {
        let parts: Vec<Buf> = self.inputs.iter().map(|i| to_part(&i.data)).collect();
        let inputs = self.inputs.iter().zip(&parts).map(|(input, part)| NestedInput {
            name: input.name.get(),
            dtype: input.dtype.to_abi(),
            rank: input.shape.len() as u32,
            shape: input.shape.as_ptr(),
            parts: part,
            n_parts: 1,
            pad: 0,
        });
        let inputs: Vec<NestedInput> = inputs.collect();
        let outputs: Vec<Str> = self.outputs.iter().map(OwnedText::get).collect();
        let [model, id, text] =
            [&self.model, &self.id, &self.sequence_text].map(|text| OwnedText::new(text));
        let mut params = Vec::with_capacity(self.params.len());
        with_params(
            &self.params,
            &mut params,
            Box::new(|params: &[Param]| {
                f(&NestedRequest {
                    size: size_of::<NestedRequest>() as u64,
                    model: model.get(),
                    version: self.version.unwrap_or(-1),
                    id: id.get(),
                    correlation_id_string: text.get(),
                    correlation_id: self.sequence_number,
                    priority: self.priority,
                    timeout_us: self.timeout_us,
                    deadline_ns: self.deadline_ns,
                    flags: self.flags,
                    n_inputs: inputs.len() as u32,
                    n_outputs: outputs.len() as u32,
                    n_params: params.len() as u32,
                    inputs: inputs.as_ptr(),
                    outputs: outputs.as_ptr(),
                    params: params.as_ptr(),
                    reserved: [0; 4],
                })
            }),
        )
    }
}

fn to_part(data: &[u8]) -> Buf {
    Buf {
        ptr: data.as_ptr().cast_mut(),
        bytes: data.len() as u64,
        memory: Memory::CPU,
        ready: ptr::null_mut(),
        memory_handle: 0,
    }
}

type UseParams<'a, R> = Box<dyn FnOnce(&[Param]) -> R + 'a>;

/// Calls `f` with all parameters: each is on the stack of one level of this recursion.
fn with_params<R>(all: &[(String, OwnedParam)], list: &mut Vec<Param>, f: UseParams<'_, R>) -> R {
    let Some(((key, value), rest)) = all.split_first() else { return f(list) };
    let value = match value {
        OwnedParam::Text(text) => Value::Text(text),
        OwnedParam::Bytes(bytes) => Value::Bytes(bytes),
        OwnedParam::Int(n) => Value::Int(*n),
        OwnedParam::Uint(n) => Value::Uint(*n),
        OwnedParam::Bool(b) => Value::Bool(*b),
        OwnedParam::Double(x) => Value::Double(*x),
    };
    value.with_param(key, |param| {
        list.push(*param);
        with_params(rest, list, f)
    })
}

/// A response, borrowed from the host.
#[derive(Clone, Copy)]
struct ResponseView<'a>(&'a NestedResponse);

/// A response to a nested request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InferenceResponse {
    /// Name, type, shape and bytes of each output, in requested order. The last response of a
    /// decoupled model may have none.
    pub outputs: Vec<(String, Dtype, Vec<i64>, Vec<u8>)>,
    /// Parameters as text.
    pub params: Vec<(String, String)>,
    /// The version that has executed the request.
    pub version: Option<i64>,
}

impl ResponseView<'_> {
    fn to_owned(self, host: Host) -> Result<InferenceResponse, Error> {
        let raw = self.0;
        if !raw.error.is_null() {
            // SAFETY: the error is valid during the call of the handler.
            return Err(unsafe { Error::from_host(host, raw.error) });
        }
        // SAFETY: the outputs are valid during the call of the handler.
        let outputs = unsafe { as_slice(raw.outputs, raw.n_outputs.into()) };
        let output = |o: &NestedOutput| {
            // SAFETY: the host keeps names, shapes and data of the outputs valid during the call of
            // the handler.
            let (name, shape, data) = unsafe {
                (
                    as_text(o.name).to_owned(),
                    as_slice(o.shape, o.rank.into()).to_vec(),
                    as_slice(o.data.ptr.cast_const(), o.data.bytes).to_vec(),
                )
            };
            (name, Dtype::from_abi(o.dtype), shape, data)
        };
        // SAFETY: the host keeps the parameters valid during the call of the handler.
        let params = unsafe { Params::new(as_slice(raw.params, raw.n_params.into())) };
        let text = |value: Value<'_>| match value {
            Value::Text(text) => text.to_owned(),
            other => other.to_string(),
        };
        Ok(InferenceResponse {
            outputs: outputs.iter().map(output).collect(),
            params: params.iter().map(|(key, value)| (key.to_owned(), text(value))).collect(),
            version: (raw.version >= 0).then_some(raw.version),
        })
    }
}

/// What is known of a model version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelStatus {
    /// The version that a request would reach; `None` if none serves.
    pub version: Option<i64>,
    /// A request would be executed now.
    pub ready: bool,
    /// A request gets any number of responses.
    pub decoupled: bool,
}

/// A nested request that was sent. Dropping it does not cancel the request.
pub struct InferenceCall {
    extension: &'static InferenceExtension,
    raw: NestedPointer,
    responses: Receiver<Result<InferenceResponse, Error>>,
}

struct NestedPointer(*mut inference::Nested);
// SAFETY: the host accepts calls with it from any thread.
unsafe impl Send for NestedPointer {}
// SAFETY: the host accepts calls with one nested request from several threads at once.
unsafe impl Sync for NestedPointer {}

impl InferenceCall {
    /// Waits for the next response; `None` after the last.
    pub fn next(&self) -> Option<Result<InferenceResponse, Error>> {
        self.responses.recv().ok()
    }

    /// As [`InferenceCall::next`], for at most `timeout`: `Some(None)` after the last response,
    /// `None` if there was none in time.
    #[allow(clippy::option_option, reason = "no response yet, and no further response")]
    pub fn next_within(
        &self,
        timeout: Duration,
    ) -> Option<Option<Result<InferenceResponse, Error>>> {
        match self.responses.recv_timeout(timeout) {
            Ok(response) => Some(Some(response)),
            Err(RecvTimeoutError::Disconnected) => Some(None),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    /// Cancels the request; a last response, mostly an error, still follows.
    pub fn cancel(&self) {
        // SAFETY: the handle is released when this is dropped.
        unsafe { (self.extension.nested_cancel)(self.raw.0) };
    }
}

impl Drop for InferenceCall {
    fn drop(&mut self) {
        // SAFETY: released once.
        unsafe { (self.extension.nested_release)(self.raw.0) };
    }
}

/// What `user` of a handler points at.
struct HandlerContext<F> {
    host: Host,
    receive: F,
}

/// The handler of all requests.
///
/// # Safety
/// `user` is a `HandlerContext<F>` of [`Scope::infer_with`], the response is valid; calls do not
/// overlap, and the last one has `last`.
unsafe extern "C" fn handle<F>(user: *mut u8, response: *const NestedResponse)
where
    F: FnMut(Result<InferenceResponse, Error>, bool) + Send,
{
    let user = user.cast::<HandlerContext<F>>();
    // SAFETY: by the promise above.
    let (to, view) = unsafe { (&mut *user, ResponseView(&*response)) };
    let last = view.0.last != 0;
    let call = AssertUnwindSafe(|| (to.receive)(view.to_owned(to.host), last));
    // A panic of the closure must not reach the host; the panic hook has printed it.
    let _ = catch_unwind(call);
    if last {
        let free = AssertUnwindSafe(|| {
            // SAFETY: there is no further call.
            drop(unsafe { Box::from_raw(user) });
        });
        let _ = catch_unwind(free);
    }
}

impl Scope {
    /// Sends a request to a model of the server. Waiting for the responses in `execute` keeps the
    /// instance busy: a model that calls itself detaches its responder first. Fails on hosts
    /// without the extension, for an unknown model, and for invalid inputs.
    pub fn infer(&self, request: &InferenceRequest) -> Result<InferenceCall, Error> {
        let (send, responses) = channel();
        let send_response = move |response: Result<InferenceResponse, Error>, last: bool| {
            let empty = |r: &InferenceResponse| r.outputs.is_empty() && r.params.is_empty();
            // The end of a stream is the end of the channel.
            if !(last && response.as_ref().is_ok_and(empty)) {
                let _ = send.send(response);
            }
        };
        let (extension, raw) = self.send(request, send_response)?;
        Ok(InferenceCall { extension, raw, responses })
    }

    /// As [`Scope::infer`]; calls `receive` with each response and whether it is the last, on a
    /// thread of the host. It must not block.
    pub fn infer_with(
        &self,
        request: &InferenceRequest,
        receive: impl FnMut(Result<InferenceResponse, Error>, bool) + Send + 'static,
    ) -> Result<(), Error> {
        let (extension, raw) = self.send(request, receive)?;
        // SAFETY: released once.
        unsafe { (extension.nested_release)(raw.0) };
        Ok(())
    }

    fn send<F>(
        &self,
        request: &InferenceRequest,
        receive: F,
    ) -> Result<(&'static InferenceExtension, NestedPointer), Error>
    where
        F: FnMut(Result<InferenceResponse, Error>, bool) + Send + 'static,
    {
        self.with_inference(|host, extension, scope| {
            let user = Box::into_raw(Box::new(HandlerContext { host, receive }));
            let handler = NestedHandler { func: handle::<F>, user: user.cast() };
            let mut raw = ptr::null_mut();
            let sent = request.with_raw(|request| {
                // SAFETY: the request is valid during the call, the handler until its last call.
                let error = unsafe { (extension.infer)(scope, request, handler, &raw mut raw) };
                // SAFETY: null or an error of ours.
                unsafe { Error::take(host, error) }
            });
            if sent.is_err() {
                // SAFETY: the handler is never called.
                drop(unsafe { Box::from_raw(user) });
            }
            sent.map(|()| (extension, NestedPointer(raw)))
        })
    }

    /// The status of a model of the server; without a version, of the one that clients reach
    /// without a number. Fails for an unknown model or version.
    pub fn model_status(&self, model: &str, version: Option<i64>) -> Result<ModelStatus, Error> {
        self.with_inference(|host, extension, scope| {
            let mut status = inference::ModelStatus {
                size: size_of::<inference::ModelStatus>() as u64,
                version: 0,
                ready: 0,
                decoupled: 0,
                reserved: [0; 4],
            };
            with_str(model, |model| {
                let version = version.unwrap_or(-1);
                // SAFETY: all arguments are valid during the call.
                unsafe {
                    let error = (extension.model_status)(scope, model, version, &raw mut status);
                    Error::take(host, error)
                }
            })?;
            Ok(ModelStatus {
                version: (status.version > 0).then_some(status.version),
                ready: status.ready != 0,
                decoupled: status.decoupled != 0,
            })
        })
    }

    /// Loads a model, or loads it again, and waits for it. `config` replaces the configuration file
    /// (JSON); `files` are paths in the model's directory with their contents. Fails unless the
    /// server's control mode is explicit, and for the caller's own model.
    pub fn load_model(
        &self,
        model: &str,
        config: Option<&str>,
        files: &[(&str, &[u8])],
    ) -> Result<(), Error> {
        let config =
            config.map(|config| ("config".to_owned(), OwnedParam::Text(config.to_owned())));
        let files = files
            .iter()
            .map(|(path, content)| (format!("file:{path}"), OwnedParam::Bytes(content.to_vec())));
        let all: Vec<(String, OwnedParam)> = config.into_iter().chain(files).collect();
        self.with_inference(|host, extension, scope| {
            let mut list = Vec::with_capacity(all.len());
            let load = |params: &[Param]| {
                with_str(model, |model| {
                    let (p, n) = (params.as_ptr(), params.len() as u32);
                    // SAFETY: all arguments are valid during the call.
                    unsafe { Error::take(host, (extension.model_load)(scope, model, p, n)) }
                })
            };
            with_params(&all, &mut list, Box::new(load))
        })
    }

    /// Unloads a model; with `dependents` also the models of its steps. Fails as
    /// [`Scope::load_model`].
    pub fn unload_model(&self, model: &str, dependents: bool) -> Result<(), Error> {
        self.with_inference(|host, extension, scope| {
            with_str(model, |model| {
                let dependents = u32::from(dependents);
                // SAFETY: all arguments are valid during the call.
                unsafe { Error::take(host, (extension.model_unload)(scope, model, dependents)) }
            })
        })
    }

    fn with_inference<R>(
        &self,
        f: impl FnOnce(
            Host,
            &'static InferenceExtension,
            *mut crate::abi::types::Scope,
        ) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let closed = || Err(Error::unavailable("the scope of this request is closed"));
        self.with(|host, scope| match host.inference() {
            Some(extension) => f(host, extension, scope),
            None => Err(Error::unsupported(format_args!(
                "this host has no extension '{}'",
                inference::INFERENCE
            ))),
        })
        .unwrap_or_else(closed)
    }
}
