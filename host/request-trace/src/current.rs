//! The traced request that a thread or a process executes: the parent of requests that its backend
//! makes meanwhile.

use crate::active::ActiveTrace;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

thread_local! {
    static CURRENT: RefCell<Option<Arc<ActiveTrace>>> = const { RefCell::new(None) };
}

/// The thread executes this request until the result is dropped.
pub fn enter_trace(trace: &Arc<ActiveTrace>) -> TraceScope {
    TraceScope(CURRENT.replace(Some(Arc::clone(trace))))
}

/// See [`enter_trace`].
pub struct TraceScope(Option<Arc<ActiveTrace>>);

impl Drop for TraceScope {
    fn drop(&mut self) {
        drop(CURRENT.replace(self.0.take()));
    }
}

/// The traced request that this thread executes.
pub fn current_trace() -> Option<Arc<ActiveTrace>> {
    CURRENT.with_borrow(Clone::clone)
}

/// The traced requests that another process executes.
#[derive(Default)]
pub struct RemoteTraces(Mutex<Vec<Weak<ActiveTrace>>>);

impl RemoteTraces {
    pub fn add(&self, trace: &Arc<ActiveTrace>) {
        let mut traces = self.0.lock();
        traces.retain(|trace| trace.upgrade().is_some_and(|trace| !trace.has_ended()));
        traces.push(Arc::downgrade(trace));
    }

    /// The one that is being executed. `None` if there are several, since it is not known which of
    /// them the process works for.
    pub fn only(&self) -> Option<Arc<ActiveTrace>> {
        let traces = self.0.lock();
        let mut open = traces.iter().filter_map(Weak::upgrade).filter(|trace| !trace.has_ended());
        let first = open.next()?;
        open.next().is_none().then_some(first)
    }
}

#[cfg(test)]
#[path = "current_tests.rs"]
mod tests;
