//! The response side of a request: its state, and responders detached from `execute`.

use super::error::Error;
use super::host::{Host, OwnedText, as_text};
use super::request::{contains_output, is_word_set};
use super::response::Response;
use crate::abi;
use crate::abi::request::RequestedOutput;
use crate::abi::types::Backlog;
use std::cell::Cell;
use std::ptr;

/// State of a request as the backend has left it so far.
#[derive(Default)]
pub(crate) struct RequestState(Cell<u8>);

impl RequestState {
    const FINISHED: u8 = 1;
    const RESPONDING: u8 = 2;
    const DETACHED: u8 = 4;

    fn has(&self, bit: u8) -> bool {
        self.0.get() & bit != 0
    }

    fn set(&self, bit: u8, on: bool) {
        self.0.set(if on { self.0.get() | bit } else { self.0.get() & !bit });
    }

    pub(crate) fn finished(&self) -> bool {
        self.has(RequestState::FINISHED)
    }

    pub(crate) fn detached(&self) -> bool {
        self.has(RequestState::DETACHED)
    }

    pub(crate) fn set_finished(&self) {
        self.set(RequestState::FINISHED, true);
    }

    /// A response exists.
    pub(crate) fn set_responding(&self, on: bool) {
        self.set(RequestState::RESPONDING, on);
    }

    /// Fails when no response can be created now.
    pub(crate) fn check(&self) -> Result<(), Error> {
        Err(Error::internal(if self.has(RequestState::FINISHED) {
            "this request is already finished"
        } else if self.has(RequestState::DETACHED) {
            "this request was detached: respond with its responder"
        } else if self.has(RequestState::RESPONDING) {
            "send or drop the previous response before creating the next"
        } else {
            return Ok(());
        }))
    }
}

/// A borrowed responder, with the state of its request.
#[derive(Clone, Copy)]
pub(crate) struct ResponderRef<'a> {
    pub(crate) host: Host,
    pub(crate) raw: *mut abi::types::Responder,
    pub(crate) state: &'a RequestState,
}

impl ResponderRef<'_> {
    /// # Safety
    /// The responder is valid.
    pub(crate) unsafe fn backlog(self) -> Result<Backlog, Error> {
        let mut backlog = Backlog::default();
        // SAFETY: the responder is valid by the caller's promise, and the pointer is that of a
        // local variable.
        unsafe {
            let error = (self.host.responder_backlog)(self.raw, &raw mut backlog);
            Error::take(self.host, error)?;
        }
        Ok(backlog)
    }

    /// # Safety
    /// The responder is valid.
    pub(crate) unsafe fn finish(self, error: Option<&Error>) {
        if self.state.detached() {
            return;
        }
        self.state.set_finished();
        let error = error.map_or(ptr::null_mut(), |error| error.raise(self.host));
        // SAFETY: the error is created above and freed here; the host reports a second end.
        unsafe {
            (self.host.error_free)((self.host.responder_finish)(self.raw, error));
            (self.host.error_free)(error);
        }
    }
}

/// The responder of a detached request. It may be sent to any thread. Dropped before the request is
/// finished, it fails the request with an error that says so.
pub struct Responder {
    host: Host,
    raw: *mut abi::types::Responder,
    state: RequestState,
    cancelled: *const u32,
    batch_size: usize,
    id: String,
    requested: Vec<RequestedOutput>,
    _names: Vec<OwnedText>,
}

// SAFETY: the host accepts calls with a responder from any thread, and all pointers go to memory
// that is valid as long as the detached responder, or owned by this value.
unsafe impl Send for Responder {}

impl Responder {
    /// # Safety
    /// Responder and request are valid, and belong together.
    pub(crate) unsafe fn new(
        responder: ResponderRef<'_>,
        request: &abi::request::Request,
    ) -> Result<Self, Error> {
        responder.state.check()?;
        let mut names = Vec::new();
        // SAFETY: the request is valid.
        let requested = unsafe {
            super::host::as_slice(request.requested_outputs, request.n_requested_outputs.into())
        };
        let requested = requested.iter().map(|output: &RequestedOutput| {
            // SAFETY: the host keeps the names of the requested outputs valid as long as the
            // request.
            let name = OwnedText::new(unsafe { as_text(output.name) });
            let requested = RequestedOutput { name: name.get(), ..*output };
            names.push(name);
            requested
        });
        let requested = requested.collect();
        // SAFETY: the responder is valid.
        unsafe { (responder.host.responder_detach)(responder.raw) };
        responder.state.set(RequestState::DETACHED, true);
        Ok(Responder {
            host: responder.host,
            raw: responder.raw,
            state: RequestState::default(),
            cancelled: request.cancelled,
            batch_size: request.batch_size as usize,
            // SAFETY: the request is valid.
            id: unsafe { as_text(request.id) }.to_owned(),
            requested,
            _names: names,
        })
    }

    /// The id that the client gave; may be empty.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Rows of the request, 1 for a model without batch dimension.
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Whether a response should have the output.
    pub fn output_requested(&self, name: &str) -> bool {
        // SAFETY: the names are owned by this value.
        unsafe { contains_output(&self.requested, name) }
    }

    /// Whether the client or the host no longer wants a response.
    pub fn is_cancelled(&self) -> bool {
        // SAFETY: valid as long as the responder.
        unsafe { is_word_set(self.cancelled) }
    }

    /// What the client has not read of the stream that the request arrived on.
    pub fn backlog(&self) -> Result<Backlog, Error> {
        // SAFETY: the responder is valid.
        unsafe { self.responder().backlog() }
    }

    /// Creates a response; see [`super::Request::new_response`].
    pub fn new_response(&self) -> Result<Response<'_>, Error> {
        // SAFETY: the responder is valid, the names are owned by this value.
        unsafe { Response::new(self.responder(), &self.requested) }
    }

    /// Finishes the request with an error.
    pub fn fail(self, error: Error) {
        // SAFETY: the responder is valid.
        unsafe { self.responder().finish(Some(&error)) }
    }

    /// Finishes the request without a further response: the end of a stream.
    pub fn finish(self) {
        // SAFETY: the responder is valid.
        unsafe { self.responder().finish(None) }
    }

    fn responder(&self) -> ResponderRef<'_> {
        ResponderRef { host: self.host, raw: self.raw, state: &self.state }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        // SAFETY: the responder is detached, hence valid, until here.
        unsafe {
            if !self.state.finished() {
                let omitted =
                    Error::internal("the backend dropped a detached request without finishing it");
                self.responder().finish(Some(&omitted));
            }
            (self.host.responder_release)(self.raw);
        }
    }
}
