//! `preserve_ordering`: responses of a model leave in the order in which its requests arrived.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;
use trtserver_base::error::Result;
use trtserver_request::{InferResponse, ResponseSink, Sink};

/// The requests of a model without final response in order of arrival, and the responses held back
/// for them.
#[derive(Default)]
pub struct ResponseOrder {
    state: Mutex<OrderState>,
}

#[derive(Default)]
struct OrderState {
    /// Number of the request at the front.
    first: u64,
    requests: VecDeque<PendingRequest>,
    /// A thread delivers responses; it also delivers responses that arrive meanwhile.
    delivering: bool,
}

type Response = (Result<Option<InferResponse>>, bool);

struct PendingRequest {
    /// `None` while a response is delivered to it.
    sink: Option<Sink>,
    responses: VecDeque<Response>,
}

impl PendingRequest {
    fn next(&mut self) -> Option<(Sink, Response)> {
        let response = self.responses.pop_front()?;
        Some((self.sink.take()?, response))
    }
}

impl ResponseOrder {
    /// Appends the request that responds into `sink`. Its responses go to the returned sink.
    pub fn enter(self: &Arc<Self>, sink: Sink) -> Sink {
        let mut state = self.lock();
        let number = state.first + state.requests.len() as u64;
        state.requests.push_back(PendingRequest { sink: Some(sink), responses: VecDeque::new() });
        OrderedSink { order: Arc::clone(self), number }.into()
    }

    fn put(&self, number: u64, response: Response) {
        let mut state = self.lock();
        let at = number.wrapping_sub(state.first) as usize;
        let Some(request) = state.requests.get_mut(at) else { return };
        request.responses.push_back(response);
        if state.delivering {
            return;
        }
        state.delivering = true;
        // A sink may submit another request to the same model, so it is called without the lock.
        while let Some((mut sink, (response, last))) =
            state.requests.front_mut().and_then(PendingRequest::next)
        {
            drop(state);
            sink.send(response, last);
            state = self.lock();
            if last {
                state.requests.pop_front();
                state.first += 1;
            } else if let Some(request) = state.requests.front_mut() {
                request.sink = Some(sink);
            }
        }
        state.delivering = false;
    }

    fn lock(&self) -> MutexGuard<'_, OrderState> {
        self.state.lock()
    }
}

struct OrderedSink {
    order: Arc<ResponseOrder>,
    number: u64,
}

impl ResponseSink for OrderedSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        let last = last || response.is_err();
        self.order.put(self.number, (response, last));
    }
}

#[cfg(test)]
#[path = "response_order_tests.rs"]
mod tests;
