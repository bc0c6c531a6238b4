//! The response side of a request of the host: shared by the request, its factories and its
//! responses.
//!
//! The host lets a responder build one response at a time; Triton's backends may create several
//! before they send the first. The first is built in memory of the host, others in memory of this
//! library, which the host adopts when they are sent.

mod response_order; // of responses

use super::output::{BufferedResponse, OutputObject};
use super::state::StateObject;
use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject, ObjectKind, TypedObject};
use crate::host::{self, host_table};
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use trtserver_plugin_api::abi::types::{self, Responder};

/// What has become of the responses of a request.
mod state {
    /// More may follow.
    pub const OPEN: u8 = 0;
    /// The final one was sent.
    pub const FINAL: u8 = 1;
    /// An error ended the request; a decoupled backend may not know that yet.
    pub const FAILED: u8 = 2;
    /// The final response waits for another one; no more may be begun.
    pub const ENDING: u8 = 4;
    /// Execute failed: the host has the request, or has ended it with the error.
    pub const TAKEN_BACK: u8 = 3;
}

pub struct RequestReply {
    responder: *mut Responder,
    cancelled: *const AtomicU32,
    /// Held by the request, each factory and each response, and by `execute` while it runs.
    references: AtomicU32,
    /// A factory or a response was made.
    touched: AtomicBool,
    state: AtomicU8,
    /// The responder outlives `execute`.
    detached: AtomicBool,
    building: Mutex<ResponseInProgress>,
    /// States of a request that belongs to a sequence.
    states: Mutex<Vec<LiveObject<StateObject>>>,
}

#[derive(Default)]
struct ResponseInProgress {
    /// The host's response of this request is in use.
    busy: bool,
    /// Responses to send as soon as it is not, in this order.
    waiting: VecDeque<BufferedResponse>,
    /// The request ends after them.
    end: bool,
}

// SAFETY: the host accepts calls with a responder from any thread.
unsafe impl Send for RequestReply {}
// SAFETY: the host accepts calls with one responder from several threads at once.
unsafe impl Sync for RequestReply {}

impl TypedObject for RequestReply {
    const KIND: ObjectKind = ObjectKind::Reply;
}

/// Where the outputs of a response go.
pub enum ReplyTarget {
    /// A response of the host.
    Direct(*mut types::Response),
    /// Memory of this library, because the host's response is in use.
    BufferedResponse,
    /// Nowhere: the request has ended with an error.
    Discarded,
}

// SAFETY: the host accepts calls with a response from any thread.
unsafe impl Send for ReplyTarget {}
// SAFETY: the host accepts calls with one response from several threads at once.
unsafe impl Sync for ReplyTarget {}

impl RequestReply {
    /// The response side of a request, with a reference for the request and one for `execute`.
    ///
    /// # Safety
    /// The responder is valid until `execute` returns; `cancelled` is as valid as the responder.
    pub unsafe fn create(
        responder: *mut Responder,
        cancelled: *const u32,
    ) -> LiveObject<RequestReply> {
        handles::create_object(RequestReply {
            responder,
            cancelled: cancelled.cast(),
            references: AtomicU32::new(2),
            touched: AtomicBool::new(false),
            state: AtomicU8::new(state::OPEN),
            detached: AtomicBool::new(false),
            building: Mutex::default(),
            states: Mutex::default(),
        })
    }

    pub fn responder(&self) -> *mut Responder {
        self.responder
    }

    pub fn is_cancelled(&self) -> bool {
        // SAFETY: the flag is null or as valid as the responder, which this object keeps.
        unsafe { self.cancelled.as_ref() }.is_some_and(|flag| flag.load(Ordering::Relaxed) != 0)
    }

    fn is(&self, expected: u8) -> bool {
        self.state.load(Ordering::Acquire) == expected
    }

    fn lock(&self) -> MutexGuard<'_, ResponseInProgress> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// The request has ended.
    pub fn check(&self) -> Result<()> {
        match self.state.load(Ordering::Acquire) {
            state::FINAL | state::ENDING => {
                Err(TritonFault::misuse("the final response of the request was sent before"))
            }
            state::TAKEN_BACK => Err(TritonFault::misuse(
                "the request is the server's: TRITONBACKEND_ModelInstanceExecute returned an error for it",
            )),
            _ => Ok(()),
        }
    }

    pub fn retain(&self) {
        self.touched.store(true, Ordering::Relaxed);
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins a response.
    ///
    /// # Errors
    /// The final response was sent.
    pub fn begin(&self) -> Result<ReplyTarget> {
        self.check()?;
        if self.is(state::FAILED) {
            return Ok(ReplyTarget::Discarded);
        }
        let mut building = self.lock();
        if building.busy {
            return Ok(ReplyTarget::BufferedResponse);
        }
        let response = self.host_response()?;
        building.busy = true;
        Ok(ReplyTarget::Direct(response))
    }

    fn host_response(&self) -> Result<*mut types::Response> {
        let host = host_table()?;
        let mut response = ptr::null_mut();
        // SAFETY: the responder is valid; the host writes one pointer. The error is owned by the
        // caller.
        unsafe {
            host::take_error(host, (host.response_new)(self.responder, &raw mut response))?;
        }
        Ok(response)
    }

    /// Whether the backend has made neither a factory nor a response: then the host may take the
    /// request back.
    pub fn is_untouched(&self) -> bool {
        !self.touched.load(Ordering::Relaxed)
    }

    /// The execution has failed, but responses or factories of the request may be left: ends it
    /// with the error.
    pub fn take_back(&self, fault: &TritonFault) {
        // Fails if the backend has ended it all the same.
        let _ = self.finish(Some(fault));
        self.state.store(state::TAKEN_BACK, Ordering::Release);
    }
}

impl LiveObject<RequestReply> {
    /// Adds a state, which lives as long as this.
    ///
    /// # Errors
    /// The final response was sent.
    pub fn add_state(self, output: OutputObject) -> Result<LiveObject<StateObject>> {
        self.check()?;
        let state = handles::create_object(StateObject::new(output, self));
        self.states.lock().unwrap_or_else(PoisonError::into_inner).push(state);
        Ok(state)
    }

    /// Gives up one reference. The last one ends the request, if the backend has not, and frees the
    /// reply.
    pub fn release(self) {
        if self.references.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        if self.is(state::OPEN) {
            let omitted =
                TritonFault::internal("the backend released the request without a final response");
            let _ = self.finish(Some(&omitted));
        }
        if self.detached.load(Ordering::Acquire)
            && let Ok(host) = host_table()
        {
            // SAFETY: detached once, released once: here.
            unsafe { (host.responder_release)(self.responder) }
        }
        if let Ok(reply) = handles::free_object(self.raw()) {
            for state in reply.states.into_inner().unwrap_or_else(PoisonError::into_inner) {
                if let Ok(state) = handles::free_object(state.raw()) {
                    state.output.free_attributes();
                }
            }
        }
    }

    /// `execute` has ended, and the backend has the request as long as it holds references.
    pub fn executed(self) {
        if self.references.load(Ordering::Acquire) > 1
            && let Ok(host) = host_table()
        {
            self.detached.store(true, Ordering::Release);
            // SAFETY: `execute` has not returned to the host, so the responder is valid.
            unsafe { (host.responder_detach)(self.responder) }
        }
        self.release();
    }

    /// `execute` has failed: the host ends the request, which nothing else refers to.
    pub fn taken_back(self) {
        self.state.store(state::TAKEN_BACK, Ordering::Release);
        self.release();
    }
}
