//! The last traces, in memory: those of `GET /v2/trtserver/requests`.

use crate::request_trace::{RequestTrace, TraceReason};
use parking_lot::Mutex;
use std::collections::VecDeque;

/// The last traces: two lists of the same length, so that many sampled requests do not displace the
/// slow and the failed ones.
#[derive(Debug)]
pub struct RecentTraces {
    limit: usize,
    lists: Mutex<TraceLists>,
}

#[derive(Debug, Default)]
struct TraceLists {
    sampled: VecDeque<Box<RequestTrace>>,
    notable: VecDeque<Box<RequestTrace>>,
}

impl RecentTraces {
    /// Lists of at most `limit` traces each.
    pub fn new(limit: usize) -> Self {
        Self { limit, lists: Mutex::default() }
    }

    /// Adds a trace and passes it on. Who has it from `pass_on` finds it here, too. Returns the trace
    /// that it displaces.
    pub fn add(
        &self,
        trace: Box<RequestTrace>,
        pass_on: impl FnOnce(&RequestTrace),
    ) -> Option<Box<RequestTrace>> {
        let mut lists = self.lists.lock();
        pass_on(&trace);
        let list = match trace.reason {
            TraceReason::Sampled => &mut lists.sampled,
            TraceReason::Slow | TraceReason::Failed => &mut lists.notable,
        };
        list.push_front(trace);
        if list.len() > self.limit { list.pop_back() } else { None }
    }

    /// All of them, the newest first.
    pub fn list(&self) -> Vec<RequestTrace> {
        self.lists.lock().newest_first().into_iter().cloned().collect()
    }

    /// The newest trace with this id: the request id of the client, else the trace id of its
    /// context in hexadecimal, else the number of the trace.
    pub fn find(&self, id: &str) -> Option<RequestTrace> {
        let lists = self.lists.lock();
        let all = lists.newest_first();
        let by_request = |trace: &&RequestTrace| {
            trace.spans.iter().any(|span| !span.request_id.is_empty() && span.request_id == id)
        };
        let by_context = |trace: &&RequestTrace| {
            trace.context.as_ref().is_some_and(|context| context.trace_id.to_string() == id)
        };
        let number = id.parse::<u64>().ok();
        let by_number = |trace: &&RequestTrace| number == Some(trace.root().id);
        let find = |wanted: &dyn Fn(&&RequestTrace) -> bool| all.iter().copied().find(wanted);
        find(&by_request).or_else(|| find(&by_context)).or_else(|| find(&by_number)).cloned()
    }
}

impl TraceLists {
    fn newest_first(&self) -> Vec<&RequestTrace> {
        let mut all: Vec<&RequestTrace> =
            self.sampled.iter().chain(&self.notable).map(|trace| &**trace).collect();
        all.sort_by_key(|trace| std::cmp::Reverse((trace.end_ns, trace.root().id)));
        all
    }
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
