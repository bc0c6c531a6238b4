//! `preserve_ordering`: responses of a model leave in the order in which its requests arrived.

use crate::error::Result;
use crate::request::{InferResponse, ResponseSink, Sink};
use crate::sync::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;

/// The line in which answers of one model leave.
#[derive(Default)]
pub struct ResponseOrder {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of the request at the head of the line.
    first: u64,
    line: VecDeque<Place>,
    /// Somebody hands out answers; he will find those that come meanwhile.
    delivering: bool,
}

type Answer = (Result<Option<InferResponse>>, bool);

struct Place {
    /// Absent while an answer is being handed to it.
    sink: Option<Sink>,
    answers: VecDeque<Answer>,
}

impl Place {
    fn next(&mut self) -> Option<(Sink, Answer)> {
        let answer = self.answers.pop_front()?;
        Some((self.sink.take()?, answer))
    }
}

impl ResponseOrder {
    /// Takes the next place in the line for the request that answers into `sink`.
    pub fn enter(self: &Arc<Self>, sink: Sink) -> Sink {
        let mut state = self.lock();
        let number = state.first + state.line.len() as u64;
        state.line.push_back(Place { sink: Some(sink), answers: VecDeque::new() });
        InLine { order: Arc::clone(self), number }.into()
    }

    fn put(&self, number: u64, answer: Answer) {
        let mut state = self.lock();
        let at = number.wrapping_sub(state.first) as usize;
        let Some(place) = state.line.get_mut(at) else { return };
        place.answers.push_back(answer);
        if state.delivering {
            return;
        }
        state.delivering = true;
        // A sink may submit another request to the same model: it is called without the lock.
        while let Some((mut sink, (response, last))) = state.line.front_mut().and_then(Place::next)
        {
            drop(state);
            sink.send(response, last);
            state = self.lock();
            if last {
                state.line.pop_front();
                state.first += 1;
            } else if let Some(place) = state.line.front_mut() {
                place.sink = Some(sink);
            }
        }
        state.delivering = false;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

struct InLine {
    order: Arc<ResponseOrder>,
    number: u64,
}

impl ResponseSink for InLine {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        let last = last || response.is_err();
        self.order.put(self.number, (response, last));
    }
}

#[cfg(test)]
#[path = "response_order_tests.rs"]
mod tests;
