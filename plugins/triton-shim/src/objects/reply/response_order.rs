//! How responses are sent: in the order in which the backend sends them, as far as the host, which
//! takes one at a time, allows it.

use super::{RequestReply, ResponseInProgress, state};
use crate::fault::{Result, TritonFault};
use crate::host::{self, host_table, raise_error};
use crate::objects::output::BufferedResponse;
use crate::scope;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use trtserver_plugin_api::abi::host::send_flags;
use trtserver_plugin_api::abi::types::{self, code};

impl RequestReply {
    /// Sends a response of the host, then the waiting responses. The error stays the caller's.
    pub fn send(
        &self,
        response: *mut types::Response,
        last: bool,
        fault: Option<&TritonFault>,
    ) -> Result<()> {
        let mut building = self.lock();
        let waiting = building.waiting.back_mut();
        let Some(waiting) = waiting.filter(|_| last || fault.is_some()) else {
            drop(building);
            let sent = self.send_now(response, last, fault);
            self.free_builder();
            return sent;
        };
        let Some(fault) = fault else {
            // What waits was sent before this, so it must not come after the final one.
            waiting.last = true;
            self.begin_end();
            drop(building);
            let sent = self.send_now(response, false, None);
            self.free_builder();
            return sent;
        };
        drop(building);
        // An error ends the request; what was sent before it goes first, and the error needs no
        // outputs. SAFETY: the response belongs to the caller, which does not use it any more.
        unsafe { (host_table()?.response_free)(response) };
        drop(self.send_waiting());
        let sent =
            self.check().and_then(|()| self.send_now(self.host_response()?, last, Some(fault)));
        self.free_builder();
        sent
    }

    fn send_now(
        &self,
        response: *mut types::Response,
        last: bool,
        fault: Option<&TritonFault>,
    ) -> Result<()> {
        let host = host_table()?;
        let flags = if last { send_flags::FINAL } else { 0 };
        let error = fault.map_or(ptr::null_mut(), raise_error);
        // SAFETY: the response belongs to the caller, which does not use it any more; the error is
        // valid during the call, and freed once.
        let sent = unsafe {
            let sent = (host.response_send)(response, flags, error, ptr::null_mut());
            (host.error_free)(error);
            host::take_error(host, sent)
        };
        if last || fault.is_some() {
            self.end(last);
        }
        match sent {
            // As with Triton: the backend learns of it when it asks whether the request is
            // cancelled.
            Err(fault) if fault.code == code::CANCELLED => Ok(()),
            sent => sent,
        }
    }

    fn end(&self, last: bool) {
        self.state.store(if last { state::FINAL } else { state::FAILED }, Ordering::Release);
    }

    /// The final response is known and not sent yet.
    fn begin_end(&self) {
        let (open, ending) = (state::OPEN, state::ENDING);
        let _ = self.state.compare_exchange(open, ending, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Sends a response that was built in memory of this library, now or when the host's response
    /// is not in use any more.
    ///
    /// # Errors
    /// The request has ended. What goes wrong with a response that waits is logged.
    pub fn send_buffered(&self, response: BufferedResponse) -> Result<()> {
        let mut building = self.lock();
        self.check()?;
        if building.busy {
            if response.last {
                self.begin_end();
            }
            building.waiting.push_back(response);
            return Ok(());
        }
        building.busy = true;
        drop(building);
        let sent = self.deliver(response);
        self.free_builder();
        sent
    }

    fn deliver(&self, response: BufferedResponse) -> Result<()> {
        if !self.is(state::ENDING) {
            self.check()?;
        }
        if self.is(state::FAILED) {
            return Ok(());
        }
        let target = self.host_response()?;
        let (last, fault) = (response.last, response.fault.is_some());
        let put = || response.put(target).and_then(|()| self.put_states(target));
        let put = if fault { Ok(()) } else { put() };
        match put {
            Ok(()) => self.send_now(target, last, response.fault.as_ref()),
            Err(fault) => self.send_now(target, last, Some(&fault)).and(Err(fault)),
        }
    }

    /// Adds what was committed to a response of the host.
    pub fn put_states(&self, target: *mut types::Response) -> Result<()> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.iter().try_for_each(|state| state.put(target))
    }

    /// Drops a response of the host.
    pub fn discard(&self, response: *mut types::Response) -> Result<()> {
        // SAFETY: the response belongs to the caller, which does not use it any more.
        unsafe { (host_table()?.response_free)(response) };
        self.free_builder();
        Ok(())
    }

    /// The host's response is not in use any more: sends what waits for it.
    fn free_builder(&self) {
        let mut building = self.send_waiting();
        building.busy = false;
        let end = std::mem::take(&mut building.end);
        drop(building);
        if end && self.is(state::ENDING) {
            logged(self.finish_now(None));
        }
    }

    /// Sends the waiting responses. The caller owns the host's response. The backend was told that
    /// they were sent, so failures are logged.
    fn send_waiting(&self) -> MutexGuard<'_, ResponseInProgress> {
        loop {
            let mut building = self.lock();
            let Some(next) = building.waiting.pop_front() else { return building };
            drop(building);
            logged(self.deliver(next));
        }
    }

    /// Ends the request without a further response, after the waiting responses. An error does not
    /// wait.
    pub fn finish(&self, fault: Option<&TritonFault>) -> Result<()> {
        let mut building = self.lock();
        self.check()?;
        if fault.is_none() && !building.waiting.is_empty() {
            self.begin_end();
            building.end = true;
            return Ok(());
        }
        drop(building);
        self.finish_now(fault)
    }

    fn finish_now(&self, fault: Option<&TritonFault>) -> Result<()> {
        if self.is(state::FAILED) {
            self.end(true);
            return Ok(());
        }
        let host = host_table()?;
        let error = fault.map_or(ptr::null_mut(), raise_error);
        self.end(true);
        // SAFETY: the responder is valid; the error is valid during the call, and freed once.
        unsafe {
            let finished = (host.responder_finish)(self.responder, error);
            (host.error_free)(error);
            host::take_error(host, finished)
        }
    }
}

/// Logs what went wrong with a response after its sender was told that it succeeded.
fn logged(sent: Result<()>) {
    if let (Err(fault), Some(scope)) = (sent, scope::current_scope()) {
        scope.error(&format!(
            "backend '{}': a response that waited for another one of its request could not be sent: {fault}",
            scope.backend()
        ));
    }
}
