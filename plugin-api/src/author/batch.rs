//! The unit of execution: a batch of requests, and how `execute` leaves it.

use super::device::Event;
use super::error::Error;
use super::host::{Host, as_slice};
use super::request::Request;
use super::responder::RequestState;
use crate::abi;
use std::cell::Cell;
use std::ptr;

/// What `execute` receives. Everything reached through it is valid until `execute` returns.
pub struct Batch<'a> {
    pub(crate) host: Host,
    pub(crate) raw: *mut abi::request::Batch,
    pub(crate) requests: &'a [*const abi::request::Request],
    pub(crate) states: &'a [RequestState],
    /// `batch_finish` has scattered outputs to send.
    pub(crate) scattered: Cell<bool>,
    pub(crate) after: Cell<Option<Event>>,
}

impl<'a> Batch<'a> {
    /// The requests, in the order of their rows.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = Request<'a>> {
        let host = self.host;
        self.requests.iter().zip(self.states).map(move |(raw, state)| {
            // SAFETY: requests are valid until their release, which comes after `execute`.
            unsafe { Request::new(host, &**raw, state) }
        })
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Number of the batch, for traces.
    pub fn id(&self) -> u64 {
        // SAFETY: the host's batch is valid during `execute`.
        unsafe { (*self.raw).id }
    }

    /// Sum of the requests' batch sizes.
    pub fn rows(&self) -> usize {
        // SAFETY: the host keeps the batch valid during `execute`, and this object does not outlive
        // that.
        unsafe { (*self.raw).rows as usize }
    }

    /// CLOCK_MONOTONIC nanoseconds, the clock of all times here.
    pub fn now_ns(&self) -> u64 {
        // SAFETY: an entry without conditions.
        unsafe { (self.host.now_ns)() }
    }

    /// The four times of the statistics: start, inputs ready, outputs being written, end. The host
    /// measures those left 0 around `execute`.
    pub fn set_times(&self, exec_start: u64, compute_start: u64, compute_end: u64, exec_end: u64) {
        // SAFETY: the backend may write the times during `execute`, and this type stays on one
        // thread.
        unsafe {
            (*self.raw).exec_start_ns = exec_start;
            (*self.raw).compute_start_ns = compute_start;
            (*self.raw).compute_end_ns = compute_end;
            (*self.raw).exec_end_ns = exec_end;
        }
    }

    /// The execution begins now. What is not marked, the host measures around `execute`.
    pub fn mark_exec_start(&self) {
        // SAFETY: only the executing thread writes the times, and this type stays on that thread.
        unsafe { (*self.raw).exec_start_ns = self.now_ns() }
    }

    /// Inputs are ready now.
    pub fn mark_compute_start(&self) {
        // SAFETY: only the executing thread writes the times, and this type stays on that thread.
        unsafe { (*self.raw).compute_start_ns = self.now_ns() }
    }

    /// Outputs begin to be written now.
    pub fn mark_compute_end(&self) {
        // SAFETY: only the executing thread writes the times, and this type stays on that thread.
        unsafe { (*self.raw).compute_end_ns = self.now_ns() }
    }

    /// Outputs are written now.
    pub fn mark_exec_end(&self) {
        // SAFETY: only the executing thread writes the times, and this type stays on that thread.
        unsafe { (*self.raw).exec_end_ns = self.now_ns() }
    }
}

/// Runs `work` over a batch, then finishes and releases what `work` left open. `execute` therefore
/// always reports success, and errors are sent as responses.
///
/// # Safety
/// `raw` is a batch that the host has just passed to `execute`.
pub(crate) unsafe fn run_batch(
    host: Host,
    raw: *mut abi::request::Batch,
    work: impl FnOnce(&Batch<'_>) -> Result<(), Error>,
) {
    // SAFETY: the host's batch and its array are valid during `execute`.
    let requests = unsafe { as_slice((*raw).requests, (*raw).n_requests.into()) };
    let (few, many): ([RequestState; 32], Vec<RequestState>);
    let states = if requests.len() <= 32 {
        few = Default::default();
        &few[..requests.len()]
    } else {
        many = requests.iter().map(|_| RequestState::default()).collect();
        &many
    };
    let (scattered, after) = (Cell::new(false), Cell::new(None));
    let batch = Batch { host, raw, requests, states, scattered, after };
    let result = work(&batch);
    let scattered = batch.scattered.get();
    let after = batch.after.take().map_or(ptr::null_mut(), Event::into_raw);
    let error = match &result {
        Ok(()) => ptr::null_mut(),
        Err(error) => error.raise(host),
    };
    let detached = states.iter().any(RequestState::detached);
    if detached && !scattered && after.is_null() {
        let omitted =
            Error::internal("the backend returned without finishing the request").raise(host);
        for (request, state) in requests.iter().zip(states) {
            // SAFETY: each request is released once, here; each responder is finished at most once.
            unsafe {
                let (handle, responder) = ((**request).handle, (**request).responder);
                if !state.detached() && !state.finished() {
                    let error = if error.is_null() { omitted } else { error };
                    (host.error_free)((host.responder_finish)(responder, error));
                }
                (host.request_release)(handle, ptr::null_mut());
            }
        }
        // SAFETY: created above, not used again.
        unsafe { (host.error_free)(omitted) }
    } else {
        // `batch_finish` skips detached requests. They are released before it: once their
        // responders are dropped, they no longer count as detached, and `batch_finish` would
        // release them, too.
        for (request, _) in requests.iter().zip(states).filter(|(_, state)| state.detached()) {
            // SAFETY: the request is valid until its release, which is this one.
            unsafe { (host.request_release)((**request).handle, ptr::null_mut()) }
        }
        // SAFETY: `execute` has not returned, so the batch is valid.
        unsafe { (host.error_free)((host.batch_finish)(raw, error, after)) }
    }
    // SAFETY: null or created above, not used again.
    unsafe { (host.error_free)(error) }
}
