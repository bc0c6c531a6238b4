//! One request: inputs, requested outputs, and the ways to respond.

use super::error::Error;
use super::host::{Host, as_bytes, as_slice, as_text};
use super::responder::{RequestState, Responder, ResponderRef};
use super::response::Response;
use super::tensor::Tensor;
use super::value::{Params, Value};
use crate::abi;
use crate::abi::request::request_flags;
use crate::abi::types::Backlog;
use std::sync::atomic::{AtomicU32, Ordering};

/// Identifies a request until it is finished; see [`Request::key`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RequestKey(pub(crate) usize);

/// One request. A few pointers: copy it freely. It cannot outlive `execute`.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    host: Host,
    raw: &'a abi::request::Request,
    state: &'a RequestState,
}

impl<'a> Request<'a> {
    /// # Safety
    /// The request is valid for `'a`.
    pub(crate) unsafe fn new(
        host: Host,
        raw: &'a abi::request::Request,
        state: &'a RequestState,
    ) -> Request<'a> {
        Request { host, raw, state }
    }

    /// The id that the client gave the request.
    pub fn id(self) -> &'a str {
        // SAFETY: the request is valid for `'a`.
        unsafe { as_text(self.raw.id) }
    }

    /// What [`super::Instance::cancel_handler`] receives when this request is cancelled.
    pub fn key(self) -> RequestKey {
        RequestKey(self.raw.responder as usize)
    }

    /// Rows of this request, 1 for a model without batch dimension.
    pub fn batch_size(self) -> usize {
        self.raw.batch_size as usize
    }

    /// Inputs in the order of the configuration, then those that the host adds.
    pub fn inputs(self) -> impl ExactSizeIterator<Item = Tensor<'a>> {
        // SAFETY: the request and its inputs are valid for `'a`.
        self.raw_inputs().iter().map(|raw| unsafe { Tensor::new(raw) })
    }

    /// The input of that name, unless the request omits it.
    pub fn input(self, name: &str) -> Option<Tensor<'a>> {
        // SAFETY: the host keeps the names of the inputs valid for `'a`.
        let named = |raw: &&abi::types::Tensor| unsafe { as_bytes(raw.name.p, raw.name.n) } == name.as_bytes();
        // SAFETY: the host keeps the request and its inputs valid for `'a`.
        self.raw_inputs().iter().find(named).map(|raw| unsafe { Tensor::new(raw) })
    }

    /// As [`Request::input`], with an error that names the missing input.
    pub fn required_input(self, name: &str) -> Result<Tensor<'a>, Error> {
        self.input(name).ok_or_else(|| Error::invalid(format_args!("input '{name}' is missing")))
    }

    /// The outputs to produce. Others are accepted and discarded.
    pub fn requested_outputs(self) -> impl ExactSizeIterator<Item = RequestedOutput<'a>> {
        self.requested().iter().map(RequestedOutput)
    }

    /// Whether a response should have the output.
    pub fn output_requested(self, name: &str) -> bool {
        // SAFETY: the request is valid for `'a`.
        unsafe { contains_output(self.requested(), name) }
    }

    /// Parameters that the client gave.
    pub fn params(self) -> Params<'a> {
        // SAFETY: the request is valid for `'a`.
        unsafe { Params::new(as_slice(self.raw.params, self.raw.n_params.into())) }
    }

    /// A parameter that the client gave.
    pub fn param(self, key: &str) -> Option<Value<'a>> {
        self.params().get(key)
    }

    /// 0 = none, or a string: see [`Request::correlation_id_string`].
    pub fn correlation_id(self) -> u64 {
        self.raw.correlation_id
    }

    /// Empty when the correlation id is a number or absent.
    pub fn correlation_id_string(self) -> &'a str {
        // SAFETY: the request is valid for `'a`.
        unsafe { as_text(self.raw.correlation_id_string) }
    }

    /// The first request of its sequence.
    pub fn sequence_start(self) -> bool {
        self.raw.flags & request_flags::SEQUENCE_START != 0
    }

    /// The last request of its sequence.
    pub fn sequence_end(self) -> bool {
        self.raw.flags & request_flags::SEQUENCE_END != 0
    }

    /// Sent by the host to warm the model up; the response is discarded.
    pub fn warmup(self) -> bool {
        self.raw.flags & request_flags::WARMUP != 0
    }

    /// The client accepts several responses.
    pub fn streaming(self) -> bool {
        self.raw.flags & request_flags::STREAMING != 0
    }

    /// Level, 1 is the highest; 0 is the model's default.
    pub fn priority(self) -> u64 {
        self.raw.priority
    }

    /// When the request had arrived, in nanoseconds of CLOCK_MONOTONIC.
    pub fn received_ns(self) -> u64 {
        self.raw.received_ns
    }

    /// When it entered the queue, in nanoseconds of CLOCK_MONOTONIC.
    pub fn queued_ns(self) -> u64 {
        self.raw.queued_ns
    }

    /// When the client stops waiting, in nanoseconds of CLOCK_MONOTONIC.
    pub fn deadline_ns(self) -> Option<u64> {
        (self.raw.deadline_ns != 0).then_some(self.raw.deadline_ns)
    }

    /// The client no longer waits for a response, or the deadline has passed.
    pub fn is_cancelled(self) -> bool {
        // SAFETY: valid as long as the responder, which is longer than `'a`.
        unsafe { is_word_set(self.raw.cancelled) }
    }

    /// What the client has not read of the stream that the request arrived on.
    pub fn backlog(self) -> Result<Backlog, Error> {
        // SAFETY: the responder is valid for `'a`.
        unsafe { self.responder().backlog() }
    }

    /// Creates a response. One at a time: send or drop it before the next. Fails when the request
    /// is finished or detached.
    pub fn new_response(self) -> Result<Response<'a>, Error> {
        // SAFETY: responder and requested outputs are valid for `'a`.
        unsafe { Response::new(self.responder(), self.requested()) }
    }

    /// Finishes the request with an error. The host logs it if the request is already finished.
    pub fn fail(self, error: Error) {
        // SAFETY: the responder is valid for `'a`.
        unsafe { self.responder().finish(Some(&error)) }
    }

    /// Finishes the request without a further response: the end of a stream.
    pub fn finish(self) {
        // SAFETY: the responder is valid for `'a`.
        unsafe { self.responder().finish(None) }
    }

    /// Detaches the responder from `execute`, to respond later from any thread. The inputs are
    /// released when `execute` returns: copy what is needed. All detached responders must be
    /// dropped before the instance is closed.
    pub fn detach(self) -> Result<Responder, Error> {
        // SAFETY: the request is valid for `'a`.
        unsafe { Responder::new(self.responder(), self.raw) }
    }

    fn responder(self) -> ResponderRef<'a> {
        ResponderRef { host: self.host, raw: self.raw.responder, state: self.state }
    }

    fn raw_inputs(self) -> &'a [abi::types::Tensor] {
        // SAFETY: the request is valid for `'a`.
        unsafe { as_slice(self.raw.inputs, self.raw.n_inputs.into()) }
    }

    fn requested(self) -> &'a [abi::request::RequestedOutput] {
        // SAFETY: the request is valid for `'a`.
        unsafe { as_slice(self.raw.requested_outputs, self.raw.n_requested_outputs.into()) }
    }
}

/// An output to produce.
#[derive(Clone, Copy)]
pub struct RequestedOutput<'a>(&'a abi::request::RequestedOutput);

impl<'a> RequestedOutput<'a> {
    /// As clients and the configuration call it.
    pub fn name(self) -> &'a str {
        // SAFETY: part of a request that is valid for `'a`.
        unsafe { as_text(self.0.name) }
    }

    /// Position in the model configuration's output list.
    pub fn index(self) -> Option<usize> {
        (self.0.index != u32::MAX).then_some(self.0.index as usize)
    }

    /// Not 0: the host sends this many top classes, computed from the tensor that the backend
    /// produces.
    pub fn classes(self) -> u32 {
        self.0.classes
    }
}

/// # Safety
/// The names are valid.
pub(crate) unsafe fn contains_output(
    requested: &[abi::request::RequestedOutput],
    name: &str,
) -> bool {
    // SAFETY: the promise above.
    requested.iter().any(|o| unsafe { as_bytes(o.name.p, o.name.n) } == name.as_bytes())
}

/// # Safety
/// Null, or valid and accessed atomically only.
pub(crate) unsafe fn is_word_set(word: *const u32) -> bool {
    if word.is_null() {
        return false;
    }
    // SAFETY: the promise above.
    unsafe { AtomicU32::from_ptr(word.cast_mut()) }.load(Ordering::Relaxed) != 0
}
