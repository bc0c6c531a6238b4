//! The last traces, in memory: those of `GET /v2/trtserver/requests`.

use crate::request_trace::{RequestTrace, TraceReason};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// The last traces: two lists of the same length, so that many sampled requests do not displace the
/// slow and the failed ones.
#[derive(Debug)]
pub struct RecentTraces {
    limit: usize,
    lists: Mutex<TraceLists>,
}

#[derive(Debug, Default)]
struct TraceLists {
    sampled: VecDeque<Arc<RequestTrace>>,
    notable: VecDeque<Arc<RequestTrace>>,
}

impl RecentTraces {
    /// Lists of at most `limit` traces each.
    pub fn new(limit: usize) -> Self {
        Self { limit, lists: Mutex::default() }
    }

    pub fn add(&self, trace: &Arc<RequestTrace>) {
        let mut lists = self.lists.lock();
        let list = match trace.reason {
            TraceReason::Sampled => &mut lists.sampled,
            TraceReason::Slow | TraceReason::Failed => &mut lists.notable,
        };
        list.push_front(Arc::clone(trace));
        let displaced = (list.len() > self.limit).then(|| list.pop_back());
        drop(lists);
        drop(displaced);
    }

    /// All of them, the newest first.
    pub fn list(&self) -> Vec<Arc<RequestTrace>> {
        let lists = self.lists.lock();
        let mut all: Vec<_> = lists.sampled.iter().chain(&lists.notable).cloned().collect();
        drop(lists);
        all.sort_by_key(|trace| std::cmp::Reverse((trace.end_ns, trace.root().id)));
        all
    }

    /// The newest trace with this id: the request id of the client, else the trace id of its
    /// context in hexadecimal, else the number of the trace.
    pub fn find(&self, id: &str) -> Option<Arc<RequestTrace>> {
        let all = self.list();
        let by_request = |trace: &&Arc<RequestTrace>| {
            trace.spans.iter().any(|span| !span.request_id.is_empty() && span.request_id == id)
        };
        let by_context = |trace: &&Arc<RequestTrace>| {
            trace.context.as_ref().is_some_and(|context| context.trace_id.to_string() == id)
        };
        let number = id.parse::<u64>().ok();
        let by_number =
            |trace: &&Arc<RequestTrace>| number.is_some_and(|number| trace.root().id == number);
        let found = all.iter().find(by_request).or_else(|| all.iter().find(by_context));
        found.or_else(|| all.iter().find(by_number)).cloned()
    }
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
