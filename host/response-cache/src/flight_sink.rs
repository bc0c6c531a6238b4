//! The sink in front of a request's own: sees the response, and lands it once the client has it.

use crate::cached_response::ResponseParts;
use crate::landing::Landing;
use std::sync::{Arc, Weak};
use trtserver_base::clock::now_ns;
use trtserver_base::error::Result;
use trtserver_base::stats::BatchExecution;
use trtserver_request::{InferResponse, Responder, ResponseSink, Sink};

pub struct FlightSink {
    /// `None` once the final response has passed.
    landing: Option<Landing>,
    responder: Weak<Responder>,
    sink: Sink,
    /// The first response, and how many there were.
    first: Option<ResponseParts>,
    count: u32,
}

impl FlightSink {
    pub fn new(landing: Landing, responder: Weak<Responder>, sink: Sink) -> Self {
        Self { landing: Some(landing), responder, sink, first: None, count: 0 }
    }

    /// The final response of a request that succeeded.
    fn land(&mut self, landing: Landing, response: Result<Option<InferResponse>>) {
        let responder = self.responder.upgrade();
        let execution_ns = responder.as_deref().and_then(|r| execution_share(r, now_ns()));
        let stats = responder.as_ref().and_then(|responder| responder.context.stats.clone());
        drop(responder);
        let only = self.first.take().filter(|_| self.count == 1);
        if let Some(stats) = &stats {
            stats.cache_miss(landing.lookup_ns);
        }
        landing.close_unless_stored(only.as_ref());
        self.sink.send(response, true);
        let Some(parts) = only else { return landing.give_up() };
        let ns = landing.succeed(&parts, execution_ns);
        if let Some(stats) = &stats {
            stats.cache_insertion(ns);
        }
    }
}

/// Nanoseconds of an instance for this request: its rows of the batch.
fn execution_share(responder: &Responder, now_ns: u64) -> Option<u64> {
    let execution = responder.counted_execution()?;
    let ns = now_ns.saturating_sub(execution.start_ns);
    let (batch, rows) = (u64::from(responder.context.batch), u64::from(execution.rows));
    Some(ns.saturating_mul(batch.max(1)) / rows.max(1))
}

impl ResponseSink for FlightSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        if let Ok(Some(response)) = &response {
            self.count += 1;
            if self.count == 1 {
                self.first = Some(ResponseParts::from_response(response));
            }
        }
        let ended = last || response.is_err();
        match self.landing.take_if(|_| ended) {
            None => self.sink.send(response, last),
            Some(landing) => match &response {
                Ok(_) => self.land(landing, response),
                Err(error) => {
                    let error = error.clone();
                    let executed =
                        self.responder.upgrade().is_some_and(|r| r.execution().is_some());
                    self.sink.send(response, last);
                    landing.fail(&error, executed);
                }
            },
        }
    }

    fn executed_in_part(&mut self, first: u32, part: &Arc<BatchExecution>) {
        self.sink.executed_in_part(first, part);
    }
}
