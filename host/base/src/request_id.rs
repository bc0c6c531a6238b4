//! The id of the request for which a thread is working (`X-Request-Id`): log lines that the thread
//! writes meanwhile contain it. With the id goes whoever observes the request.

use crate::request_observer::RequestObserver;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Longer ids are cut in log lines.
const MAX_LOGGED: usize = 256;

/// A request with an id or an observer has arrived: until then no thread looks for one.
/// Process-wide, as the threads' ids are.
static USED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CURRENT: RefCell<Option<Arc<RequestLabel>>> = const { RefCell::new(None) };
}

/// An id for log lines, and the observer of the request; either may be missing.
#[derive(Clone, Debug)]
pub struct RequestId(Arc<RequestLabel>);

#[derive(Debug)]
struct RequestLabel {
    id: Option<Arc<str>>,
    observer: Option<Arc<dyn RequestObserver>>,
}

impl RequestId {
    /// Bytes that are not UTF-8 are replaced.
    pub fn new(id: &[u8]) -> Self {
        Self::label(Some(id), None)
    }

    /// A request that is observed.
    pub fn observed(id: Option<&[u8]>, observer: Arc<dyn RequestObserver>) -> Self {
        Self::label(id, Some(observer))
    }

    fn label(id: Option<&[u8]>, observer: Option<Arc<dyn RequestObserver>>) -> Self {
        USED.store(true, Relaxed);
        let id = id.map(|id| &id[..id.len().min(MAX_LOGGED)]);
        let id = id.map(|id| String::from_utf8_lossy(id).into());
        Self(Arc::new(RequestLabel { id, observer }))
    }

    /// The id of the request for which this thread is working. Boxed, because most requests have
    /// none.
    #[inline]
    pub fn current() -> Option<Box<Self>> {
        if !USED.load(Relaxed) {
            return None;
        }
        CURRENT.with_borrow(|current| Some(Box::new(Self(Arc::clone(current.as_ref()?)))))
    }

    /// Lines of this thread contain the id until the result is dropped.
    pub fn enter(&self) -> RequestIdScope {
        RequestIdScope(CURRENT.replace(Some(Arc::clone(&self.0))))
    }
}

/// Whoever observes the request for which this thread is working.
#[inline]
pub fn current_observer() -> Option<Arc<dyn RequestObserver>> {
    if !USED.load(Relaxed) {
        return None;
    }
    CURRENT.with_borrow(|current| current.as_ref()?.observer.clone())
}

/// As [`RequestId::enter`] for a batch: its ids, separated by commas, replace the id of the thread.
/// Requests that the batch makes are not its requests, so their observers are left out.
#[inline]
pub fn enter_all<'a>(ids: impl Iterator<Item = &'a RequestId>) -> Option<RequestIdScope> {
    USED.load(Relaxed).then(|| RequestIdScope(CURRENT.replace(join_ids(ids))))
}

fn join_ids<'a>(ids: impl Iterator<Item = &'a RequestId>) -> Option<Arc<RequestLabel>> {
    let mut ids = ids.filter_map(|id| id.0.id.as_ref());
    let first = ids.next()?;
    let mut all = String::new();
    for id in ids {
        if all.is_empty() {
            all.push_str(first);
        }
        if all.len() + id.len() >= MAX_LOGGED {
            all.push_str(",…");
            break;
        }
        all.push(',');
        all.push_str(id);
    }
    let id = if all.is_empty() { Arc::clone(first) } else { all.into() };
    Some(Arc::new(RequestLabel { id: Some(id), observer: None }))
}

/// `work` for the request for which this thread is working now, wherever it is polled.
pub fn for_current_request<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let id = RequestId::current();
    async move {
        let mut work = pin!(work);
        poll_fn(|cx| {
            let _entered = id.as_ref().map(|id| id.enter());
            work.as_mut().poll(cx)
        })
        .await
    }
}

/// See [`RequestId::enter`].
pub struct RequestIdScope(Option<Arc<RequestLabel>>);

impl Drop for RequestIdScope {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// The id of the current request, if it has one.
pub fn current_request_id() -> Option<Arc<str>> {
    CURRENT.with_borrow(|current| current.as_ref()?.id.clone())
}
