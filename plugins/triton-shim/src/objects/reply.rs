//! The response side of a request of the host: shared by the request, its factories and its responses.
//!
//! The host lets a responder build one response at a time; Triton's backends may create several before they send the first. The
//! first is built in memory of the host, others in memory of this library, which the host adopts when they are sent.

mod sending; // of responses

use super::output::{Buffered, Output};
use super::state::State;
use crate::fault::{Fault, Result};
use crate::handles::{self, Kind, Live, Object};
use crate::host::{self, host};
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

pub struct Reply {
    responder: *mut Responder,
    cancelled: *const AtomicU32,
    /// Held by the request, each factory and each response, and by `execute` while it runs.
    references: AtomicU32,
    /// A factory or a response was made.
    touched: AtomicBool,
    state: AtomicU8,
    /// The responder outlives `execute`.
    detached: AtomicBool,
    building: Mutex<Building>,
    /// States of a request that belongs to a sequence.
    states: Mutex<Vec<Live<State>>>,
}

#[derive(Default)]
struct Building {
    /// The host's response of this request is in use.
    busy: bool,
    /// Responses to send as soon as it is not, in this order.
    waiting: VecDeque<Buffered>,
    /// The request ends after them.
    end: bool,
}

// SAFETY: the host accepts calls with a responder from any thread.
unsafe impl Send for Reply {}
// SAFETY: the host accepts calls with one responder from several threads at once.
unsafe impl Sync for Reply {}

impl Object for Reply {
    const KIND: Kind = Kind::Reply;
}

/// Where the outputs of a response go.
pub enum Target {
    /// A response of the host.
    Direct(*mut types::Response),
    /// Memory of this library, because the host's response is in use.
    Buffered,
    /// Nowhere: the request has ended with an error.
    Discarded,
}

// SAFETY: the host accepts calls with a response from any thread.
unsafe impl Send for Target {}
// SAFETY: the host accepts calls with one response from several threads at once.
unsafe impl Sync for Target {}

impl Reply {
    /// The response side of a request, with a reference for the request and one for `execute`.
    ///
    /// # Safety
    /// The responder is valid until `execute` returns; `cancelled` is as valid as the responder.
    pub unsafe fn create(responder: *mut Responder, cancelled: *const u32) -> Live<Reply> {
        handles::create(Reply {
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

    pub fn is_cancelled(&self) -> bool {
        // SAFETY: the flag is null or as valid as the responder, which this object keeps.
        unsafe { self.cancelled.as_ref() }.is_some_and(|flag| flag.load(Ordering::Relaxed) != 0)
    }

    fn is(&self, expected: u8) -> bool {
        self.state.load(Ordering::Acquire) == expected
    }

    fn lock(&self) -> MutexGuard<'_, Building> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// The request has ended.
    pub fn check(&self) -> Result<()> {
        match self.state.load(Ordering::Acquire) {
            state::FINAL | state::ENDING => {
                Err(Fault::misuse("the final response of the request was sent before"))
            }
            state::TAKEN_BACK => Err(Fault::misuse(
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
    pub fn begin(&self) -> Result<Target> {
        self.check()?;
        if self.is(state::FAILED) {
            return Ok(Target::Discarded);
        }
        let mut building = self.lock();
        if building.busy {
            return Ok(Target::Buffered);
        }
        let response = self.host_response()?;
        building.busy = true;
        Ok(Target::Direct(response))
    }

    fn host_response(&self) -> Result<*mut types::Response> {
        let host = host()?;
        let mut response = ptr::null_mut();
        // SAFETY: the responder is valid; the host writes one pointer. The error is owned by the caller.
        unsafe {
            host::taken(host, (host.response_new)(self.responder, &raw mut response))?;
        }
        Ok(response)
    }

    /// Whether the backend has made neither a factory nor a response: then the host may take the request back.
    pub fn is_untouched(&self) -> bool {
        !self.touched.load(Ordering::Relaxed)
    }

    /// The execution has failed, but responses or factories of the request may be left: ends it with the error.
    pub fn take_back(&self, fault: &Fault) {
        // Fails if the backend has ended it all the same.
        let _ = self.finish(Some(fault));
        self.state.store(state::TAKEN_BACK, Ordering::Release);
    }
}

impl Live<Reply> {
    /// Adds a state, which lives as long as this.
    ///
    /// # Errors
    /// The final response was sent.
    pub fn add_state(self, output: Output) -> Result<Live<State>> {
        self.check()?;
        let state = handles::create(State::new(output, self));
        self.states.lock().unwrap_or_else(PoisonError::into_inner).push(state);
        Ok(state)
    }

    /// Gives up one reference. The last one ends the request, if the backend has not, and frees the reply.
    pub fn release(self) {
        if self.references.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        if self.is(state::OPEN) {
            let omitted =
                Fault::internal("the backend released the request without a final response");
            let _ = self.finish(Some(&omitted));
        }
        if self.detached.load(Ordering::Acquire)
            && let Ok(host) = host()
        {
            // SAFETY: detached once, released once: here.
            unsafe { (host.responder_release)(self.responder) }
        }
        if let Ok(reply) = handles::free(self.raw()) {
            for state in reply.states.into_inner().unwrap_or_else(PoisonError::into_inner) {
                if let Ok(state) = handles::free(state.raw()) {
                    state.output.free_attributes();
                }
            }
        }
    }

    /// `execute` has ended, and the backend has the request as long as it holds references.
    pub fn executed(self) {
        if self.references.load(Ordering::Acquire) > 1
            && let Ok(host) = host()
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
