//! The id of the request for which a thread is working (`X-Request-Id`): log lines that the thread
//! writes meanwhile contain it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Longer ids are cut in log lines.
const MAX_LOGGED: usize = 256;

/// A request with an id has arrived: until then no thread looks for one. Process-wide, as the
/// threads' ids are.
static USED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CURRENT: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// An id for log lines.
#[derive(Clone, Debug)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Bytes that are not UTF-8 are replaced.
    pub fn new(id: &[u8]) -> Self {
        USED.store(true, Relaxed);
        let id = &id[..id.len().min(MAX_LOGGED)];
        Self(String::from_utf8_lossy(id).into())
    }

    /// The id of the request for which this thread is working. Boxed, because most requests have
    /// none.
    #[inline]
    pub fn current() -> Option<Box<Self>> {
        if !USED.load(Relaxed) {
            return None;
        }
        current_request_id().map(|id| Box::new(Self(id)))
    }

    /// Lines of this thread contain the id until the result is dropped.
    pub fn enter(&self) -> RequestIdScope {
        RequestIdScope(CURRENT.replace(Some(Arc::clone(&self.0))))
    }
}

/// As [`RequestId::enter`] for a batch: its ids, separated by commas, replace the id of the thread.
#[inline]
pub fn enter_all<'a>(ids: impl Iterator<Item = &'a RequestId>) -> Option<RequestIdScope> {
    USED.load(Relaxed).then(|| RequestIdScope(CURRENT.replace(join_ids(ids))))
}

fn join_ids<'a>(mut ids: impl Iterator<Item = &'a RequestId>) -> Option<Arc<str>> {
    let first = Arc::clone(&ids.next()?.0);
    let mut all = String::new();
    for RequestId(id) in ids {
        if all.is_empty() {
            all.push_str(&first);
        }
        if all.len() + id.len() >= MAX_LOGGED {
            all.push_str(",…");
            break;
        }
        all.push(',');
        all.push_str(id);
    }
    Some(if all.is_empty() { first } else { all.into() })
}

/// See [`RequestId::enter`].
pub struct RequestIdScope(Option<Arc<str>>);

impl Drop for RequestIdScope {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// The id of the current request, if it has one.
pub fn current_request_id() -> Option<Arc<str>> {
    CURRENT.with_borrow(Clone::clone)
}
