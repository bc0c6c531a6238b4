//! The id of the request for which a thread is working (`X-Request-Id`): log lines that the thread writes meanwhile contain it.

use std::cell::RefCell;
use std::sync::Arc;

/// Longer ids are cut in log lines.
const MAX_LOGGED: usize = 256;

thread_local! {
    static CURRENT: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// An id for log lines.
#[derive(Clone, Debug)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Bytes that are not UTF-8 are replaced.
    pub fn new(id: &[u8]) -> Self {
        let id = &id[..id.len().min(MAX_LOGGED)];
        Self(String::from_utf8_lossy(id).into())
    }

    /// Lines of this thread contain the id until the result is dropped.
    pub fn enter(&self) -> Entered {
        Entered(CURRENT.replace(Some(Arc::clone(&self.0))))
    }
}

/// See [`RequestId::enter`].
pub struct Entered(Option<Arc<str>>);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// The id of the current request, if it has one.
pub(super) fn current() -> Option<Arc<str>> {
    CURRENT.with_borrow(Clone::clone)
}
