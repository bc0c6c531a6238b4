//! Times of the responses of a decoupled model (`response_stats` of the statistics): a sink in
//! front of the request's own.

use super::response::InferResponse;
use super::sink::{ResponseSink, Sink};
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Code, Result};
use trtserver_base::stats::{ResponseOutcome, VersionStats};

/// Counts each response before it is delivered, and the time of its delivery afterwards.
pub struct TimedSink {
    pub sink: Sink,
    pub stats: Arc<VersionStats>,
    /// Shard of the statistics that the times are added to.
    pub shard: usize,
    pub received_ns: u64,
    /// When the execution began, then when the last response was delivered.
    pub last_ns: u64,
    /// Responses so far.
    pub index: u32,
}

impl ResponseSink for TimedSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        let now = now_ns();
        let outcome = match &response {
            Ok(Some(_)) => ResponseOutcome::Success,
            Ok(None) => ResponseOutcome::Empty,
            Err(e) if e.code == Code::Cancelled => ResponseOutcome::Cancel,
            Err(_) => ResponseOutcome::Fail,
        };
        if self.index == 0 && response.is_ok() {
            self.stats.first_response(self.shard, now.saturating_sub(self.received_ns));
        }
        let since = now.saturating_sub(self.last_ns);
        self.stats.response(self.shard, self.index, since, outcome);
        self.sink.send(response, last);
        self.last_ns = now_ns();
        if outcome == ResponseOutcome::Success {
            self.stats.response_delivered(self.shard, self.index, self.last_ns.saturating_sub(now));
        }
        self.index = self.index.saturating_add(1);
    }
}
